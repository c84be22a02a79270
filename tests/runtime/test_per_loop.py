"""One thing per event loop, closed with its loop."""

import asyncio
import gc
import threading
from queue import Queue

import pytest

from SimpleLLMFunc.runtime import PerLoop
from tests.support.processes import check_script, forks


class Thing:
    """It says on which loop it was made, and on which it was closed."""

    def __init__(self):
        self.made_on = asyncio.get_running_loop()
        self.closed_on = None

    async def close(self):
        await asyncio.sleep(0)
        self.closed_on = asyncio.get_running_loop()


def things():
    return PerLoop(Thing, Thing.close, lambda thing: thing.closed_on is None)


async def here(per_loop):
    return per_loop.here()


async def test_one_that_was_closed_is_replaced():
    per_loop = things()
    first = per_loop.here()
    await first.close()
    assert per_loop.here() is not first


def test_each_loop_has_its_own_and_closes_it():
    per_loop = things()
    first, second = asyncio.run(here(per_loop)), asyncio.run(here(per_loop))
    assert first is not second
    for thing in (first, second):
        assert thing.closed_on is thing.made_on
    assert list(per_loop.known) == [second.made_on], "a loop that is closed is forgotten"


def test_a_loop_closed_by_hand_closes_it_with_its_generators():
    per_loop = things()
    loop = asyncio.new_event_loop()
    thing = loop.run_until_complete(here(per_loop))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    assert thing.closed_on is loop


async def test_what_nothing_can_ask_for_any_more_is_closed_on_its_loop():
    per_loop = things()
    thing = per_loop.here()
    del per_loop
    gc.collect()
    async with asyncio.timeout(5):
        while thing.closed_on is None:
            await asyncio.sleep(0.001)
    assert thing.closed_on is asyncio.get_running_loop()


BEGINNING = """
import asyncio, os, threading
from SimpleLLMFunc.runtime import PerLoop

class Thing:
    closed = False

    async def close(self):
        await asyncio.sleep(0)
        self.closed = True
        print("closed by", "parent" if os.getpid() == PARENT else "child", flush=True)

async def here():
    return per_loop.here()

PARENT = os.getpid()
per_loop = PerLoop(Thing, Thing.close, lambda thing: not thing.closed)
"""


@pytest.mark.parametrize("runs", [True, False])
def test_the_end_of_the_interpreter_closes_what_is_left(runs):
    check_script(
        BEGINNING
        + f"""
loop = asyncio.new_event_loop()
if {runs}:
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(here(), loop).result()
else:
    loop.run_until_complete(here())
import atexit

def end():
    if {runs}:
        loop.call_soon_threadsafe(loop.stop)
    else:
        loop.close()

import SimpleLLMFunc.runtime.per_loop as module
atexit.unregister(module._close_all)
atexit.register(end)
atexit.register(module._close_all)
""",
        "closed by parent",
    )


def test_the_end_of_the_interpreter_leaves_a_loop_alone_that_another_thread_is_about_to_run_again():
    per_loop, made, ended = things(), Queue(), threading.Event()

    def use():
        with asyncio.Runner() as runner:
            made.put(runner.run(here(per_loop)))
            ended.wait(10)

    thread = threading.Thread(target=use)
    thread.start()
    thing = made.get(timeout=10)
    per_loop.close_all()
    assert thing.closed_on is None
    ended.set()
    thread.join()
    assert thing.closed_on is thing.made_on


def test_the_end_of_the_interpreter_closes_what_a_thread_has_left_on_an_open_loop():
    per_loop, loop, made = things(), asyncio.new_event_loop(), Queue()
    thread = threading.Thread(target=lambda: made.put(loop.run_until_complete(here(per_loop))))
    thread.start()
    thread.join()
    per_loop.close_all()
    assert made.get().closed_on is loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@forks
def test_a_child_makes_its_own_and_leaves_the_parents_alone():
    check_script(
        BEGINNING
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
loop = asyncio.new_event_loop()
thing = loop.run_until_complete(here())
if (pid := os.fork()) == 0:
    assert asyncio.run(here()) is not thing
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert loop.run_until_complete(here()) is thing
loop.run_until_complete(loop.shutdown_asyncgens())
loop.close()
""",
        "closed by child\nclosed by parent",
    )
