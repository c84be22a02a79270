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
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived; `body` is the parsed JSON, None where it was none."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any
    connection: int

    @property
    def stream(self) -> bool:
        return isinstance(self.body, dict) and bool(self.body.get("stream"))

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


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
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {"index": 0, "message": message, "finish_reason": finish_reason or ("tool_calls" if tool_calls else "stop")}
        ],
        "usage": dict(usage or {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}),
    }


def sse(*events: Any, done: bool = True, end: str = "\n\n") -> bytes:
    """Events as they stand in a stream: dicts become JSON."""
    lines = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    if done:
        lines.append("[DONE]")
    return "".join(f"data: {line}{end}" for line in lines).encode()


def chunk(delta: Mapping[str, Any], *, finish_reason: str | None = None, model: str = "loopback") -> dict[str, Any]:
    """One piece of a streamed reply on the wire."""
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }


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


def raw_answer(data: bytes) -> Answer:
    return Answer(raw=data)


def text_answer(text: str | None, **more: Any) -> Callable[[Recorded], Answer]:
    """The reply with this text, whole or streamed as the request wants it."""
    return lambda request: _whole_or_streamed(completion(text, **more), request)


def tool_calls_answer(calls: Sequence[Any], text: str | None = None) -> Callable[[Recorded], Answer]:
    """The reply with these calls; each is ``(name, arguments)`` or a call as on the wire."""
    wire = [
        call
        if isinstance(call, Mapping)
        else {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": call[0],
                "arguments": call[1] if isinstance(call[1], str) else json.dumps(call[1], ensure_ascii=False),
            },
        }
        for number, call in enumerate(calls)
    ]
    return lambda request: _whole_or_streamed(completion(text, tool_calls=wire), request)


def _whole_or_streamed(reply: dict[str, Any], request: Recorded) -> Answer:
    if not request.stream:
        return json_answer(reply)
    options = request.body.get("stream_options") or {}
    pieces = chunks_of(reply, include_usage=bool(options.get("include_usage")))
    return Answer(
        headers={"content-type": "text/event-stream"},
        pieces=[*(sse(piece, done=False) for piece in pieces), sse()],
    )


def _echo(request: Recorded) -> Answer:
    messages = (request.body or {}).get("messages") or [{}]
    content = messages[-1].get("content")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return _whole_or_streamed(completion(text, model=(request.body or {}).get("model", "loopback")), request)


class LoopbackServer:
    """The server; see the module.

    Attributes:
        base_url: ends in ``/v1``.
        requests: every request so far, in order of arrival.
        connections: how many connections were opened so far.
        open_connections: how many are open now.
    """

    def __init__(self, handler: Handler | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.handler = handler
        self._tls = tls
        self.requests: list[Recorded] = []
        self.connections = 0
        self.open_connections = 0
        self.base_url = ""
        self.port = 0
        self._script: deque[Handler] = deque()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Condition()

    async def __aenter__(self) -> LoopbackServer:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=4096, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for _ in range(3):  # a connection that was accepted a moment ago begins now
            await asyncio.sleep(0)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    # --- the script --------------------------------------------------------------------------------------

    def answer(self, answer: Answer | Handler) -> None:
        """Use `answer` for the next request that has none yet."""
        self._script.append(answer if callable(answer) else lambda _request: answer)

    def reply(self, text: str | None, **more: Any) -> None:
        self.answer(text_answer(text, **more))

    def reply_tool_calls(self, calls: Sequence[Any], text: str | None = None) -> None:
        self.answer(tool_calls_answer(calls, text))

    def reply_json(self, data: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.answer(json_answer(data, status=status, headers=headers))

    def reply_sse(self, data: bytes | Sequence[bytes], *, cut: bool = False, **more: Any) -> None:
        pieces = [data] if isinstance(data, bytes) else list(data)
        self.answer(Answer(headers={"content-type": "text/event-stream"}, pieces=pieces, cut=cut, **more))

    def reply_raw(self, data: bytes) -> None:
        self.answer(raw_answer(data))

    def reply_status(
        self, status: int, *, headers: Mapping[str, str] | None = None, message: str = "scripted", code: Any = None
    ) -> None:
        self.answer(error_answer(status, message, code=code, headers=headers))

    def reply_reset(self) -> None:
        self.answer(Answer(raw=b"", reset=True))

    # --- what tests wait for -----------------------------------------------------------------------------

    async def received(self, count: int = 1) -> None:
        """Wait until at least `count` requests have arrived."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def all_closed(self) -> None:
        """Wait until no connection is open."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.open_connections == 0)

    # --- the protocol ------------------------------------------------------------------------------------

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Known from the beginning: one that is cancelled before its first step would leave its transport open.
        self._tasks.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections += 1
        self.open_connections += 1
        number = self.connections
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while (request := await _read_request(reader, number)) is not None:
                    async with self._arrived:
                        self.requests.append(request)
                        self._arrived.notify_all()
                    answer = await self._answer_for(request)
                    if not await _send(answer, reader, writer):
                        break
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self.open_connections -= 1
            async with self._arrived:
                self._arrived.notify_all()

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


async def _read_request(reader: asyncio.StreamReader, number: int) -> Recorded | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _version = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    raw = await reader.readexactly(int(headers.get("content-length") or 0))
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = None
    return Recorded(method, path, headers, raw, body, number)


async def _send(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send `answer`; return whether the connection stays open."""
    if answer.delay:
        await asyncio.sleep(answer.delay)
    if answer.hold is not None and answer.hold_after == 0:
        await _event_or_hangup(answer.hold, reader)
    if answer.raw is not None:
        writer.write(answer.raw)
        await writer.drain()
        if answer.reset:
            writer.transport.abort()
        return False
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if answer.pieces is None:
        headers["content-length"] = str(len(answer.body or b""))
    else:
        headers["transfer-encoding"] = "chunked"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {answer.status} Scripted\r\n{lines}\r\n".encode("latin-1"))
    if answer.pieces is None:
        writer.write(answer.body or b"")
    async for piece in _paced(answer, reader):
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
    if answer.pieces is not None and not answer.cut and not answer.reset:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    if answer.reset:
        writer.transport.abort()
    return not (answer.cut or answer.reset or headers.get("connection") == "close")


async def _paced(answer: Answer, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    for number, piece in enumerate(answer.pieces or ()):
        if answer.hold is not None and number == answer.hold_after and number:
            await _event_or_hangup(answer.hold, reader)
        if answer.gap and number:
            await asyncio.sleep(answer.gap)
        if piece:
            yield piece
    if answer.hold is not None and answer.hold_after >= len(answer.pieces or ()) > 0:
        await _event_or_hangup(answer.hold, reader)


async def _event_or_hangup(event: asyncio.Event, reader: asyncio.StreamReader) -> None:
    """Wait for `event`; a client that hangs up ends the waiting with ConnectionResetError."""
    waiters: list[asyncio.Task[Any]] = [asyncio.create_task(event.wait()), asyncio.create_task(_hangup(reader))]
    try:
        done, _ = await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        if waiters[1] in done:
            raise ConnectionResetError("the client hung up")
    finally:
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)


async def _hangup(reader: asyncio.StreamReader) -> None:
    # Nothing is pipelined here, so a byte or the end both mean that the client is gone.
    with contextlib.suppress(ConnectionError):
        await reader.read(1)
