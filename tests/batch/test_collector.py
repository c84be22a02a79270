"""The garbage collector while a map runs: it looks less often, in time, and afterwards as it did before."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from SimpleLLMFunc import ConfigError, llm_function, use_llm
from SimpleLLMFunc.batch.collector import RowsInFlight
from SimpleLLMFunc.testing import ScriptedLLM

ROOT = Path(__file__).resolve().parents[2]
USUAL = (700, 10, 10)
ROWS = [f"row {number}" for number in range(200)]
RAISED = (10_000, 1, 1)
"""With all of them in flight."""


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)
    gc.enable()


@llm_function
async def shout(text: str) -> str:
    """Shout the text."""
    raise NotImplementedError


@llm_function
def shout_sync(text: str) -> str:
    """Shout the text."""
    raise NotImplementedError


class Crowd:
    """A model that answers when so many wait, and then does what it is told to."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.waiting = 0
        self.seen: set[tuple[int, int, int]] = set()
        self.is_full = asyncio.Event()
        self.may_go = asyncio.Event()
        self.llm = ScriptedLLM(self._reply, repeat=True)

    async def _reply(self, _request) -> str:
        self.waiting += 1
        if self.waiting == self.size:
            self.is_full.set()
        await self.may_go.wait()
        self.seen.add(gc.get_threshold())
        return "yes"


async def test_with_many_rows_in_flight_it_looks_less_often_and_afterwards_as_before() -> None:
    crowd = Crowd(200)
    with use_llm(crowd.llm):
        mapping = asyncio.create_task(shout.map(ROWS, concurrency=200))
        await crowd.is_full.wait()
        assert gc.get_threshold() == RAISED
        crowd.may_go.set()
        await mapping
    assert crowd.seen == {RAISED}
    assert gc.get_threshold() == USUAL


async def test_a_few_rows_change_nothing() -> None:
    crowd = Crowd(10)
    with use_llm(crowd.llm):
        crowd.may_go.set()
        await shout.map(ROWS, concurrency=10)
    assert crowd.seen == {USUAL}


def test_there_is_an_end_to_it() -> None:
    many = RowsInFlight()
    many.at_least(1_000_000)
    assert gc.get_threshold() == (100_000, 1, 1)
    many.ended()
    many.ended()
    assert gc.get_threshold() == USUAL
    many.at_least(2_000_000)
    assert gc.get_threshold() == USUAL, "it is over"


def test_now_and_then_it_may_look_as_early_as_ever() -> None:
    many = RowsInFlight()
    many.at_least(200)
    seen = []
    for _ in range(2 * 801):
        many.finished()
        seen.append(gc.get_threshold())
    assert [place for place, each in enumerate(seen, 1) if each != RAISED] == [800, 1601]
    assert seen[799] == seen[1600] == (700, 1, 1)
    many.ended()
    assert gc.get_threshold() == USUAL


def test_more_and_more_rows_do_not_put_that_off() -> None:
    many = RowsInFlight()
    for rows in range(100, 300):
        many.at_least(rows)
        for _ in range(4):
            many.finished()
    for _ in range(4 * 99):
        assert gc.get_threshold() == (299 * 50, 1, 1)
        many.finished()
    assert gc.get_threshold() == (700, 1, 1)


def test_after_the_last_row_it_is_as_before_also_while_it_may_look() -> None:
    many = RowsInFlight()
    many.at_least(200)
    for _ in range(800):
        many.finished()
    assert gc.get_threshold() == (700, 1, 1)
    many.ended()
    assert gc.get_threshold() == USUAL


async def test_it_is_as_before_after_an_error() -> None:
    crowd = Crowd(200)

    async def reply(request) -> str:
        await crowd._reply(request)
        raise ConfigError("no")

    with use_llm(ScriptedLLM(reply, repeat=True)):
        mapping = asyncio.create_task(shout.map(ROWS, concurrency=200, on_error="raise"))
        await crowd.is_full.wait()
        assert gc.get_threshold() == RAISED
        crowd.may_go.set()
        with pytest.raises(ConfigError):
            await mapping
    assert gc.get_threshold() == USUAL


async def test_it_is_as_before_after_a_cancellation() -> None:
    crowd = Crowd(200)
    with use_llm(crowd.llm):
        mapping = asyncio.create_task(shout.map(ROWS, concurrency=200))
        await crowd.is_full.wait()
        mapping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await mapping
    assert gc.get_threshold() == USUAL


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal reaches a thread here")
def test_it_is_as_before_after_ctrl_c() -> None:
    seen = []
    has_come = threading.Event()
    waiting = 0

    async def reply(_request) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 200:
            seen.append(gc.get_threshold())
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            has_come.set()
        await asyncio.Event().wait()
        return "never"

    with use_llm(ScriptedLLM(reply, repeat=True)), pytest.raises(KeyboardInterrupt):
        shout_sync.map(ROWS, concurrency=200)
    assert has_come.is_set()
    assert seen == [RAISED]
    assert gc.get_threshold() == USUAL


async def test_a_map_inside_of_a_map_does_not_end_it_for_the_other() -> None:
    outer, inner = Crowd(200), Crowd(100)
    inner.may_go.set()

    async def reply(request) -> str:
        await outer._reply(request)
        return "yes"

    with use_llm(ScriptedLLM(reply, repeat=True)):
        mapping = asyncio.create_task(shout.map(ROWS, concurrency=200))
        await outer.is_full.wait()
    with use_llm(inner.llm):
        await shout.map(ROWS, concurrency=100)
    assert inner.seen == {(15_000, 1, 1)}, "what is in flight in both counts"
    assert gc.get_threshold() == RAISED
    outer.may_go.set()
    await mapping
    assert gc.get_threshold() == USUAL


def test_of_two_threads_the_last_one_puts_it_back() -> None:
    both = threading.Barrier(2)
    first_is_over = threading.Event()
    seen: dict[str, tuple[int, int, int]] = {}

    async def work(name: str) -> None:
        crowd = Crowd(200)
        with use_llm(crowd.llm):
            mapping = asyncio.create_task(shout.map(ROWS, concurrency=200))
            await crowd.is_full.wait()
            await asyncio.to_thread(both.wait, 30)
            if name == "last":
                await asyncio.to_thread(first_is_over.wait, 30)
                seen["while one goes on"] = gc.get_threshold()
            crowd.may_go.set()
            await mapping
            if name == "first":
                first_is_over.set()

    threads = [threading.Thread(target=asyncio.run, args=(work(name),)) for name in ("first", "last")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"while one goes on": RAISED}
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("own", [(701, 10, 10), (700, 20, 10), (50_000, 20, 20), (0, 10, 10)])
async def test_thresholds_of_ones_own_stay(own) -> None:
    gc.set_threshold(*own)
    crowd = Crowd(200)
    crowd.may_go.set()
    with use_llm(crowd.llm):
        await shout.map(ROWS, concurrency=200)
    assert crowd.seen == {own}
    assert gc.get_threshold() == own


async def test_a_collector_that_was_switched_off_stays_as_it_is() -> None:
    gc.disable()
    crowd = Crowd(200)
    crowd.may_go.set()
    with use_llm(crowd.llm):
        await shout.map(ROWS, concurrency=200)
    assert crowd.seen == {USUAL}
    assert not gc.isenabled()


async def test_thresholds_that_are_set_meanwhile_stay() -> None:
    crowd = Crowd(100)
    with use_llm(crowd.llm):
        mapping = asyncio.create_task(shout.map(ROWS, concurrency=200))
        await crowd.is_full.wait()
        gc.set_threshold(1234, 5, 6)
        crowd.may_go.set()
        await mapping
    assert crowd.seen == {(1234, 5, 6)}
    assert gc.get_threshold() == (1234, 5, 6)


ABANDONED = """
import asyncio, gc
from SimpleLLMFunc import llm_function, use_llm
from SimpleLLMFunc.testing import ScriptedLLM

gc.set_threshold(700, 10, 10)
is_full = asyncio.Event()
waiting = 0

async def reply(_request):
    global waiting
    waiting += 1
    if waiting == 200:
        is_full.set()
    await asyncio.Event().wait()

@llm_function(llm_interface=ScriptedLLM(reply, repeat=True))
async def shout(text: str) -> str:
    '''Shout the text.'''

async def abandon():
    global mapping
    mapping = asyncio.create_task(shout.map([f"row {number}" for number in range(200)], concurrency=200))
    await is_full.wait()

loop = asyncio.new_event_loop()
loop.run_until_complete(abandon())
loop.close()
print(gc.get_threshold())
del mapping, loop, is_full
for _ in range(3):
    gc.collect()
print(gc.get_threshold())
"""


def test_a_map_that_was_abandoned_with_its_loop_puts_it_back() -> None:
    done = subprocess.run([sys.executable, "-c", ABANDONED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "(10000, 1, 1)\n(700, 10, 10)\n", done.stderr


def test_one_that_nobody_has_ended_puts_it_back_when_it_is_gone() -> None:
    many = RowsInFlight()
    many.at_least(200)
    assert gc.get_threshold() == RAISED
    del many
    assert gc.get_threshold() == USUAL


class Ring:
    """Garbage in a cycle, a hundred objects large."""

    living: weakref.WeakSet[Ring] = weakref.WeakSet()

    def __init__(self) -> None:
        self.others: list[object] = [[self] for _ in range(100)]
        self.living.add(self)


async def test_cycles_that_rows_leave_behind_are_collected_in_time() -> None:
    most = 0

    async def reply(_request) -> str:
        nonlocal most
        Ring()
        await asyncio.sleep(0)
        most = max(most, len(Ring.living))
        return "yes"

    # Identical rows would be asked once.
    with use_llm(ScriptedLLM(reply, repeat=True)):
        report = await shout.map([f"row {number}" for number in range(2_000)], concurrency=200)
    assert report.counts.asked == 2_000
    # A hundred of them are what the collector waits for.
    assert most < 400


FORKING = """
import asyncio, gc, os
from SimpleLLMFunc.batch.collector import RowsInFlight

gc.set_threshold(700, 10, 10)
many = RowsInFlight()
many.at_least(1000)
child = os.fork()
if not child:
    is_usual = gc.get_threshold() == (700, 10, 10)
    many.ended()
    os._exit(0 if is_usual and gc.get_threshold() == (700, 10, 10) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), gc.get_threshold()[0])
many.ended()
print(gc.get_threshold())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_has_no_part_in_it() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "0 50000\n(700, 10, 10)\n"
