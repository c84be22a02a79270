"""The thread of the library's own event loop: one for all, one for each process, gone with the interpreter."""

import asyncio
import sys
import threading

import pytest

from SimpleLLMFunc.runtime.sync import iterate_sync, run_sync
from tests.support.processes import check_script, forks, in_child


async def value_of(result):
    return result


async def counted(count):
    for number in range(count):
        yield number


def test_all_calls_share_one_loop_in_one_daemon_thread():
    async def where():
        return asyncio.get_running_loop(), threading.current_thread()

    first, second = run_sync(where()), run_sync(where())
    assert first == second
    assert first[1].daemon
    assert first[1] is not threading.current_thread()


def test_an_exit_in_a_child_task_does_not_stop_the_loop_for_others():
    async def leave():
        raise SystemExit(4)

    async def work():
        await asyncio.gather(asyncio.create_task(leave()), asyncio.sleep(0))

    with pytest.raises(SystemExit):
        run_sync(work())
    assert run_sync(value_of(1)) == 1


# --- fork ----------------------------------------------------------------------------------------------------


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_has_a_loop_of_its_own_and_the_parents_goes_on():
    assert run_sync(value_of(1)) == 1
    assert in_child(lambda: (run_sync(value_of("child")), list(iterate_sync(counted(2))))) == "('child', [0, 1])"
    assert run_sync(value_of(2)) == 2


# --- the end of the interpreter ------------------------------------------------------------------------------


def test_the_interpreter_ends_without_a_word_while_things_run():
    check_script(
        """
        import asyncio, socket, threading
        from SimpleLLMFunc.runtime.sync import run_sync, iterate_sync
        async def items():
            here, there = socket.socketpair()
            try:
                yield 1
                yield 2
            finally:
                await asyncio.sleep(0)
                here.close()
                there.close()
                print("closed")
        async def forgotten():
            asyncio.get_running_loop().forgotten = asyncio.create_task(asyncio.sleep(1000))
        left = iterate_sync(items())
        print(next(left))
        run_sync(forgotten())
        threading.Thread(target=run_sync, args=(asyncio.sleep(0.05),)).start()
        """,
        "1\nclosed",
    )


def test_daemon_threads_that_wait_at_the_end_end_without_a_word_and_may_be_waited_for():
    check_script(
        """
        import asyncio, atexit, threading

        def late():               # runs after the bridge has been stopped
            gate.set()
            for thread in threads:
                thread.join()
            print("ends", told)

        atexit.register(late)
        from SimpleLLMFunc.runtime.sync import iterate_sync, run_sync
        started, gate, told = threading.Semaphore(0), threading.Event(), []

        async def forever():
            started.release()
            await asyncio.Event().wait()

        async def items():
            yield 1
            started.release()
            await asyncio.Event().wait()

        async def last():
            await asyncio.sleep(0)
            told.append("told")

        def calls():
            run_sync(forever())

        def reads():
            for _ in iterate_sync(items()):
                pass

        def begins():
            gate.wait()
            run_sync(last())

        threads = [threading.Thread(target=target, daemon=True) for target in (calls, reads, begins)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            started.acquire()
        """,
        "ends ['told']",
    )


def test_work_that_ignores_its_cancellation_does_not_keep_the_interpreter():
    check_script(
        """
        import asyncio, threading
        from SimpleLLMFunc.runtime import loop_thread, sync
        loop_thread.EXIT_SECONDS = 0.05
        async def stubborn():
            while True:
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    pass
        async def start():
            asyncio.get_running_loop().kept = asyncio.create_task(stubborn())
            await asyncio.sleep(0)
        sync.run_sync(start())
        print("ends")
        """,
        "ends",
    )


# --- without file descriptors --------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit on this system")
@pytest.mark.parametrize("left", range(4))
def test_a_first_call_without_file_descriptors_says_what_to_do_and_the_next_one_works(left):
    check_script(
        f"""
        import asyncio, os, resource
        from SimpleLLMFunc import ConfigError
        from SimpleLLMFunc.runtime.sync import iterate_sync, run_sync, submit

        async def work():
            return "worked"

        async def items():
            yield 1

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            for _ in range({left}):
                os.close(taken.pop())
        for call in lambda: run_sync(work()), lambda: list(iterate_sync(items())), lambda: submit(work()).result():
            try:
                print(call())
            except ConfigError as error:
                print("ulimit -n" in str(error))
        for file in taken:
            os.close(file)
        print(run_sync(work()))
        """,
        "worked\n[1]\nworked\nworked" if left == 3 else "True\nTrue\nTrue\nworked",
    )
