"""Ours on the newer wires against ours on chat completions: a typed call, and a chunk of a stream.

    python -m benchmarks.wires              # prints microseconds of processor time, and the ratios

The wires take turns, and the least of all rounds counts: what else runs on a machine only ever adds. The server is a
process of its own and sends what was made beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.contenders._order import Order
from benchmarks.rows import LONG
from benchmarks.server import ORDER

WIRES = ("chat", "messages", "responses", "gemini")
CHUNKS = 200
SIZE = len(LONG) // CHUNKS
AIM = 1.3
"""Times as much as on chat completions that a new wire may cost."""

Json = dict[str, Any]


# --- what is sent ----------------------------------------------------------------------------------------


def whole(wire: str, text: str) -> Json:
    """A whole reply."""
    if wire == "messages":
        usage = {"input_tokens": 60, "output_tokens": 24}
        made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
        return {**made, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None}
    if wire == "responses":
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        usage = {"input_tokens": 60, "output_tokens": 24, "total_tokens": 84}
        return {"id": "resp_1", "status": "completed", "model": "m", "output": [item], "usage": usage}
    if wire == "gemini":
        candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 60, "candidatesTokenCount": 24, "totalTokenCount": 84}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 60, "completion_tokens": 24, "total_tokens": 84}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def events(wire: str, pieces: Sequence[str]) -> list[Json]:
    """A streamed reply."""
    reply = whole(wire, "".join(pieces))
    if wire == "messages":
        return [
            {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
                for piece in pieces
            ),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 24}},
            {"type": "message_stop"},
        ]
    if wire == "responses":
        item = reply["output"][0]
        place = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
        said = [{"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in pieces]
        return [
            {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
            *({**each, "sequence_number": number} for number, each in enumerate(said)),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": reply},
        ]
    if wire == "gemini":
        said = [whole(wire, piece) for piece in pieces]
        for each in said[:-1]:
            del each["candidates"][0]["finishReason"]
        return said
    made = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)]
    chunks: list[Json] = [{**made, "choices": [{"index": 0, "delta": each, "finish_reason": None}]} for each in deltas]
    chunks.append({**made, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return [*chunks, {**made, "choices": [], "usage": reply["usage"]}]


def _in_chunk(event: Json) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    data = f"{name}data: {json.dumps(event)}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def answers() -> dict[tuple[str, bool], bytes]:
    """The bytes of every reply, by wire and whether it is streamed."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n"
    pieces = [LONG[at : at + SIZE] for at in range(0, len(LONG), SIZE)]
    found = {}
    for wire in WIRES:
        body = json.dumps(whole(wire, ORDER)).encode()
        found[wire, False] = head % b"application/json" + b"content-length: %d\r\n\r\n" % len(body) + body
        streamed = b"".join(map(_in_chunk, events(wire, pieces))) + b"0\r\n\r\n"
        found[wire, True] = head % b"text/event-stream" + b"transfer-encoding: chunked\r\n\r\n" + streamed
    return found


# --- the server ------------------------------------------------------------------------------------------


class _Server(asyncio.Protocol):
    def __init__(self, replies: dict[tuple[str, bool], bytes]) -> None:
        self._replies = replies
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if not found or len(body) < length:
            return
        self._buffer = b""
        path = head.split(b" ", 2)[1].decode()
        names = {"/messages": "messages", "/responses": "responses"}
        wire = next((names[end] for end in names if path.endswith(end)), "gemini" if ":" in path else "chat")
        is_stream = ":stream" in path or json.loads(body).get("stream") is True
        self._transport.write(self._replies[wire, is_stream])


def _serve(told: Connection) -> None:
    async def serve() -> None:
        replies = answers()
        server = await asyncio.get_running_loop().create_server(lambda: _Server(replies), "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(serve())


# --- the measurement -------------------------------------------------------------------------------------


def _model(wire: str, url: str) -> Any:
    from SimpleLLMFunc import Anthropic, Gemini, OpenAICompatible

    if wire == "messages":
        return Anthropic("claude-sonnet-4-5", base_url=url, api_key="k")
    if wire == "gemini":
        return Gemini("gemini-3.8-flash", base_url=url, api_key="k")
    return OpenAICompatible("m", base_url=f"{url}/v1", api_key="k", wire=wire, profile="openai")  # type: ignore[arg-type]


def _work(wire: str, url: str) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    # What a call costs in money is looked up where the provider is known, which is no matter of the wire.
    sys.modules["genai_prices"] = None  # type: ignore[assignment]
    from SimpleLLMFunc import llm_function

    llm = _model(wire, url)

    @llm_function(llm)
    async def typed(text: str) -> Order:
        """You are a helpful assistant who answers briefly."""
        raise NotImplementedError

    @llm_function(llm)
    async def text(text: str) -> str:
        """You are a helpful assistant who answers briefly."""
        raise NotImplementedError

    async def call() -> None:
        assert (await typed("x")).number == 12

    async def stream() -> None:
        assert "".join([piece async for piece in text.stream("x")]) == LONG

    return call, stream


async def measure(url: str, rounds: int, calls: int, streams: int) -> dict[str, tuple[float, float]]:
    """Microseconds of processor time of a typed call and of a chunk, by wire: the least of all rounds."""
    works = {wire: _work(wire, url) for wire in WIRES}
    least = dict.fromkeys(WIRES, (float("inf"), float("inf")))
    for number in range(rounds + 1):
        for wire, works_of in works.items():
            took = []
            for work, times in zip(works_of, (calls, streams), strict=True):
                gc.collect()
                began = time.process_time()
                for _ in range(times):
                    await work()
                took.append((time.process_time() - began) / times * 1e6)
            if number:  # the first round warms up
                call, stream = least[wire]
                least[wire] = min(call, took[0]), min(stream, took[1] / CHUNKS)
    return least


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wires", description="Ours on each wire.")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--streams", type=int, default=8)
    given = parser.parse_args(arguments)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        least = asyncio.run(measure(f"http://127.0.0.1:{ours.recv()}", given.rounds, given.calls, given.streams))
    finally:
        server.terminate()
        server.join()
    call, stream = least["chat"]
    print("| wire | typed call, µs | to chat | streamed chunk, µs | to chat |\n| --- | ---: | ---: | ---: | ---: |")
    for wire, (own_call, own_stream) in least.items():
        print(f"| {wire} | {own_call:.0f} | {own_call / call:.2f} | {own_stream:.1f} | {own_stream / stream:.2f} |")
    print(f"\nAim: at most {AIM} times.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
