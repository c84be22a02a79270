"""One circuit per model: storms cost a few requests, and nobody waits for ever."""

import asyncio
import copy
import gc
import math
import threading
import time

import pytest

from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    RateLimited,
    ServerUnavailable,
)
from SimpleLLMFunc.interface.attempts.circuit import Circuit
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
from SimpleLLMFunc.interface.attempts.learned_rate import Pace
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import sessions
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.spending.deadline import Deadline
from SimpleLLMFunc.type import ChatCompletion
from tests.support.server import Answer, LoopbackServer, error_answer, text_answer

HELLO = [{"role": "user", "content": "hello"}]


class Clock:
    """Seconds that pass when the test says so."""

    now = 1000.0

    def __call__(self):
        return self.now


def down(*, retry_after=None, status=503):
    error = ServerUnavailable("m", status=503) if status == 503 else RateLimited("m", retry_after=retry_after)
    return AttemptFailed(error, retry_after=retry_after)


def admitted(circuit, *, spare=3, seen=-1, seconds=None, longest_wait=600.0):
    return circuit.admit(spare=spare, seen=seen, clock=Deadline.after(seconds), longest_wait=longest_wait)


async def tripped(clock, **options):
    """A circuit that has just opened for 10 seconds."""
    circuit = Circuit(0.5, clock=clock, rng=lambda: 0.5)
    circuit.failed(await admitted(circuit), down(retry_after=10, **options))
    return circuit


async def settled():
    """Let all that can run, run."""
    for _ in range(20):
        await asyncio.sleep(0)


# --- when it opens ---------------------------------------------------------------------------------------


async def test_closed_it_lets_everybody_through():
    circuit = Circuit(0.5, clock=Clock())
    tickets = [await admitted(circuit) for _ in range(1000)]
    assert circuit.is_closed
    for ticket in tickets:
        circuit.passed(ticket)
        circuit.forget(ticket)
    assert circuit.is_closed


async def test_it_opens_after_failures_in_a_row():
    circuit = Circuit(0.5, clock=Clock())
    for number in range(12):
        ticket = await admitted(circuit)
        circuit.passed(ticket) if number % 4 == 3 else circuit.failed(ticket, down())
    assert circuit.is_closed
    for _ in range(5):
        circuit.failed(await admitted(circuit), down())
    assert not circuit.is_closed


@pytest.mark.parametrize("status", [429, 503])
async def test_it_opens_at_once_where_the_service_asks_for_a_pause(status):
    assert not (await tripped(Clock(), status=status)).is_closed


@pytest.mark.parametrize(
    "failed",
    [
        AttemptFailed(BadRequest("m", status=400), again="never"),
        AttemptFailed(AuthenticationError("m", status=401), again="never"),
        AttemptFailed(BadRequest("m", status=408)),
        AttemptFailed(BadReply("m", problem="odd"), again="once"),
        AttemptFailed(RateLimited("m", kind="quota"), again="never"),
        AttemptFailed(ConnectionFailed("m", reason="TLS"), again="never"),
    ],
)
async def test_other_failures_do_not_count(failed):
    circuit = Circuit(0.5, clock=Clock())
    for _ in range(20):
        circuit.failed(await admitted(circuit), failed)
    assert circuit.is_closed


# --- while it is open ------------------------------------------------------------------------------------


async def test_one_probe_goes_first_and_the_others_follow_in_order():
    clock = Clock()
    circuit = await tripped(clock)
    order = []

    async def call(number):
        ticket = await admitted(circuit)
        order.append(number)
        return ticket

    calls = [asyncio.create_task(call(number)) for number in range(7)]
    await settled()
    assert order == []
    clock.now += 10
    circuit._wake_first()
    await settled()
    assert order == [0]
    for taken, gone in ((0, 3), (1, 5), (2, 7)):
        circuit.passed(await calls[taken])
        await settled()
        assert order == list(range(gone))
    for call_ in calls[3:]:
        circuit.passed(await call_)
    assert circuit.is_closed


async def test_a_request_that_is_not_refused_soon_has_probably_been_taken():
    clock = Clock()
    circuit = await tripped(clock)
    calls = [asyncio.create_task(admitted(circuit)) for _ in range(4)]
    clock.now += 10
    circuit._wake_first()
    await settled()
    assert [call.done() for call in calls] == [False] * 4 or calls[0].done()
    await calls[0]
    clock.now += 1.1
    circuit._wake_first()
    await settled()
    assert [call.done() for call in calls] == [True, True, True, False]
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)


async def test_a_probe_that_fails_counts_for_all_who_wait():
    clock = Clock()
    circuit = await tripped(clock)
    patient, impatient = (asyncio.create_task(admitted(circuit, spare=spare)) for spare in (4, 2))
    await settled()
    for _ in range(2):
        clock.now = circuit._until
        circuit._wake_first()
        await settled()
        probe = patient if patient.done() else None
        assert probe is not None
        circuit.failed(await probe, down(retry_after=10))
        patient = asyncio.create_task(admitted(circuit, spare=4, seen=circuit._epoch))
        await settled()
        if impatient.done():
            break
    with pytest.raises(ServerUnavailable) as caught:
        await impatient
    assert caught.value.tries == 0
    patient.cancel()
    await asyncio.wait({patient})


async def test_who_comes_while_it_is_open_has_one_try_less():
    circuit = await tripped(Clock())
    with pytest.raises(ServerUnavailable):
        await admitted(circuit, spare=1)
    # The one whose own failure opened it has counted that already.
    waiting = asyncio.create_task(admitted(circuit, spare=1, seen=circuit._epoch))
    await settled()
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})


async def test_who_cannot_wait_so_long_is_told_at_once_and_for_how_long():
    clock = Clock()
    circuit = await tripped(clock, status=429)
    clock.now += 4
    with pytest.raises(RateLimited) as caught:
        await admitted(circuit, seconds=3)
    assert caught.value.retry_after == 6
    with pytest.raises(RateLimited):
        await admitted(circuit, longest_wait=5)


async def test_who_does_not_get_a_turn_in_time_is_told():
    clock = Clock()
    circuit = await tripped(clock)
    clock.now += 10
    await admitted(circuit)  # the probe, of which nothing is heard
    with pytest.raises(DeadlineExceeded, match="take requests again"):
        await admitted(circuit, seconds=0.05)
    assert not circuit._queue


async def test_a_probe_that_is_cancelled_makes_room():
    clock = Clock()
    circuit = await tripped(clock)
    clock.now += 10
    probe = await admitted(circuit)
    waiting = asyncio.create_task(admitted(circuit))
    await settled()
    assert not waiting.done()
    circuit.forget(probe)
    circuit.forget(probe)
    await asyncio.wait_for(waiting, 5)


async def test_who_is_cancelled_while_it_waits_leaves_nothing():
    clock = Clock()
    circuit = await tripped(clock)
    clock.now += 10
    probe = await admitted(circuit)
    first, second = (asyncio.create_task(admitted(circuit)) for _ in range(2))
    await settled()
    first.cancel()
    await asyncio.wait({first})
    circuit.passed(probe)
    circuit.passed(await asyncio.wait_for(second, 5))
    assert (circuit.is_closed, circuit._unheard) == (True, 0)


async def test_what_was_sent_before_it_opened_is_no_news():
    clock = Clock()
    circuit = Circuit(0.5, clock=clock, rng=lambda: 0.5)
    tickets = [await admitted(circuit) for _ in range(10)]
    circuit.failed(tickets[0], down(retry_after=5))
    epoch = circuit._epoch
    for ticket in tickets[1:5]:
        assert circuit.failed(ticket, down(retry_after=1)) == epoch
    assert circuit._until == clock.now + 5
    circuit.failed(tickets[5], down(retry_after=9))
    assert circuit._until == clock.now + 9
    circuit.passed(tickets[6])
    assert not circuit.is_closed


async def test_pauses_of_our_own_grow():
    clock = Clock()
    circuit = Circuit(0.5, clock=clock, rng=lambda: 0.5)
    for _ in range(5):
        circuit.failed(await admitted(circuit), down())
    pauses = []
    for _ in range(8):
        pauses.append(circuit._until - clock.now)
        clock.now = circuit._until
        circuit.failed(await admitted(circuit), down())
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]


async def test_a_success_forgives():
    clock = Clock()
    circuit = await tripped(clock)
    for _ in range(3):
        clock.now = circuit._until
        circuit.failed(await admitted(circuit), down())
    clock.now = circuit._until
    probe = await admitted(circuit)
    waiting = asyncio.create_task(admitted(circuit))
    await settled()
    circuit.passed(probe)
    ticket = await waiting
    assert ticket.shared == 0
    circuit.passed(ticket)
    assert circuit.is_closed


def test_it_spans_threads_and_forgets_loops_that_died():
    clock = Clock()
    circuit = asyncio.run(tripped(clock))
    dead = asyncio.new_event_loop()
    task = dead.create_task(admitted(circuit))
    dead.run_until_complete(settled())
    dead.close()
    clock.now += 10
    got = []
    threads = [threading.Thread(target=lambda: got.append(asyncio.run(passed(circuit)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4
    assert circuit.is_closed
    task._log_destroy_pending = False
    del task
    gc.collect()


async def passed(circuit):
    ticket = await admitted(circuit)
    circuit.passed(ticket)
    return ticket


def test_a_forked_child_does_not_wait_for_the_parents_calls():
    clock = Clock()

    async def in_parent():
        circuit = await tripped(clock)
        clock.now += 10
        await admitted(circuit)
        waiting = asyncio.create_task(admitted(circuit))
        await settled()
        circuit.renew_in_child()
        assert (len(circuit._queue), circuit._unheard) == (0, 0)
        waiting.cancel()
        await asyncio.wait({waiting})
        return circuit

    circuit = asyncio.run(in_parent())
    asyncio.run(asyncio.wait_for(passed(circuit), 5))


# --- how fast --------------------------------------------------------------------------------------------


def test_a_pace_is_what_was_taken():
    pace = Pace()
    for number in range(100):
        pace.took(1000 + number / 100)
    assert pace.slow_down(1001, is_loaded=False)
    assert pace.is_set(1001)
    pace.sent(1001)
    assert 1001 + 0.005 - 0.02 <= pace.next_at(1001) <= 1001 + 1 / 90


def test_a_pace_is_not_learned_from_a_few():
    pace = Pace()
    for _ in range(19):
        pace.took(1000)
    assert pace.slow_down(1000, is_loaded=False)
    assert not pace.is_set(1000)
    assert pace.next_at(1000) == -math.inf
    assert not Pace().slow_down(1000, is_loaded=True)


def test_a_pace_is_not_learned_from_long_ago():
    pace = Pace()
    for _ in range(100):
        pace.took(1000)
    assert not pace.slow_down(1500, is_loaded=False)
    assert not pace.is_set(1500)


def test_a_pace_never_falls_below_half_at_once_and_ends_some_time_after_the_last_refusal():
    pace = Pace()
    for _ in range(1000):
        pace.took(1000)
    pace.slow_down(1000, is_loaded=True)
    fast = pace._rate
    for _ in range(5):
        pace.took(1001)
    pace.slow_down(1010, is_loaded=True)
    assert pace._rate == pytest.approx(fast / 2 * 0.95)
    assert pace.is_set(1039)
    assert not pace.is_set(1041)


def test_a_pace_grows():
    pace = Pace()
    for _ in range(10):
        pace.took(0.1)
    pace.slow_down(0.2, is_loaded=True)

    def gap(now):
        pace._next = now
        pace.sent(now)
        return pace._next - now

    gaps = [gap(0.2 + seconds) for seconds in range(10)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < gaps[0] / 3


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
    monkeypatch.setattr(sessions, "CONNECT_SECONDS", 300.0)


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


@pytest.mark.heavy  # some hundred calls
@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(("status", "headers"), [(429, None), (503, None), (503, {"retry-after-ms": "200"})])
async def test_while_the_service_is_down_a_storm_costs_a_few_probes(status, headers):
    calls = 300
    async with LoopbackServer(Wave(calls, lambda: error_answer(status, headers=headers), seconds=1.5)) as server:
        # A probe that fails is a failed try of everybody: more tries than there can be probes in that time.
        _, replies = storm_of(server, calls, max_retries=30)
        assert said(await replies) == {"ok"}
        assert len(server.requests) <= 2 * calls + 30


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


@pytest.mark.heavy  # some hundred calls
@pytest.mark.usefixtures("_patient")
async def test_a_service_that_takes_some_and_refuses_the_rest_is_asked_no_faster_than_it_takes():
    level, since = 100.0, time.monotonic()

    def answer(request):
        nonlocal level, since
        now = time.monotonic()
        level, since = min(100.0, level + (now - since) * 200), now
        if level < 1:
            return error_answer(429, headers={"retry-after-ms": "500"})
        level -= 1
        return "ok"

    async with LoopbackServer(answer) as server:
        _, replies = storm_of(server, 600, max_retries=10)
        assert said(await replies) == {"ok"}
        assert len(server.requests) <= 600 + 1.3 * 600


@pytest.mark.heavy  # some hundred calls
async def test_nobody_at_the_door_is_a_storm_too():
    async with LoopbackServer() as gone:
        pass
    llm, errors = storm_of(gone, 200)
    assert {type(error) for error in await errors} == {ConnectionFailed}
    assert not llm._circuit.is_closed


async def test_cancelled_and_timed_out_calls_leave_the_circuit_as_it_was():
    async with LoopbackServer(lambda request: Answer(hold=asyncio.Event(), body=b"")) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, retry_delay=0.01)
        server.reply_status(503, headers={"retry-after-ms": "10"})
        with pytest.raises(DeadlineExceeded):
            await llm.chat(HELLO, deadline=0.2)
        assert llm._circuit._unheard == 0
        calls = [asyncio.create_task(llm.chat(HELLO)) for _ in range(10)]
        await server.received(3)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert (llm._circuit._unheard, len(llm._circuit._queue)) == (0, 0)
        server.handler = text_answer("ok")
        assert (await llm.chat(HELLO, deadline=5)).text == "ok"


async def test_a_limited_key_lets_the_others_go_on_at_once():
    limited = "sk-aaaaaaaa"

    def answer(request):
        return error_answer(429, headers={"retry-after": "30"}) if request.key == limited else "ok"

    async with LoopbackServer(answer) as server:
        pool = APIKeyPool([limited, "sk-bbbbbbbb", "sk-cccccccc"])
        llm = OpenAICompatible("m", base_url=server.base_url, api_key_pool=pool)
        replies = await asyncio.wait_for(asyncio.gather(*(llm.chat(HELLO) for _ in range(30))), 20)
        assert {reply.text for reply in replies} == {"ok"}
        assert llm._circuit.is_closed
        before = len(server.requests)
        await asyncio.gather(*(llm.chat(HELLO) for _ in range(30)))
        assert len(server.requests) == before + 30
        assert limited not in {request.key for request in server.requests[before:]}


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


async def test_a_refused_key_cools_down_while_the_others_go_on():
    refused = "sk-aaaaaaaa"
    handler = lambda request: error_answer(401) if request.key == refused else "ok"
    async with LoopbackServer(handler) as server:
        pool = APIKeyPool([refused, "sk-bbbbbbbb"])
        llm = OpenAICompatible("m", base_url=server.base_url, api_key_pool=pool)
        replies = [await asyncio.gather(llm.chat(HELLO), return_exceptions=True) for _ in range(20)]
        errors = [reply for (reply,) in replies if isinstance(reply, AuthenticationError)]
        assert len(errors) == 1
        assert llm._circuit.is_closed


async def test_a_copied_model_shares_its_circuit():
    llm = OpenAICompatible("m", base_url="http://127.0.0.1:9/v1")
    assert copy.copy(llm)._circuit is llm._circuit
