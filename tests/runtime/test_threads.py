"""Work that blocks, in threads: threads that may hang, a few workers, imports, and what a fork makes of them."""

import asyncio
import contextvars
import errno
import math
import os
import threading
import time
from functools import partial

import pytest

from SimpleLLMFunc.runtime import threads
from SimpleLLMFunc.runtime.threads import Workers, import_module, importing, in_thread
from tests.support.processes import forks, run_script

COLOUR = contextvars.ContextVar("COLOUR", default="none")


def workers_left():
    return [thread for thread in threading.enumerate() if thread.name.startswith("SimpleLLMFunc-work")]


async def until(is_true):
    async with asyncio.timeout(10):
        while not is_true():
            await asyncio.sleep(0.001)


def refuse_files(*_):
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.fixture(params=["in_thread", "in_thread, with a pause", "workers", "workers, without a seat"])
def run(request, monkeypatch):
    if "without" in request.param:
        monkeypatch.setattr(os, "eventfd", refuse_files, raising=False)
    if "workers" in request.param:
        return Workers(2).run
    return partial(in_thread, pause=0.001) if "pause" in request.param else in_thread


async def test_what_is_done_within_a_pause_takes_no_round_of_the_loop():
    rounds = []
    asyncio.get_running_loop().call_soon(rounds.append, 1)
    assert await in_thread(abs, -3, pause=30.0) == 3
    assert not rounds
    assert await in_thread(abs, -3) == 3
    assert rounds


async def test_after_a_pause_the_loop_goes_on():
    gate = threading.Event()
    asyncio.get_running_loop().call_soon(gate.set)
    assert await in_thread(gate.wait, 30, pause=0.0001)


async def test_a_result_that_comes_at_the_end_of_a_pause_is_not_missed():
    for number in range(2000):
        assert await in_thread(abs, -number, pause=number % 20 * 1e-5 + 1e-9) == number


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


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(7), KeyboardInterrupt(), SystemExit(3)], ids=repr)
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


@pytest.mark.parametrize("has_seat", [True, False])
async def test_workers_are_no_more_than_allowed_and_each_job_is_done_once(has_seat, monkeypatch):
    if not has_seat:
        monkeypatch.delattr(os, "eventfd", raising=False)
    workers, lock, now, most, done = Workers(3), threading.Lock(), 0, 0, []

    def work(number):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.002)
        with lock:
            now -= 1
            done.append(number)
        return number

    assert await asyncio.gather(*(workers.run(work, number) for number in range(100))) == list(range(100))
    assert sorted(done) == list(range(100))
    assert most == 3


async def test_a_worker_that_rests_takes_the_next_job_and_goes_after_a_while(monkeypatch):
    monkeypatch.setattr(threads, "_REST_SECONDS", 0.05)
    before, workers = len(workers_left()), Workers(5)
    seen = set()
    for _ in range(20):
        seen.add(await workers.run(threading.get_ident))
        await until(
            lambda: not workers._count or workers._free > 0 or (workers._seat and workers._seat._state == "taken")
        )
    assert len(seen) < 20
    await until(lambda: len(workers_left()) <= before)
    assert await workers.run(lambda: "again") == "again"
    # Whatever way rest and work fall together, no job is forgotten.
    for pause in range(20):
        await asyncio.sleep(0.046 + pause % 4 * 0.002)
        async with asyncio.timeout(5):
            await workers.run(int)


async def test_jobs_begin_in_the_order_they_came_in():
    late = 0
    for _ in range(2_000):
        begun: list[str] = []
        await asyncio.gather(*(in_thread(begun.append, name) for name in ("first", "second", "third")))
        late += begun != ["first", "second", "third"]
    # A thread may lose its turn between taking a job and beginning it; where each waits for its own job, dozens are late.
    assert late <= 1


@pytest.mark.parametrize("where", ["_begin", "_Seat.call", "_Seat.wake"])
async def test_a_job_whose_caller_was_interrupted_is_taken_back(where, monkeypatch):
    monkeypatch.setattr(threads, "_REST_SECONDS", 0.05)
    workers, done = Workers(2), []

    def interrupt(*_):
        raise KeyboardInterrupt

    async with asyncio.timeout(20):
        if where.startswith("_Seat"):
            await workers.run(int)
            if workers._seat is None:
                pytest.skip("the system has no event counters")
            await until(lambda: workers._seat._state == "taken")
        with monkeypatch.context() as patch:
            patch.setattr(f"SimpleLLMFunc.runtime.threads.{where}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                await workers.run(done.append, "interrupted")
        for number in range(20):
            await asyncio.gather(*(workers.run(done.append, (number, each)) for each in range(3)))
            await asyncio.sleep(number % 5 * 0.02)
    assert sorted(done) == [(number, each) for number in range(20) for each in range(3)]


@pytest.mark.parametrize("most", [1, 2, 3, math.inf])
async def test_no_job_is_forgotten_however_work_and_rest_fall_together(most, monkeypatch):
    monkeypatch.setattr(threads, "_REST_SECONDS", 0.0005)
    workers, done = Workers(most), 0
    async with asyncio.timeout(30):
        for number in range(1500):
            some = [workers.run(int, each) for each in range(number % 5)]
            done += len(await asyncio.gather(*some, workers.run(time.sleep, number % 7 * 0.0001)))
    assert done == 1500 * 3
    await until(lambda: not workers._count)
    assert not workers._free


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no event counters")
async def test_the_file_of_workers_goes_with_them(monkeypatch):
    monkeypatch.setattr(threads, "_REST_SECONDS", 0.01)
    opened = []

    def eventfd(*given, make=os.eventfd):
        opened.append(make(*given))
        return opened[-1]

    monkeypatch.setattr(os, "eventfd", eventfd)
    workers = Workers(3)
    for _ in range(2):
        assert await workers.run(int) == 0
        while workers._count:
            await asyncio.sleep(0.001)
    (counter,) = opened
    assert is_open(counter)
    del workers
    await until(lambda: not is_open(counter))


def is_open(file):
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def test_workers_serve_many_loops():
    workers, found = Workers(2), []

    async def ask():
        found.extend(await asyncio.gather(*(workers.run(int, number) for number in range(20))))

    loops = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(5)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    assert sorted(found) == sorted([*range(20)] * 5)


async def test_without_a_thread_the_work_is_done_at_once(run, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_many", Workers(math.inf))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert await run(threading.get_ident) == threading.get_ident()


async def test_a_thread_that_has_done_its_work_does_more():
    workers = Workers(math.inf)
    seen = {await workers.run(threading.get_ident) for _ in range(100)}
    assert threading.get_ident() not in seen
    assert len(seen) < 5  # one, unless the machine stands still for as long as a thread rests


async def test_work_that_hangs_does_not_hold_up_other_work_where_no_thread_can_be_had(monkeypatch):
    workers, release = Workers(math.inf), threading.Event()
    hanging = asyncio.create_task(workers.run(release.wait, 10))
    await asyncio.sleep(0)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert await workers.run(threading.get_ident) == threading.get_ident()
    release.set()
    assert await hanging


async def test_work_that_hangs_does_not_hold_up_other_work():
    release = threading.Event()
    hanging = [asyncio.create_task(in_thread(release.wait, 10)) for _ in range(50)]
    async with asyncio.timeout(5):
        assert await in_thread(int) == 0
    release.set()
    await asyncio.gather(*hanging)


def test_work_that_hangs_holds_up_neither_the_loop_nor_the_interpreter():
    started = time.monotonic()
    done = run_script(
        """
        import asyncio, time
        from SimpleLLMFunc.runtime.threads import Workers, in_thread

        async def main():
            for run in in_thread, Workers(1).run:
                try:
                    async with asyncio.timeout(0.05):
                        await run(time.sleep, 30)
                except TimeoutError:
                    print("given up")

        asyncio.run(main())
        """
    )
    assert (done.stdout.split("\n")[:2], done.stderr, done.returncode) == (["given up"] * 2, "", 0)
    assert time.monotonic() - started < 20


def test_threads_can_be_had_after_the_main_one_has_ended():
    done = run_script(
        """
        import asyncio, threading
        from SimpleLLMFunc.runtime.threads import Workers, in_thread

        async def work():
            return [await in_thread(int, 1), await Workers(1).run(int, 2)]

        def late():
            threading.main_thread().join()
            print(asyncio.run(work()))

        threading.Thread(target=late).start()
        """
    )
    assert (done.stdout, done.stderr, done.returncode) == ("[1, 2]\n", "", 0)


@forks
def test_a_child_has_workers_of_its_own():
    done = run_script(
        """
        import asyncio, os, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from SimpleLLMFunc.runtime.threads import Workers
        workers = Workers(1)

        async def ask():
            async with asyncio.timeout(10):
                return await workers.run(int, 7)

        assert asyncio.run(ask()) == 7
        if (pid := os.fork()) == 0:
            assert asyncio.run(ask()) == 7
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print(asyncio.run(ask()))
        """
    )
    assert (done.stdout, done.stderr, done.returncode) == ("7\n", "", 0)


@forks
def test_a_child_that_is_forked_during_an_import_can_import_too(tmp_path):
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.3)\nvalue = 7\n")
    done = run_script(
        f"""
        import asyncio, os, sys, threading, time, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        sys.path.insert(0, {str(tmp_path)!r})
        from SimpleLLMFunc.runtime.threads import import_module

        def load():
            asyncio.run(import_module("slow_module"))

        thread = threading.Thread(target=load)
        thread.start()
        while "slow_module" not in sys.modules:
            time.sleep(0.001)
        if (pid := os.fork()) == 0:
            import slow_module
            os._exit(slow_module.value)
        thread.join()
        ended = time.monotonic() + 10
        while time.monotonic() < ended:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                print(os.waitstatus_to_exitcode(status))
                break
            time.sleep(0.01)
        else:
            os.kill(pid, 9)
        """
    )
    assert (done.stdout, done.stderr, done.returncode) == ("7\n", "", 0)


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


async def test_a_module_that_is_not_there_is_told():
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        await import_module("no_such_module_anywhere")
