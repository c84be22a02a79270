"""What a forked child renews."""

import threading
import time

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.runtime.forking import ForkSafeLock
from SimpleLLMFunc.storage import SqliteFile
from tests.support.processes import check_script, forks, in_child


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_lock_held_by_another_thread_is_free_in_the_child():
    lock = ForkSafeLock()
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    def take():
        with lock:
            return "taken"

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert in_child(take) == "'taken'"
    finally:
        done.set()
        thread.join()


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_waits_for_the_end_of_work_that_locks_more_than_we_see(tmp_path):
    file = SqliteFile(tmp_path / "runs.sqlite", application_id=7, tables=["CREATE TABLE t (a)"], unusable=ConfigError)
    held, ended = threading.Event(), threading.Event()

    def work():
        with file.lock:
            held.set()
            time.sleep(0.2)
            ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    held.wait()
    assert in_child(ended.is_set) == "True"
    with file.lock:
        thread.join()


@forks
def test_what_lives_is_renewed_once_and_in_the_child_only():
    check_script(
        """
        import gc, os
        from SimpleLLMFunc.runtime.forking import renew_in_child

        told = []

        class Owner:
            def __init__(self, name):
                self.name = name
                renew_in_child(self)

            def renew_in_child(self):
                told.append(self.name)

        kept = Owner("renewed")
        gone = Owner("gone")
        renew_in_child(kept)  # a second time
        del gone
        gc.collect()
        if os.fork() == 0:
            print(told, flush=True)
            os._exit(0)
        os.wait()
        print(told)
        """,
        "['renewed']\n[]",
    )


@forks
def test_tasks_that_waited_for_what_is_renewed_end_without_a_word_in_the_child():
    check_script(
        """
        import asyncio, gc, os, sys, warnings
        warnings.filterwarnings("ignore", message="This process")
        from SimpleLLMFunc.runtime.forking import renew_in_child
        from SimpleLLMFunc.runtime.sync import iterate_sync, run_sync

        class Queue:
            def __init__(self):
                self.waiting = []
                renew_in_child(self)

            def renew_in_child(self):
                self.waiting.clear()
                gc.collect()

        queue = Queue()

        async def items():
            yield 1
            future = asyncio.get_running_loop().create_future()
            queue.waiting.append(future)
            yield 2
            await future

        async def work(value):
            return value

        left = iterate_sync(items())
        print(next(left), next(left), flush=True)
        if os.fork() == 0:
            print(run_sync(work("child")), flush=True)
            del left
            gc.collect()
            sys.exit(0)
        print(os.wait()[1])
        left.close()
        """,
        "1 2\nchild\n0",
    )


@forks
def test_a_lock_of_the_registry_does_not_outlive_a_fork():
    check_script(
        """
        import os, threading, time, warnings
        warnings.filterwarnings("ignore", message="This process")
        from SimpleLLMFunc.runtime import forking

        forking._FORK_SECONDS = 0.05
        held, let_go = threading.Event(), threading.Event()

        def load():
            with forking.forks_wait():
                held.set()
                let_go.wait()

        thread = threading.Thread(target=load)
        thread.start()
        held.wait()
        if os.fork() == 0:  # the import is taking too long
            with forking.forks_wait():
                print("child", flush=True)
            os._exit(0)
        let_go.set()
        thread.join()
        print(os.wait()[1])
        with forking.forks_wait():
            print("parent")
        """,
        "child\n0\nparent",
    )


def test_threads_of_another_kind_make_all_of_it_new():
    check_script(
        """
        import _thread
        from SimpleLLMFunc import llm_function
        from SimpleLLMFunc.runtime import loop_thread as loops
        from SimpleLLMFunc.runtime.forking import ForkSafeLock
        from SimpleLLMFunc.testing import ScriptedLLM

        @llm_function(ScriptedLLM("3", repeat=True))
        def rate(text: str) -> int:
            "Rate."

        held = ForkSafeLock()
        held._lock = "of the threads before"
        assert rate("a") == 3
        before = loops.loop_thread()
        real = _thread.start_new_thread
        _thread.start_new_thread = lambda *args, **more: real(*args, **more)  # as a monkey patch does
        assert rate("b") == 3
        assert loops.loop_thread() is not before
        with held:
            assert loops.loop_thread() is loops.loop_thread()
        """,
        "",
    )
