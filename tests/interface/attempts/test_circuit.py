"""One circuit per model: storms cost a few requests, and nothing waits for ever."""

import asyncio
import math
import time

import pytest

from SimpleLLMFunc import AuthenticationError, BadReply
from SimpleLLMFunc.errors import BadRequest, ConnectionFailed, DeadlineExceeded, RateLimited, ServerUnavailable
from SimpleLLMFunc.interface.attempts import circuit as module
from SimpleLLMFunc.interface.attempts.circuit import Circuit
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import timeouts
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.spending.deadline import Deadline
from SimpleLLMFunc.type import ChatCompletion
from tests.support.asking import HELLO
from tests.support.clock import Clock
from tests.support.server import Answer, LoopbackServer, error_answer, text_answer


def down(*, retry_after=None, status=503):
    error = ServerUnavailable("m", status=503) if status == 503 else RateLimited("m", retry_after=retry_after)
    return AttemptFailed(error, retry_after=retry_after)


def entered(circuit, *, seconds=None, tries=0):
    return circuit.enter(Deadline.after(seconds), tries)


def is_closed(circuit):
    """Whether requests leave as they come."""
    return circuit._error is None


async def tripped(clock, **options):
    """A circuit that has just opened for 10 seconds."""
    circuit = Circuit(0.5, clock=clock, rng=lambda: 0.5)
    circuit.failed(await entered(circuit), down(retry_after=10, **options))
    return circuit


async def half_open(clock):
    """A circuit whose pause is over, and the ticket of its probe."""
    circuit = await tripped(clock)
    clock.now += 10
    return circuit, await entered(circuit)


# --- when it opens ---------------------------------------------------------------------------------------


async def test_it_opens_after_failures_in_a_row():
    circuit = Circuit(0.5, clock=Clock())
    for number in range(12):
        ticket = await entered(circuit)
        circuit.passed(ticket) if number % 4 == 3 else circuit.failed(ticket, down())
    assert is_closed(circuit)
    for _ in range(5):
        circuit.failed(await entered(circuit), down())
    assert not is_closed(circuit)


@pytest.mark.parametrize("status", [429, 503])
async def test_it_opens_at_once_where_the_service_asks_for_a_pause(status):
    assert not is_closed(await tripped(Clock(), status=status))


@pytest.mark.parametrize(
    "failed",
    [
        AttemptFailed(BadRequest("m", status=400), again="never"), AttemptFailed(BadRequest("m", status=408)),
        AttemptFailed(AuthenticationError("m", status=401), again="never"),
        AttemptFailed(BadReply("m", problem="odd"), again="once"),
        AttemptFailed(RateLimited("m", kind="quota"), again="never"),
        AttemptFailed(ConnectionFailed("m", reason="TLS"), again="never"),
    ],
)  # fmt: skip
async def test_other_failures_do_not_count(failed):
    circuit = Circuit(0.5, clock=Clock())
    for _ in range(20):
        circuit.failed(await entered(circuit), failed)
    assert is_closed(circuit)
    circuit, probe = await half_open(Clock())
    circuit.failed(probe, failed)
    assert is_closed(circuit) is isinstance(failed.error, (BadRequest, AuthenticationError))


# --- while it is open ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
async def test_a_call_is_told_at_once_what_the_service_did_and_for_how_long(status):
    clock = Clock()
    circuit = await tripped(clock, status=status)
    clock.now += 4
    with pytest.raises(AttemptFailed) as caught:
        await entered(circuit, tries=2)
    assert caught.value.retry_after == 6
    assert type(caught.value.error) is (ServerUnavailable if status == 503 else RateLimited)
    assert caught.value.error.tries == 2
    if status == 429:
        assert caught.value.error.retry_after == 6


async def test_after_the_pause_one_probe_goes_and_the_others_wait_for_it():
    clock = Clock()
    circuit, probe = await half_open(clock)
    waiting = [asyncio.create_task(entered(circuit)) for _ in range(5)]
    done, _ = await asyncio.wait(waiting, timeout=3 * module._LOOK_AGAIN)
    assert not done
    circuit.passed(probe)
    assert await asyncio.wait_for(asyncio.gather(*waiting), 5) == [probe] * 5
    assert is_closed(circuit)


async def test_a_probe_that_fails_counts_for_all_who_wait():
    clock = Clock()
    circuit, probe = await half_open(clock)
    waiting = [asyncio.create_task(entered(circuit)) for _ in range(5)]
    await asyncio.sleep(0)
    circuit.failed(probe, down(retry_after=7, status=429))
    clock.now += 10  # the next pause is over when they look: even then it was a failure
    for error in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(error, AttemptFailed)
        assert error.retry_after == error.error.retry_after == 0
    assert not is_closed(circuit)


async def test_a_probe_that_is_not_refused_soon_counts_as_a_success():
    clock = Clock()
    circuit, probe = await half_open(clock)
    clock.now += module._GRACE
    assert await entered(circuit) == probe
    assert is_closed(circuit)
    circuit.failed(probe, down(retry_after=10))
    assert not is_closed(circuit), "it was refused after all"


async def test_a_call_that_does_not_get_a_turn_in_time_is_told():
    circuit, _ = await half_open(Clock())
    with pytest.raises(DeadlineExceeded, match="take requests again"):
        await entered(circuit, seconds=0.05)


async def test_a_probe_that_is_cancelled_makes_room():
    circuit, probe = await half_open(Clock())
    waiting = asyncio.create_task(entered(circuit))
    await asyncio.sleep(0)
    circuit.forget(probe)
    circuit.forget(probe)
    assert await asyncio.wait_for(waiting, 5) == probe


async def test_what_was_sent_before_it_opened_is_no_news():
    clock = Clock()
    circuit = Circuit(0.5, clock=clock, rng=lambda: 0.5)
    tickets = [await entered(circuit) for _ in range(10)]
    circuit.failed(tickets[0], down(retry_after=5))
    for ticket, pause in zip(tickets[1:5], (None, None, 1, 2), strict=True):
        late = down(retry_after=pause)
        circuit.failed(ticket, late)
        assert late.retry_after == 5, "its next try does not come before the pause is over"
    late = down(retry_after=9)
    circuit.failed(tickets[5], late)
    assert late.retry_after == 9
    circuit.passed(tickets[6])
    assert not is_closed(circuit)
    clock.now += 8
    with pytest.raises(AttemptFailed):
        await entered(circuit)


async def test_pauses_of_our_own_grow_and_a_success_forgives():
    clock = Clock()
    circuit = Circuit(0.5, clock=clock, rng=lambda: 0.5)

    async def pauses(count):
        for _ in range(count):
            failed = down()
            circuit.failed(await entered(circuit), failed)
            if failed.retry_after is not None:
                clock.now += failed.retry_after
                yield failed.retry_after

    assert [pause async for pause in pauses(12)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    circuit.passed(await entered(circuit))
    assert [pause async for pause in pauses(6)] == [0.5, 1]


# --- storms over a real server ---------------------------------------------------------------------------


class Wave:
    """Refuses what comes while it is down; the first wave when all of it is there, so that no machine is too slow for it.

    Args:
        calls: of the first wave.
        seconds: how long it stays down after that.
    """

    def __init__(self, calls, refusal, seconds=0.0):
        self.calls = calls
        self.refusal = refusal
        self.seconds = seconds
        self.arrived = 0
        self.is_there = asyncio.Event()
        self.since = 0.0

    async def __call__(self, request):
        self.arrived += 1
        if self.arrived <= self.calls:
            if self.arrived == self.calls:
                self.since = time.monotonic()
                self.is_there.set()
            await self.is_there.wait()
            return self.refusal()
        return "ok" if time.monotonic() - self.since >= self.seconds else self.refusal()


@pytest.fixture
def _patient(monkeypatch):
    # Nobody waits for ten seconds on a machine that needs more for a thousand connections.
    monkeypatch.setattr(timeouts, "CONNECT_SECONDS", 300.0)


def said(replies):
    return {reply.text if isinstance(reply, ChatCompletion) else repr(reply) for reply in replies}


def storm_of(server, calls=1000, **options):
    llm = OpenAICompatible("m", base_url=server.base_url, **{"retry_delay": 0.2, **options})
    return llm, asyncio.gather(*(llm.chat(HELLO) for _ in range(calls)), return_exceptions=True)


@pytest.mark.heavy  # a thousand calls
@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(
    ("status", "headers"), [(429, {"retry-after": "1"}), (429, None), (503, {"retry-after-ms": "300"}), (503, None)]
)
async def test_after_the_first_wave_a_storm_costs_no_more_than_the_calls(status, headers):
    async with LoopbackServer(Wave(1000, lambda: error_answer(status, headers=headers))) as server:
        _, replies = storm_of(server)
        assert said(await replies) == {"ok"}
        assert len(server.requests) <= 2000 + 300


@pytest.mark.heavy  # a thousand calls
@pytest.mark.usefixtures("_patient")
async def test_a_service_that_stays_down_costs_a_few_probes():
    async with LoopbackServer(Wave(1000, lambda: error_answer(503, "under repair"), seconds=math.inf)) as server:
        llm, errors = storm_of(server)
        errors = await errors
        assert {type(error) for error in errors} == {ServerUnavailable}
        assert all("under repair" in str(error) for error in errors)
        assert len(server.requests) <= 1000 + 20
        # Later calls are told, too, as long as it lasts.
        before = len(server.requests)
        with pytest.raises(ServerUnavailable):
            await llm.chat(HELLO)
        assert len(server.requests) - before <= 3


async def test_cancelled_and_timed_out_calls_leave_the_circuit_as_it_was():
    async with LoopbackServer(lambda request: Answer(hold=asyncio.Event(), body=b"")) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, retry_delay=0.01)
        server.reply_status(503, headers={"retry-after-ms": "10"})
        with pytest.raises(DeadlineExceeded):
            await llm.chat(HELLO, deadline=1.0)
        assert llm._circuit._probe_since is None
        calls = [asyncio.create_task(llm.chat(HELLO)) for _ in range(10)]
        await server.received(3)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        server.handler = text_answer("ok")
        assert (await llm.chat(HELLO, deadline=5)).text == "ok"


@pytest.mark.parametrize(
    "refusal",
    [error_answer(429, headers={"retry-after": "30"}), error_answer(429, code="insufficient_quota"), error_answer(401)],
)
async def test_a_limited_or_refused_key_lets_the_others_go_on_at_once(refusal):
    limited = "sk-aaaaaaaa"

    def answer(request):
        return refusal if request.key == limited else "ok"

    async with LoopbackServer(answer) as server:
        pool = APIKeyPool([limited, "sk-bbbbbbbb", "sk-cccccccc"])
        llm = OpenAICompatible("m", base_url=server.base_url, api_key_pool=pool)
        replies = await asyncio.wait_for(asyncio.gather(*(llm.chat(HELLO) for _ in range(30))), 20)
        assert {reply.text for reply in replies} == {"ok"}
        assert is_closed(llm._circuit)
        before = len(server.requests)
        await asyncio.gather(*(llm.chat(HELLO) for _ in range(30)))
        assert len(server.requests) == before + 30
        assert limited not in {request.key for request in server.requests[before:]}


async def test_a_limited_key_that_is_the_only_one_is_not_used_before_its_time():
    async with LoopbackServer(lambda request: error_answer(429, headers={"retry-after": "30"})) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, max_retries=0)
        for _ in range(3):
            with pytest.raises(RateLimited):
                await llm.chat(HELLO)
        assert len(server.requests) == 1
        server.handler = lambda request: error_answer(429, headers={"retry-after": "0"})
        llm = OpenAICompatible("m", base_url=server.base_url, max_retries=0)
        with pytest.raises(RateLimited):
            await llm.chat(HELLO)
        assert is_closed(llm._circuit), "it may be asked at once"


async def test_when_all_keys_are_limited_the_first_that_is_ready_is_waited_for():
    pauses = {"sk-aaaaaaaa": "30", "sk-bbbbbbbb": "0.3"}
    seen = []

    def answer(request):
        seen.append(request.key)
        if len(seen) <= 2:
            return error_answer(429, headers={"retry-after": pauses[request.key]})
        return request.key

    async with LoopbackServer(answer) as server:
        pool = APIKeyPool(list(pauses))
        llm = OpenAICompatible("m", base_url=server.base_url, api_key_pool=pool, max_retries=3)
        start = time.monotonic()
        assert (await llm.chat(HELLO)).text == "sk-bbbbbbbb"
        assert 0.29 < time.monotonic() - start < 10
        assert pool.tasks == 0
