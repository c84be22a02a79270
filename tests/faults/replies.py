"""What a service that behaves would say, as bytes on the wire; the misbehaviour is added to it.

It is written as chat completions would say it; `tests.faults.speech` puts it into the words of the wire that was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, Literal, TypeAlias

from tests.faults.server import Act
from tests.faults.speech import SPEECH, SPEECHES, wire_of
from tests.support import server
from tests.support.connections import Exchange, Recorded, head, in_chunk, with_length

TEXT = "It is 7 °C in Köln,\u2028 no rain \U0001f327 until\n\nfive o'clock."
"""What a chat gets: characters of 1 to 4 bytes, a line separator that ends no line, line ends that do not end the event."""

JSON_TEXT = '{"city": "Köln \U0001f327", "celsius": 7}'
"""What a typed function gets."""

USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}

LAST = b"0\r\n\r\n"
"""The end of a body in chunked encoding."""

STREAM_HEAD = head(content_type="text/event-stream", transfer_encoding="chunked")

End: TypeAlias = Literal["keep", "close", "reset", "hold"]
"""What happens after the bytes: the connection stays for the next request, ends politely, is torn down, or falls silent."""


def answer_text(request: Recorded) -> str:
    """What the request asks for: JSON where it gives a schema."""
    return JSON_TEXT if request.body and SPEECHES[wire_of(request.path)]().wants_json(request.body) else TEXT


def completion(text: str | None, *, finish_reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """A whole reply."""
    reply = server.completion(text, finish_reason=finish_reason, model="m", usage=USAGE)
    reply["choices"][0]["message"].update(message)
    return reply


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    """One piece of a streamed reply."""
    return server.chunk(delta, finish_reason=finish_reason, model="m")


call = server.tool_call


def delta(index: int | None = None, **fields: Any) -> dict[str, Any]:
    """One piece of a tool call in a stream; `name` and `arguments` go into its function."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {**({} if index is None else {"index": index}), **fields, **({"function": function} if function else {})}


def body_of(data: Any) -> bytes:
    """A body as it is sent on the wire that was asked."""
    return _json_of(SPEECH.get().whole(data))


def _json_of(data: Any) -> bytes:
    try:
        return json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(data).encode()  # a lone surrogate


def event(data: Any) -> bytes:
    """The server-sent events that say it on the wire that was asked: one on chat completions; a text stands as it is."""
    return b"".join(_events(data, b"\n"))


def _events(data: Any, end: bytes) -> list[bytes]:
    speech = SPEECH.get()
    return [
        (b"event: " + one["type"].encode() + end if speech.has_names and "type" in one else b"")
        + (b"data: " + (one.encode() if isinstance(one, str) else _json_of(one)) + end * 2)
        for one in speech.events(data)
    ]


def pieces_of(text: str) -> list[str]:
    """The pieces in which a text is streamed."""
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def chunks_of(text: str | None, finish_reason: str | None = "stop", **first: Any) -> list[dict[str, Any]]:
    """A whole answer as chunks; `first` stands in the first of them."""
    said = [chunk(**{"role": "assistant", "content": None if text is None else "", **first})]
    said += [chunk(content=piece) for piece in pieces_of(text or "")]
    return [*said, chunk(finish_reason), {**chunk(), "choices": [], "usage": USAGE}]


def bytewise(data: bytes) -> list[bytes]:
    """Each byte in a packet of its own."""
    return [data[at : at + 1] for at in range(len(data))]


def events_of(text: str, *, done: bool = True, end: bytes = b"\n") -> list[bytes]:
    """A whole answer as events."""
    return [one for each in [*chunks_of(text), *(["[DONE]"] if done else [])] for one in _events(each, end)]


def answer_of(request: Recorded, text: str | None = None) -> tuple[str, bytes]:
    """The right answer, or another text, whole or streamed as the request wants it: its content type and its body."""
    said = answer_text(request) if text is None else text
    if request.stream:
        return "text/event-stream", b"".join(events_of(said))
    return "application/json", body_of(completion(said))


# --- acts ------------------------------------------------------------------------------------------------


async def finish(exchange: Exchange, end: End) -> None:
    """End an act."""
    if end == "close":
        exchange.close()
    elif end == "reset":
        exchange.reset()
    elif end == "hold":
        await exchange.hold()


def sends(*pieces: bytes, end: End = "keep", gap: float = 0.0) -> Act:
    """Exactly these bytes."""

    async def act(exchange: Exchange) -> None:
        await exchange.send(*pieces, gap=gap)
        await finish(exchange, end)

    return act


def status(code: int, message: str = "scripted", *, kind: str | None = None, **headers: Any) -> Act:
    """An error status; `kind` is the code inside the body."""

    async def act(exchange: Exchange) -> None:
        error = _json_of(SPEECH.get().error({"message": message, "type": None, "code": kind}, code))
        await exchange.send(with_length(error, code, **headers))

    return act


def replies(data: Any, **headers: Any) -> Act:
    """This JSON with status 200, whatever was asked for."""

    async def act(exchange: Exchange) -> None:
        await exchange.send(with_length(body_of(data), **headers))

    return act


def streams(*events: Any, end: End | None = None) -> Act:
    """These events in chunked encoding: bytes as they are, data as events.

    `end` None ends the body as it should be ended, and the connection stays.
    """

    async def act(exchange: Exchange) -> None:
        wire = [each if isinstance(each, bytes) else event(each) for each in events]
        await exchange.send(STREAM_HEAD, *(in_chunk(each) for each in wire if each))
        if end is None:
            await exchange.send(LAST)
        await finish(exchange, end or "keep")

    return act


def says(
    text: str | EllipsisType | None = None,
    *,
    finish_reason: str | None = "stop",
    calls: Sequence[Mapping[str, Any]] = (),
    **message: Any,
) -> Act:
    """A reply that fits the protocol, whole or streamed as the request wants it; ``...`` stands for the right text."""

    async def act(exchange: Exchange) -> None:
        said_text = answer_text(exchange.request) if isinstance(text, EllipsisType) else text
        more = {**message, **({"tool_calls": [dict(each) for each in calls]} if calls else {})}
        if not exchange.request.stream:
            await exchange.send(with_length(body_of(completion(said_text, finish_reason=finish_reason, **more))))
            return
        if calls:
            more["tool_calls"] = [{"index": number, **each} for number, each in enumerate(calls)]
        await streams(*chunks_of(said_text, finish_reason, **more), "[DONE]")(exchange)

    return act


async def good(exchange: Exchange) -> None:
    """The right answer."""
    await says(...)(exchange)
