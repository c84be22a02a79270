"""Blocking work in threads: threads that may hang, a worker, imports, and what a fork makes of them."""

import asyncio
import contextvars
import gc
import threading
import time

import pytest

from SimpleLLMFunc.runtime import threads
from SimpleLLMFunc.runtime.sync import run_sync
from SimpleLLMFunc.runtime.threads import LARGE, Worker, import_module, importing, in_thread, off_loop_if_large
from tests.support.processes import check_script, forks

COLOUR = contextvars.ContextVar("COLOUR", default="none")


async def until(is_true):
    async with asyncio.timeout(10):
        while not is_true():
            await asyncio.sleep(0.001)


@pytest.fixture(params=["in_thread", "worker"])
def run(request):
    return in_thread if request.param == "in_thread" else Worker().run


async def test_the_result_comes_back_with_the_context_of_the_caller(run):
    COLOUR.set("red")

    def work(a, b):
        COLOUR.set("of the thread")
        return a + b, threading.current_thread()

    result, thread = await run(work, 1, 2)
    assert result == 3
    assert thread is not threading.current_thread()
    assert thread.daemon
    assert COLOUR.get() == "red"
    assert await run(COLOUR.get) == "red"


@pytest.mark.parametrize(
    "error", [ValueError("no"), StopIteration(7), KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr
)
async def test_what_is_raised_is_raised_here(run, error):
    def work():
        raise error

    with pytest.raises((type(error), RuntimeError)) as caught:
        await run(work)
    # A StopIteration cannot leave a coroutine as it is.
    assert error in {caught.value, caught.value.__cause__}
    assert await run(lambda: "goes on") == "goes on"


async def test_the_loop_goes_on_and_a_cancelled_caller_leaves_the_thread_behind(run):
    entered, release, ended = threading.Event(), threading.Event(), []

    def work():
        entered.set()
        release.wait(10)
        ended.append(True)

    task = asyncio.create_task(run(work))
    await until(entered.is_set)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5
    release.set()
    await until(lambda: ended)


async def test_a_worker_is_one_thread_that_does_each_job_once_and_in_order():
    worker, done = Worker(), []

    def work(number):
        done.append(number)
        return threading.get_ident()

    assert len(set(await asyncio.gather(*(worker.run(work, number) for number in range(100))))) == 1
    assert done == list(range(100))


async def test_the_thread_of_a_worker_ends_with_it():
    worker = Worker()
    thread = await worker.run(threading.current_thread)
    assert thread.is_alive()
    del worker
    gc.collect()
    await until(lambda: not thread.is_alive())


@pytest.mark.parametrize("size", [LARGE, LARGE + 1])
async def test_large_work_is_done_off_the_loop(size):
    assert (await off_loop_if_large(size, threading.get_ident) == threading.get_ident()) is (size == LARGE)


async def test_threads_may_wait_for_one_another_many_levels_deep():
    """As sync tools do that call sync functions with sync tools."""

    async def level(depth):
        if not depth:
            return 1
        return sum(await asyncio.gather(*(in_thread(lambda: run_sync(level(depth - 1))) for _ in range(3))))

    async with asyncio.timeout(30):
        assert await level(4) == 3**4


def test_a_worker_serves_many_loops():
    worker, found = Worker(), []

    async def ask():
        found.extend(await asyncio.gather(*(worker.run(int, number) for number in range(20))))

    loops = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(5)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    assert sorted(found) == sorted([*range(20)] * 5)


async def test_without_a_thread_the_work_is_done_at_once(run, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert await run(threading.get_ident) == threading.get_ident()


def test_work_that_hangs_holds_up_neither_the_loop_nor_the_interpreter():
    started = time.monotonic()
    check_script(
        """
        import asyncio, time
        from SimpleLLMFunc.runtime.threads import Worker, in_thread

        async def main():
            for run in in_thread, Worker().run:
                try:
                    async with asyncio.timeout(0.05):
                        await run(time.sleep, 30)
                except TimeoutError:
                    print("given up")

        asyncio.run(main())
        """,
        "given up\ngiven up",
    )
    assert time.monotonic() - started < 20


@forks
def test_a_child_has_workers_of_its_own():
    check_script(
        """
        import asyncio, os, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from SimpleLLMFunc.runtime.threads import Worker
        workers = Worker()

        async def ask():
            async with asyncio.timeout(10):
                return await workers.run(int, 7)

        assert asyncio.run(ask()) == 7
        if (pid := os.fork()) == 0:
            assert asyncio.run(ask()) == 7
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print(asyncio.run(ask()))
        """,
        "7",
    )


async def test_many_at_once_import_in_one_thread():
    found = []

    def load():
        found.append(threading.get_ident())
        return "loaded"

    assert set(await asyncio.gather(*(importing(load) for _ in range(50)))) == {"loaded"}
    assert len(set(found)) == 1


async def test_what_is_imported_is_not_asked_for_again(monkeypatch):
    await import_module("json")

    async def never(*_):
        raise AssertionError("imported again")

    monkeypatch.setattr(threads, "importing", never)
    await import_module("json")
