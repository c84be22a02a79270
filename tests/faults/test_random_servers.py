"""Servers drawn at random: any sequence of bytes, cuts, pauses and resets, and one model that lives through all of them.

The oracle: the result is exact, or one of our errors is raised, within the deadline and half a second, with no task,
socket or counted key left behind, and no secret in any output. ``make faults-long`` draws 5,000 of them.
"""

from __future__ import annotations

import asyncio
import gzip
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc import APIKeyPool, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import http_model
from SimpleLLMFunc.interface.attempts import reply_reader as replies
from tests.faults import replies as spoken
from tests.faults import runner
from tests.faults.replies import LAST, STREAM_HEAD, answer_of, answer_text, body_of, chunk, delta, event, events_of
from tests.faults.runner import GRACE, KEY, captured_log, connections_taken, leftovers, model_of, sockets, views_of
from tests.faults.scenario import WEATHER, Weather
from tests.faults.server import FaultServer
from tests.support.connections import Exchange, Recorded, head, in_chunk, with_length

IS_LONG = settings.get_current_profile_name() == "faults-long"
SECONDS = 0.25
"""Deadline of each call."""

SILENCE = 0.06
"""What one try waits for, so that a call lives through two silent tries."""


# --- what a server may say -------------------------------------------------------------------------------


def _length(request: Recorded) -> bytes:
    if request.stream:
        return STREAM_HEAD + b"".join(map(in_chunk, events_of(answer_text(request)))) + LAST
    return with_length(answer_of(request)[1])


def _chunks(request: Recorded) -> bytes:
    text = answer_text(request)
    if request.stream:
        return STREAM_HEAD + b"".join(map(in_chunk, events_of(text, end=b"\r\n"))) + LAST
    body = body_of(spoken.completion(text))
    head_ = head(content_type="application/json", transfer_encoding="chunked")
    return head_ + in_chunk(body[:50]) + in_chunk(body[50:]) + LAST


def _packed(request: Recorded) -> bytes:
    kind, body = answer_of(request)
    return with_length(gzip.compress(body, mtime=0), content_type=kind, content_encoding="gzip")


def _closing(request: Recorded) -> bytes:
    kind, body = answer_of(request)
    return head(content_type=kind) + body


def _broken_call(request: Recorded) -> bytes:
    pieces = [delta(0, id="a", name="nope", arguments='{"city": '), delta(0, arguments='"Köln"}')]
    events = [*(event(chunk(tool_calls=[piece])) for piece in pieces), event(chunk("tool_calls"))]
    return STREAM_HEAD + b"".join(map(in_chunk, events)) + LAST


def _error(status: int, **headers: Any) -> Callable[[Recorded], bytes]:
    return lambda request: with_length(body_of({"error": {"message": f"your key is {request.key}"}}), status, **headers)


WORDS: dict[str, Callable[[Recorded], bytes]] = {
    "length": _length, "chunks": _chunks, "packed": _packed, "closing": _closing, "call": _broken_call,
    "400": _error(400), "401": _error(401), "429": _error(429, retry_after="0.01"), "503": _error(503),
    "error": lambda request: with_length(body_of({"error": {"message": "no", "code": 503}})),
    "event": lambda request: STREAM_HEAD + in_chunk(event({"error": {"message": f"{request.key}"}})) + LAST,
    "redirect": lambda request: with_length(b"", 307, location=request.path),
    "continue": lambda request: b"HTTP/1.1 100 Continue\r\n\r\n",
}  # fmt: skip
FRAMED = ("length", "chunks", "packed")
"""Answers in which a foreign byte cannot pass for a part of the text: their frame breaks."""

JUNK = st.one_of(
    st.binary(min_size=1, max_size=40),
    st.sampled_from([b"\r\n", b"\n\n", b"\r\n\r\n", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"data: ",                      b": ping\n\n", b"\xef\xbb\xbf", b"\x00", b"\x1f\x8b\x08", b"ffffffff\r\n", b"{", b"]", b"<html>"]),
)  # fmt: skip


@dataclass
class Script:
    """What happens with one request: bytes and pauses, then an end.

    Attributes:
        steps: bytes as they are, a pause in seconds, or how far (0 to 1) a word is to be said.
    """

    word: str = "length"
    steps: list[bytes | float | tuple[float]] = field(default_factory=list)
    end: str = "keep"

    async def act(self, exchange: Exchange) -> None:
        said, at = WORDS[self.word](exchange.request), 0
        for step in self.steps:
            if isinstance(step, bytes):
                await exchange.send(step)
            elif isinstance(step, float):
                await exchange.pause(step)
            else:
                to = max(at, round(step[0] * len(said)))
                await exchange.send(said[at:to])
                at = to
        if self.end == "hold":
            await exchange.hold()
        elif self.end == "reset":
            exchange.reset()
        elif self.end == "close":
            exchange.close()


PAUSES = st.sampled_from([0.0, 0.001, 0.01, 0.03])
SHARES = st.one_of(st.just((1.0,)), st.tuples(st.floats(0, 1)))
ENDS = st.sampled_from(["keep", "close", "close", "reset", "reset", "hold"])
SCRIPTS = st.one_of(
    st.builds(
        Script, st.sampled_from(FRAMED), st.lists(st.one_of(SHARES, SHARES, JUNK, PAUSES), min_size=1, max_size=5), ENDS
    ),
    st.builds(
        Script, st.sampled_from(sorted(WORDS)), st.lists(st.one_of(SHARES, PAUSES), min_size=1, max_size=4), ENDS
    ),
)


async def ask(views: Mapping[str, Any], view: str, pool: APIKeyPool, log: Any, server: FaultServer) -> float:
    """Ask once; return the seconds it took."""
    tasks = asyncio.all_tasks()
    expected = spoken.TEXT if view in {"chat", "pieces"} else WEATHER
    started = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS + 5):
            value = await views[view]()
    except SimpleLLMFuncError as error:
        output = "".join([str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)])
    else:
        output = repr(value)
        assert value == expected, "silently wrong"
    seconds = time.monotonic() - started
    assert KEY not in output + log.getvalue(), "a secret"
    assert pool.tasks == 0
    assert connections_taken() == 0, "a connection is still in use"
    until = time.monotonic() + 1.0
    # A connection that the server is about to accept has a task too, which is not the library's.
    while left := asyncio.all_tasks() - tasks - server.tasks:
        assert time.monotonic() < until, left
        await asyncio.sleep(0.001)
    return seconds


async def live_through(wire: str, questions: list[tuple[str, list[Script]]]) -> None:
    """Ask one model the questions, each by a view; the server plays the scripts of each, and then answers well."""
    scripts: list[Script] = []

    async def act(exchange: Exchange) -> None:
        await (scripts.pop(0).act(exchange) if scripts else spoken.good(exchange))

    await runner.warm_up()
    tasks, before, pool = asyncio.all_tasks(), sockets(), APIKeyPool([KEY])
    idle = mock.patch.object(http_model, "IDLE_SECONDS", SILENCE)
    end = mock.patch.object(replies, "_AFTER_END_SECONDS", SILENCE)
    with idle, end, captured_log() as log:
        async with FaultServer({"random": [act]}) as server:
            address = server.address("random")
            llm = model_of(wire, address, api_key_pool=pool, max_retries=1, retry_delay=0.002, timeout=SILENCE)
            views = views_of(llm, Weather, max_reasks=0, deadline=SECONDS, retry_times=0)
            for view, drawn in questions:
                # A machine that is busy with other things makes any call late: late is what is late three times.
                for _ in range(3):
                    scripts[:] = drawn
                    if await ask(views, view, pool, log, server) < SECONDS + GRACE:
                        break
                else:
                    raise AssertionError("later than the deadline allows, three times")
        assert await leftovers(tasks, before) == []
        assert server.failures == []


QUESTIONS = st.lists(
    st.tuples(
        st.sampled_from(["function", "values", "chat", "pieces", "def"]), st.lists(SCRIPTS, min_size=1, max_size=3)
    ),
    min_size=1,
    max_size=4 if IS_LONG else 2,
)


# What belongs to a wire is how its replies are read; the rest is tried on chat completions.
@pytest.mark.parametrize(("wire", "examples"), [("chat", 300), ("messages", 100), ("responses", 100), ("gemini", 100)])
@pytest.mark.timeout(3 * 3600 if IS_LONG else 120)
def test_a_model_lives_through_any_server(wire: str, examples: int) -> None:
    @settings(
        settings.get_profile("faults-long"),
        max_examples=5_000 if IS_LONG else examples,
        derandomize=not IS_LONG,
        database=settings.default.database if IS_LONG else None,
    )
    @given(QUESTIONS)
    def play(questions: list[tuple[str, list[Script]]]) -> None:
        asyncio.run(live_through(wire, questions))

    play()
