"""Rows 18 to 26: streams that break, stall, or are written in an unusual way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.faults.replies import (
    LAST,
    STREAM_HEAD,
    USAGE,
    End,
    answer_text,
    bytewise,
    chunk,
    completion,
    delta,
    event,
    events_of,
    finish,
    good,
    pieces_of,
    replies,
    says,
    streams,
)
from tests.faults.scenario import Expected, Scenario, forecast_tool, no_tool_ran, once, tells
from tests.faults.server import Act
from tests.faults.service_faults import OVERLOADED
from tests.support.connections import Exchange, in_chunk

PARTIAL = 3
"""How many pieces of text arrive before a stream breaks."""

BAD_JSON = b'data: {"choices": [}\n\n'
ERROR = {"error": {"message": "out of memory"}}
ERROR_EVENT = b"event: error\n" + event({"message": "out of memory"})
ERROR_TEXT = b"event: error\ndata: out of memory\n\n"
BROKEN_OFF = chunk("insufficient_system_resource")
HALF_CALL = chunk(tool_calls=[delta(0, id="a", name="forecast", arguments='{"city": "Bonn"}')])


# --- what the server does ---------------------------------------------------------------------------------


def breaks_after(pieces: int, end: End | None, *more: Any, pause: float = 0.0, bad_chunk: bool = False) -> Act:
    """A stream that ends, one way or another, after so many pieces of text, `more` (bytes, or data) and a pause."""

    async def act(exchange: Exchange) -> None:
        texts = pieces_of(answer_text(exchange.request))[:pieces]
        said = [chunk(role="assistant", content=""), *(chunk(content=each) for each in texts), *more]
        events = [each if isinstance(each, bytes) else event(each) for each in said]
        await exchange.send(STREAM_HEAD, *map(in_chunk, filter(None, events)))
        await exchange.pause(pause)
        await exchange.send(b"zz\r\n" if bad_chunk else LAST if end is None else b"")
        await finish(exchange, end or "keep")

    return act


def pings_after(pieces: int, gap: float, ping: Any = b": ping\n\n") -> Act:
    """A stream that goes on for ever without saying anything."""

    async def act(exchange: Exchange) -> None:
        await breaks_after(pieces, "keep")(exchange)
        while True:
            await exchange.pause(gap)
            await exchange.send(in_chunk(ping if isinstance(ping, bytes) else event(ping)))

    return act


def formatted(
    *,
    end: bytes = b"\n",
    done: bool = True,
    each: Callable[[bytes], list[bytes]] | None = None,
    before: bytes = b"",
    glued: bool = False,
) -> Act:
    """The right answer as a stream, its events written otherwise; `each` cuts one event into packets."""

    async def act(exchange: Exchange) -> None:
        events = events_of(answer_text(exchange.request), end=end, done=done)
        packets = [packet for one in events for packet in (each(one) if each else [one])]
        wire = [STREAM_HEAD, *(in_chunk(packet) for packet in [before, *packets] if packet), LAST]
        await exchange.send(*([b"".join(wire)] if glued else wire))

    return act


def with_comments(data: bytes) -> list[bytes]:
    """Comments, ids, retry times and unknown fields around an event."""
    return [b": hello\nid: 7\nretry: 10\nunknown: x\n" + data + b":\n\n"]


def on_several_lines(data: bytes) -> list[bytes]:
    """JSON over several data lines."""
    name, _, text = data.decode().partition("data: ")
    if text.strip() == "[DONE]":
        return [data]
    lines = json.dumps(json.loads(text), indent=1, ensure_ascii=False).split("\n")
    return [(name + "".join(f"data:{line}\n" for line in lines)).encode() + b"\n"]


async def with_noise(exchange: Exchange) -> None:
    """Chunks that say nothing, between those that do; the growing usage in each."""
    said: list[Any] = [{"choices": []}, chunk(role="assistant", content=None), {"type": "ping"}]
    for piece in pieces_of(answer_text(exchange.request)):
        said += [
            {**chunk(content=piece), "usage": USAGE},
            {**chunk(), "choices": [{"index": 0, "delta": None, "finish_reason": None}]},
            {**chunk(), "choices": []},
            chunk(content=None),
            {**chunk(), "choices": [{"index": 0}]},
        ]
    said += [chunk("stop"), {**chunk(), "choices": [], "usage": USAGE}, {**chunk(), "choices": [], "usage": USAGE}]
    await streams(*said, "[DONE]")(exchange)


async def whole_for_stream(exchange: Exchange) -> None:
    """Plain JSON, although a stream was asked for."""
    await replies(completion(answer_text(exchange.request)))(exchange)


async def stream_for_whole(exchange: Exchange) -> None:
    """A stream, although plain JSON was asked for."""
    await streams(*events_of(answer_text(exchange.request)))(exchange)


# --- scenarios --------------------------------------------------------------------------------------------

IDLE: dict[str, Any] = {"idle": 0.2, "least": 0.2, "most": 1.0}


def broken(name: str, row: str, fault: str, act: Act, text: str = "") -> Scenario:
    """A stream that breaks after some text: what came stays valid, and nothing is asked again; the error says `text`."""
    scenario = Scenario(name, row, fault, [act]).only("stream").then("StreamInterrupted", partial=PARTIAL)
    return scenario.then(check=tells(text)) if text else scenario


ENDS = [
    broken("stream_closed", "18", "closed in the middle of the text", breaks_after(PARTIAL, "close")),
    # A reset may overtake what is still on its way, so nobody can say how much has arrived.
    broken("stream_reset", "18", "reset in the middle of the text", breaks_after(PARTIAL, "reset", pause=0.05)),
    broken("stream_bad_chunk", "18", "a broken chunk within the text",
           breaks_after(PARTIAL, "hold", bad_chunk=True, pause=0.05)),
    once("stream_closed_early", "18", "closed before any text, once", breaks_after(0, "close")).only("stream"),
    once("stream_reset_early", "18", "reset before any text, once", breaks_after(0, "reset")).only("stream"),
    once("stream_closed_in_call", "18", "closed within a tool call, once: it does not run",
         streams(HALF_CALL, end="close"), check=no_tool_ran).only("stream").using(toolkit=forecast_tool),
    broken("stream_cut_politely", "19", "ended politely in the middle of the text", breaks_after(PARTIAL, None)),
    broken("stream_stalls", "20", "silence after three pieces; the idle limit comes first", breaks_after(PARTIAL, "hold"))
    .then(**IDLE),
    broken("stream_stalls_deadline", "20", "silence after three pieces; the deadline comes first",
           breaks_after(PARTIAL, "hold")).then("DeadlineExceeded", deadline=1.0, least=1.0),
    broken("stream_pings", "21", "comments for ever are no progress", pings_after(PARTIAL, 0.02)).then(**IDLE),
    broken("stream_pings_deadline", "21", "comments for ever; the deadline comes first", pings_after(PARTIAL, 0.02))
    .then("DeadlineExceeded", deadline=1.0, least=1.0),
    broken("stream_ping_events", "21", "pings in the shape of events for ever",
           pings_after(PARTIAL, 0.02, {"type": "ping"})).then(**IDLE),
    broken("stream_error", "22", "an error within the text", breaks_after(PARTIAL, None, ERROR), "out of memory"),
    broken("stream_error_event", "22", "an error event within the text", breaks_after(PARTIAL, None, ERROR_EVENT),
           "out of memory"),
    once("stream_error_early", "22", "an overload before any text, once", streams(OVERLOADED)).only("stream"),
    broken("stream_broken_off", "22", "finish_reason insufficient_system_resource",
           breaks_after(PARTIAL, None, BROKEN_OFF), "insufficient_system_resource"),
    Scenario("finish_reason_unknown", "22", "an unknown finish_reason", [says(..., finish_reason="eos")])
    .on("messages", "BadReply", requests=2, streamed=Expected("StreamInterrupted"))
    .on("responses", kinds=("chat",), fault="incomplete for an unknown reason: a cut")
    .on("gemini", "BadReply", requests=2, streamed=Expected("StreamInterrupted")),
    broken("stream_bad_json", "23", "bad JSON in one event", breaks_after(PARTIAL, None, BAD_JSON)).then("BadReply"),
    broken("stream_bad_json_error", "23", "bad JSON in an error event", breaks_after(PARTIAL, None, ERROR_TEXT),
           "out of memory"),
]  # fmt: skip

FORMATS = [
    Scenario(f"stream_{name}", "24", fault, [act]).only("stream")
    for name, fault, act in (
        ("crlf", "lines end with CRLF", formatted(end=b"\r\n")),
        ("cr", "lines end with CR", formatted(end=b"\r")),
        ("bom", "a byte order mark at the start", formatted(before=b"\xef\xbb\xbf")),
        ("comments", "comments, ids and unknown fields", formatted(each=with_comments)),
        ("lines", "JSON over several data lines", formatted(each=on_several_lines)),
        ("no_done", "no [DONE]", formatted(done=False)),
        ("bytewise", "every byte in a separate packet", formatted(each=bytewise)),
        ("one_packet", "everything in one packet", formatted(glued=True)),
    )
] + [
    Scenario("stream_noise", "25", "chunks that say nothing; the usage in each of them", [with_noise])
    .only("stream")
    .then(usage=16),
    Scenario("usage_once", "25", "the usage counts once", [good]).then(usage=16),
    Scenario("whole_for_stream", "26", "plain JSON for a stream", [whole_for_stream]).only("stream").then(usage=16),
    Scenario("stream_for_whole", "26", "a stream for plain JSON", [stream_for_whole]).only("whole").then(usage=16),
]

STREAM_FAULTS = [*ENDS, *FORMATS]
