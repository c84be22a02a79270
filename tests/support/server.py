"""A loopback server that speaks the OpenAI protocol over raw asyncio sockets, and records what it was asked.

    async with LoopbackServer() as server:
        server.reply("hello")                      # the next answer; without one the server echoes
        llm = OpenAICompatible("m", base_url=server.base_url)

Answers are used up in the order in which they were scripted. A reply that can be read whole is streamed when the
request says ``"stream": true``. A handler decides by itself: ``LoopbackServer(handler=f)``, where ``f(request)``
(sync or async) returns what `reply` and its siblings make: an `Answer`, or plain text.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from queue import Queue
from typing import Any, Self

from tests.support.connections import ByteServer, Connection, Exchange, Recorded, head, in_chunk


@dataclass
class Answer:
    """What goes out: either bytes as they are, or a status with a body.

    Attributes:
        raw: everything, status line included; the connection is closed after it.
        body: a body of known length.
        pieces: body pieces sent in chunked encoding, `gap` seconds apart.
        hold: nothing (more) is sent before this event is set.
        hold_after: how many pieces go out before `hold` counts.
        reset: the connection is torn down instead of being closed politely.
        cut: the connection is closed after the pieces, without the last chunk of the encoding.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    pieces: Sequence[bytes] | None = None
    raw: bytes | None = None
    gap: float = 0.0
    delay: float = 0.0
    hold: asyncio.Event | None = None
    hold_after: int = 0
    reset: bool = False
    cut: bool = False


Handler = Callable[[Recorded], Any]


def completion(
    text: str | None,
    *,
    tool_calls: Sequence[Mapping[str, Any]] | None = None,
    finish_reason: str | None = None,
    model: str = "loopback",
    usage: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """A whole reply on the wire."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if tool_calls:
        message["tool_calls"] = [dict(call) for call in tool_calls]
    return {
        "id": "chatcmpl-loopback", "object": "chat.completion", "created": 1, "model": model,
        "choices": [
            {"index": 0, "message": message, "finish_reason": finish_reason or ("tool_calls" if tool_calls else "stop")}
        ],
        "usage": dict(usage or {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}),
    }  # fmt: skip


def tool_call(name: str, arguments: Any, number: int | str = 0, **more: Any) -> dict[str, Any]:
    """One tool call of a whole reply."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text}, **more}


def sse(*events: Any, done: bool = True) -> bytes:
    """Events as they stand in a stream: dicts become JSON."""
    lines = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    if done:
        lines.append("[DONE]")
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chunk(delta: Mapping[str, Any], *, finish_reason: str | None = None, model: str = "loopback") -> dict[str, Any]:
    """One piece of a streamed reply on the wire."""
    return {
        "id": "chatcmpl-loopback", "object": "chat.completion.chunk", "created": 1, "model": model,
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }  # fmt: skip


def chunks_of(reply: Mapping[str, Any], *, include_usage: bool, size: int = 4) -> list[dict[str, Any]]:
    """The pieces in which a whole reply is streamed."""
    choice = reply["choices"][0]
    message = choice["message"]
    model = reply["model"]
    pieces = [chunk({"role": "assistant", "content": ""}, model=model)]
    text = message.get("content") or ""
    pieces += [chunk({"content": text[at : at + size]}, model=model) for at in range(0, len(text), size)]
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        first = {"index": index, "id": call["id"], "type": "function"}
        first["function"] = {"name": function["name"], "arguments": ""}
        pieces.append(chunk({"tool_calls": [first]}, model=model))
        arguments = function["arguments"]
        pieces += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + size]}}]}, model=model)
            for at in range(0, len(arguments), size)
        ]
    pieces.append(chunk({}, finish_reason=choice["finish_reason"], model=model))
    if include_usage and reply.get("usage"):
        pieces.append({**chunk({}, model=model), "choices": [], "usage": reply["usage"]})
    return pieces


def json_answer(data: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    body = json.dumps(data, ensure_ascii=False).encode()
    return Answer(status, {"content-type": "application/json", **(headers or {})}, body=body)


def error_answer(
    status: int, message: str = "scripted", *, code: Any = None, headers: Mapping[str, str] | None = None
) -> Answer:
    return json_answer({"error": {"message": message, "type": None, "code": code}}, status=status, headers=headers)


def text_answer(
    text: str | None, *, hold: asyncio.Event | None = None, headers: Mapping[str, str] | None = None, **more: Any
) -> Callable[[Recorded], Answer]:
    """The reply with this text, whole or streamed as the request wants it."""

    def answer(request: Recorded) -> Answer:
        said = _whole_or_streamed(completion(text, **more), request)
        return replace(said, hold=hold, headers={**said.headers, **(headers or {})})

    return answer


def tool_calls_answer(calls: Sequence[Any], text: str | None = None) -> Callable[[Recorded], Answer]:
    """The reply with these calls; each is ``(name, arguments)`` or a call as on the wire."""
    wire = [call if isinstance(call, Mapping) else tool_call(*call, number) for number, call in enumerate(calls)]
    return lambda request: _whole_or_streamed(completion(text, tool_calls=wire), request)


def _whole_or_streamed(reply: dict[str, Any], request: Recorded) -> Answer:
    if not request.stream:
        return json_answer(reply)
    options = request.body.get("stream_options") or {}
    pieces = chunks_of(reply, include_usage=bool(options.get("include_usage")))
    return Answer(
        headers={"content-type": "text/event-stream"}, pieces=[*(sse(piece, done=False) for piece in pieces), sse()]
    )


def _echo(request: Recorded) -> Answer:
    messages = (request.body or {}).get("messages") or [{}]
    content = messages[-1].get("content")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return _whole_or_streamed(completion(text, model=(request.body or {}).get("model", "loopback")), request)


class LoopbackServer(ByteServer):
    """The server; see the module.

    Attributes:
        base_url: ends in ``/v1``.
        requests: every request so far, in order of arrival.
    """

    def __init__(self, handler: Handler | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls=tls)
        self.handler = handler
        self.requests: list[Recorded] = []
        self.base_url = ""
        self._script: deque[Handler] = deque()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        return self

    # --- the script --------------------------------------------------------------------------------------

    def answer(self, answer: Answer | Handler) -> None:
        """Use `answer` for the next request that has none yet."""
        self._script.append(answer if callable(answer) else lambda _request: answer)

    def reply(self, text: str | None, **more: Any) -> None:
        self.answer(text_answer(text, **more))

    def reply_tool_calls(self, calls: Sequence[Any], text: str | None = None) -> None:
        self.answer(tool_calls_answer(calls, text))

    def reply_json(self, data: Any, *, status: int = 200) -> None:
        self.answer(json_answer(data, status=status))

    def reply_sse(self, data: bytes | Sequence[bytes], *, cut: bool = False, **more: Any) -> None:
        pieces = [data] if isinstance(data, bytes) else list(data)
        self.answer(Answer(headers={"content-type": "text/event-stream"}, pieces=pieces, cut=cut, **more))

    def reply_raw(self, data: bytes) -> None:
        self.answer(Answer(raw=data))

    def reply_status(
        self, status: int, *, headers: Mapping[str, str] | None = None, message: str = "scripted", code: Any = None
    ) -> None:
        self.answer(error_answer(status, message, code=code, headers=headers))

    def reply_reset(self) -> None:
        self.answer(Answer(raw=b"", reset=True))

    # --- what tests wait for -----------------------------------------------------------------------------

    async def received(self, count: int = 1) -> None:
        """Wait until at least `count` requests have arrived."""
        assert await self.until(lambda: len(self.requests) >= count, 60)

    async def all_closed(self) -> None:
        """Wait until no connection is open."""
        assert await self.until(lambda: not self._open and not self.tasks, 60)

    # --- the protocol ------------------------------------------------------------------------------------

    async def _answer(self, request: Recorded, connection: Connection) -> bool:
        self.requests.append(request)
        self._changed.set()
        exchange = Exchange(request, len(self.requests), connection, self)
        await _send(await self._answer_for(request), exchange)
        return exchange.keep

    async def _answer_for(self, request: Recorded) -> Answer:
        handler = self._script.popleft() if self._script else self.handler or _echo
        answer = handler(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, str):
            answer = _whole_or_streamed(completion(answer), request)
        assert isinstance(answer, Answer)
        return answer


@contextlib.contextmanager
def serving_in_thread(
    handler: Handler | None = None, *, tls: ssl.SSLContext | None = None, until_closed: bool = False
) -> Iterator[LoopbackServer]:
    """Yield a server that goes on while the loop of a test is busy, and outlives it; `until_closed`: all connections."""
    found: Queue[tuple[LoopbackServer, asyncio.AbstractEventLoop, asyncio.Event]] = Queue()

    async def serve() -> None:
        async with LoopbackServer(handler, tls=tls) as server:
            ended = asyncio.Event()
            found.put((server, asyncio.get_running_loop(), ended))
            await ended.wait()
            if until_closed:
                await server.all_closed()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    server, loop, ended = found.get(timeout=20)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        assert not thread.is_alive(), "a connection was left open"


async def _send(answer: Answer, exchange: Exchange) -> None:
    if answer.delay:
        await exchange.pause(answer.delay)
    if answer.hold is not None and answer.hold_after == 0:
        await exchange.hold_until(answer.hold)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if answer.raw is not None:
        exchange.close()
        await exchange.send(answer.raw)
    elif answer.pieces is None:
        body = answer.body or b""
        await exchange.send(head(answer.status, **headers, content_length=len(body)), body)
    else:
        await exchange.send(head(answer.status, **headers, transfer_encoding="chunked"))
        for number, piece in enumerate(answer.pieces):
            if number and answer.hold is not None and number == answer.hold_after:
                await exchange.hold_until(answer.hold)
            if number and answer.gap:
                await exchange.pause(answer.gap)
            if piece:
                await exchange.send(in_chunk(piece))
        if answer.hold is not None and answer.hold_after >= len(answer.pieces) > 0:
            await exchange.hold_until(answer.hold)
        if not answer.cut and not answer.reset:
            await exchange.send(in_chunk(b""))
    if answer.cut or headers.get("connection") == "close":
        exchange.close()
    if answer.reset:
        exchange.reset()
