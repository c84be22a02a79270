"""What a question takes from a budget, however it ends: answered, broken off, left, unanswered, refused, never sent."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json

import pytest

from SimpleLLMFunc import AbortSignal, CachedLLM, FallbackLLM, OpenAICompatible, budget, forbid_real_calls
from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BudgetExceeded,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    RateLimited,
    RunAborted,
    ServerUnavailable,
    StreamInterrupted,
    UsageError,
)
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.spending.deadline import Deadline
from SimpleLLMFunc.interface.spending.tokens import estimate_text_tokens, estimate_tokens
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import ChatCompletion
from tests.faults.replies import TEXT, USAGE, call, chunk, completion, good, pieces_of, replies, sends, status, streams
from tests.faults.server import FaultServer
from tests.faults.stream_faults import breaks_after
from tests.support.functions import async_function_of, chat

TOLD = USAGE["total_tokens"]
ASKED = "What will the weather be in Köln today, and what tomorrow? Please be brief."


def without_usage(**fields):
    data = completion(TEXT, **fields)
    del data["usage"]
    return data


SILENT_STREAM = streams(
    chunk(role="assistant"), *(chunk(content=each) for each in pieces_of(TEXT)), chunk("stop"), "[DONE]"
)


def begun(view, llm, **options):
    if view == "stream":
        return async_function_of(llm, **options).stream(ASKED)
    return chat(llm, stream=True, **options)([], ASKED)


def views(llm, **options):
    """The ways to ask."""

    async def read_to_the_end(view):
        return [piece async for piece in begun(view, llm, **options)]

    return {
        "whole": lambda: async_function_of(llm, **options)(ASKED),
        "stream": lambda: read_to_the_end("stream"),
        "chat": lambda: read_to_the_end("chat"),
    }


VIEWS = ["whole", "stream", "chat"]
STREAMED = ["stream", "chat"]


@contextlib.asynccontextmanager
async def asked(*acts, **options):
    """A model whose server does this, inside a budget."""
    options = {"max_retries": 0, "retry_delay": 0.001, **options}
    async with FaultServer({"play": acts or [good]}) as server:
        llm = OpenAICompatible("m", base_url=server.address("play"), api_key="sk-test-12345678", **options)
        with budget(tokens=10**9) as spent:
            yield llm, spent, server
        assert spent._reserved == 0
        assert spent._reserved_usd == 0
        assert spent.requests == len(server.requests("play"))


def read(server, number=0):
    """About how many tokens the model read for a request."""
    return estimate_tokens(server.requests("play")[number].body["messages"])


# --- answered --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
async def test_what_the_service_tells_counts(view):
    async with asked() as (llm, spent, _):
        await views(llm)[view]()
    assert spent.tokens == TOLD


async def test_calls_and_reasoning_are_written_too():
    def work(text: str) -> str:
        """Work."""
        return "done"

    calls = without_usage(tool_calls=[call("work", {"text": "x" * 400})], finish_reason="tool_calls")
    async with asked(replies(calls), replies(without_usage(reasoning_content="y" * 800))) as (llm, spent, server):
        await views(llm, toolkit=[work])["whole"]()
    tools = estimate_text_tokens(json.dumps(server.requests("play")[0].body["tools"], separators=(",", ":")))
    assert spent.tokens > read(server) + read(server, 1) + 2 * tools + 100 + 200


@pytest.mark.parametrize("view", VIEWS)
async def test_a_limit_holds_where_nothing_is_told(view):
    act = replies(without_usage()) if view == "whole" else SILENT_STREAM
    async with asked(act) as (llm, _, server):
        with budget(tokens=100) as spent, pytest.raises(BudgetExceeded, match="tokens"):
            for _ in range(10):
                await views(llm)[view]()
        assert len(server.requests("play")) < 5
        assert spent._reserved == 0


@pytest.mark.parametrize("view", VIEWS)
async def test_where_it_tells_nothing_or_zeros_an_estimate_counts(view):
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    act = replies({**completion(TEXT), "usage": zeros}) if view == "whole" else streams(
        chunk(content=TEXT), chunk("stop"), {**chunk(), "choices": [], "usage": zeros}, "[DONE]"
    )  # fmt: skip
    for each in (act, replies(without_usage()) if view == "whole" else SILENT_STREAM):
        async with asked(each) as (llm, spent, server):
            await views(llm)[view]()
        assert spent.tokens == read(server) + estimate_text_tokens(TEXT) > read(server) > 20


# --- broken off, and left --------------------------------------------------------------------------------

HALF = "".join(pieces_of(TEXT)[:3])


@pytest.mark.parametrize("view", STREAMED)
@pytest.mark.parametrize("end", ["close", "reset", None])
async def test_a_stream_that_breaks_off_takes_what_it_has_shown(end, view):
    async with asked(breaks_after(3, end, pause=0.05)) as (llm, spent, server):
        with pytest.raises(StreamInterrupted):
            await views(llm)[view]()
    assert spent.tokens == read(server) + estimate_text_tokens(HALF)


async def left(stream, how="break"):
    """Leave a stream after its first piece."""
    async for _ in stream:
        if how == "cancel":
            task = asyncio.current_task()
            asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.sleep(30)
        if how == "drop":
            return
        break
    await stream.aclose()


@pytest.mark.parametrize("view", STREAMED)
@pytest.mark.parametrize("how", ["break", "cancel", "drop"])
async def test_a_stream_that_is_left_takes_what_has_arrived(how, view):
    async with asked(breaks_after(3, "hold")) as (llm, spent, server):
        task = asyncio.create_task(left(begun(view, llm), how))
        await asyncio.wait({task})
        assert task.cancelled() == (how == "cancel")
        del task
        gc.collect()
        async with asyncio.timeout(5):
            while spent._reserved:
                await asyncio.sleep(0.001)  # the loop closes what nobody holds any more
    # Of the three pieces one was taken at least; what had arrived with it may count as well.
    assert 0 < spent.tokens - read(server) <= estimate_text_tokens(HALF)


@pytest.mark.parametrize("view", STREAMED)
async def test_the_usage_that_came_before_the_break_counts(view):
    for content in ("Half", ""):
        async with asked(streams({**chunk(content=content), "usage": USAGE}, end="close")) as (llm, spent, _):
            with pytest.raises(StreamInterrupted):
                await views(llm)[view]()
        assert spent.tokens == TOLD


@pytest.mark.parametrize("view", STREAMED)
async def test_a_stream_that_began_again_was_read_twice(view):
    async with asked(breaks_after(0, "close", pause=0.02), good, max_retries=1) as (llm, spent, server):
        await views(llm)[view]()
        assert len(server.requests("play")) == 2
    assert spent.tokens == TOLD + read(server)


# --- without a reply -------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("deadline", "timeout", "error"), [(1.0, 600, DeadlineExceeded), (None, 0.2, ConnectionFailed)]
)
async def test_a_question_that_was_waited_for_in_vain_was_read(deadline, timeout, error, view):
    async with asked(sends(end="hold"), timeout=timeout) as (llm, spent, server):
        with pytest.raises(error):
            await views(llm, deadline=deadline)[view]()
    assert spent.tokens == read(server)


@pytest.mark.parametrize("view", VIEWS)
async def test_so_was_one_whose_reply_is_none(view):
    async with asked(replies(["hello"]) if view == "whole" else streams("{no json")) as (llm, spent, server):
        with pytest.raises(BadReply):
            await views(llm)[view]()
    assert spent.tokens == read(server)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("how", ["cancel", "abort"])
async def test_so_was_one_that_no_one_waited_for(how, view):
    signal = AbortSignal()
    async with asked(sends(end="hold")) as (llm, spent, server):
        task = asyncio.create_task(views(llm, abort_signal=signal)[view]())
        await server.until(lambda: bool(server.requests("play")))
        task.cancel() if how == "cancel" else signal.abort()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        # A chat that is aborted ends.
        assert isinstance(ended, (asyncio.CancelledError, RunAborted, list))
    assert spent.tokens == read(server)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("act", "error", "requests"),
    [
        (status(503), ServerUnavailable, 3), (status(429), RateLimited, 3), (status(401), AuthenticationError, 1),
        (sends(end="close"), ConnectionFailed, 3),
    ],
)  # fmt: skip
async def test_a_service_that_refuses_takes_nothing_but_the_requests(act, error, requests, view):
    async with asked(act, max_retries=2) as (llm, spent, _):
        with pytest.raises(error):
            await views(llm)[view]()
    assert (spent.tokens, spent.requests) == (0, requests)


# --- never sent ------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def no_key(llm, monkeypatch):
    yield OpenAICompatible("m", base_url="http://far.example/v1"), ConfigError


@contextlib.asynccontextmanager
async def forbidden(llm, monkeypatch):
    with forbid_real_calls():
        yield llm, UsageError


@contextlib.asynccontextmanager
async def in_queue(llm, monkeypatch):
    slow = OpenAICompatible("m", base_url=llm.base_url, rate_limit_capacity=1, rate_limit_refill_rate=0.001)
    await slow._limits.wait("m", 0, Deadline.after(None))  # takes all there is
    yield slow, DeadlineExceeded


@contextlib.asynccontextmanager
async def open_circuit(llm, monkeypatch):
    failed = AttemptFailed(RateLimited("m", retry_after=60.0), retry_after=60.0)
    llm._circuit.failed(await llm._circuit.enter(Deadline.after(None)), failed)
    yield llm, RateLimited


@contextlib.asynccontextmanager
async def all_members(llm, monkeypatch):
    async with open_circuit(llm, monkeypatch) as (down, error):
        yield FallbackLLM(CachedLLM(down, monkeypatch.folder / "a.sqlite"), down), error


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "place", [no_key, forbidden, in_queue, open_circuit, all_members], ids=lambda place: place.__name__
)
async def test_what_never_left_takes_nothing(place, view, monkeypatch, tmp_path):
    monkeypatch.folder = tmp_path
    async with asked() as (llm, spent, server), place(llm, monkeypatch) as (model, error):
        with pytest.raises(error):
            # In the queue nothing else ends the waiting; a cache has its file to open first.
            await views(model, deadline=0.2 if place is in_queue else 30)[view]()
        assert server.requests("play") == []
    assert (spent.tokens, spent.requests) == (0, 0)


# --- caches, chains, doubles -----------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
async def test_an_answer_from_a_cache_takes_nothing(view, tmp_path):
    async with asked() as (llm, spent, server):
        cached = CachedLLM(llm, tmp_path / "a.sqlite")
        for _ in range(3):
            await views(cached)[view]()
        cached.close()
        assert len(server.requests("play")) == 1
    assert spent.tokens == TOLD


@pytest.mark.parametrize("view", VIEWS)
async def test_the_member_that_answers_is_paid_and_the_one_that_refused_is_not(view):
    async with FaultServer({"down": [status(503)], "up": [good]}) as server:
        members = [OpenAICompatible("m", base_url=server.address(play), max_retries=0) for play in ("down", "up")]
        with budget(tokens=10**9) as spent:
            await views(FallbackLLM(*members))[view]()
    assert (spent.tokens, spent.requests) == (TOLD, 2)


@pytest.mark.parametrize("view", STREAMED)
async def test_what_broke_before_its_text_was_read_by_the_first_member_too(view):
    async with FaultServer({"breaks": [breaks_after(0, "close", pause=0.02)], "play": [good]}) as server:
        members = [OpenAICompatible("m", base_url=server.address(play), max_retries=0) for play in ("breaks", "play")]
        with budget(tokens=10**9) as spent:
            await views(FallbackLLM(*members))[view]()
    assert (spent.tokens, spent.requests) == (TOLD + read(server), 2)


async def test_the_loser_of_a_race_was_read():
    async with FaultServer({"silent": [sends(end="hold")], "play": [good]}) as server:
        members = [OpenAICompatible("m", base_url=server.address(play)) for play in ("silent", "play")]
        with budget(tokens=10**9) as spent:
            await views(FallbackLLM(*members, hedge_after=0.05))["whole"]()
    assert (spent.tokens, spent.requests) == (TOLD + read(server), 2)


async def test_a_double_that_fails_was_asked():
    late = UsageError("no")
    late.tries = 1
    with budget(tokens=10**9) as spent:
        for failure in (RuntimeError("no"), RateLimited("m"), late, UsageError("no")):
            with pytest.raises(type(failure)):
                await views(ScriptedLLM(failure))["whole"]()
    # The last one broke a rule of ours, so that nothing had left.
    assert (spent.tokens, spent.requests, spent._reserved) == (0, 3, 0)


# --- money -----------------------------------------------------------------------------------------------


class Priced(ScriptedLLM):
    """One dollar for each token read, two for each one written."""

    def price(self, usage, model=""):
        return usage.input_tokens + 2.0 * usage.output_tokens


def told(usage=None, text=TEXT):
    return ChatCompletion.from_dict(without_usage() if usage is None else {**completion(text), "usage": usage})


@pytest.mark.parametrize("usage", [None, USAGE])
async def test_what_is_estimated_is_priced(usage):
    llm = Priced(told(usage))
    with budget(usd=10**6) as spent:
        await views(llm)["whole"]()
    written = estimate_text_tokens(TEXT)
    expected = (11 + 2 * 5) if usage else (estimate_tokens(llm.requests[0]) + 2 * written)
    assert spent.usd == pytest.approx(expected)
    assert spent._reserved_usd == 0


async def test_a_limit_in_money_holds_where_nothing_is_told():
    llm = Priced(told(), repeat=True)
    with budget(usd=200) as spent, pytest.raises(BudgetExceeded, match="usd"):
        for _ in range(10):
            await views(llm)["whole"]()
    assert 1 <= (asked_before := len(llm.calls)) < 5
    assert spent._reserved_usd == 0
    with budget(usd=1), pytest.raises(BudgetExceeded, match="usd"):
        await views(llm)["whole"]()
    assert len(llm.calls) == asked_before, "what the question costs is known before it is asked"


async def test_a_question_that_was_not_waited_for_is_priced():
    llm = Priced(lambda _: asyncio.sleep(30))
    with budget(usd=10**6) as spent, pytest.raises(DeadlineExceeded):
        await views(llm, deadline=0.5)["whole"]()
    assert spent.usd == estimate_tokens(llm.requests[0])
