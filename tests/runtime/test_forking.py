"""What a forked child begins anew, and in which order."""

import threading

import pytest

from SimpleLLMFunc.runtime.forking import ForkSafeLock
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
def test_what_the_parents_threads_hold_is_forgotten_before_anything_is_renewed_and_each_once():
    check_script(
        """
        import gc, os
        from SimpleLLMFunc.runtime.forking import ForkSafeLock, forget_in_child, renew_in_child

        told = []

        class Owner:
            def __init__(self, name):
                self.name = name
                renew_in_child(self)

            def renew_in_child(self):
                told.append(self.name)

        early = Owner("renewed")
        gone = Owner("gone")
        forget_in_child(lambda: told.append("forgotten first"))
        forget_in_child(lambda: told.append("forgotten second"))
        late = Owner("renewed")
        renew_in_child(early)  # a second time
        del gone
        gc.collect()
        if os.fork() == 0:
            print(told, flush=True)
            os._exit(0)
        os.wait()
        print(told)
        """,
        "['forgotten first', 'forgotten second', 'renewed', 'renewed']\n[]",
    )


@forks
def test_the_librarys_own_loop_is_left_to_the_parent_before_owners_are_renewed():
    check_script(
        """
        import asyncio, os, warnings
        warnings.filterwarnings("ignore", message="This process")
        from SimpleLLMFunc.runtime.forking import renew_in_child

        class Owner:
            def renew_in_child(self):
                print(run_sync(work("renewed")), flush=True)

        owner = Owner()
        renew_in_child(owner)  # before there is anything to forget
        from SimpleLLMFunc.runtime.sync import run_sync

        async def work(value):
            await asyncio.sleep(0)
            return value

        print(run_sync(work("parent")), flush=True)
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        """,
        "parent\nrenewed",
    )


@forks
def test_one_hook_renews_everything():
    check_script(
        """
        import os, sys
        hooks, register = [], os.register_at_fork

        def noting(**functions):
            hooks.append((sys._getframe(1).f_globals["__name__"], *functions))
            register(**functions)

        os.register_at_fork = noting
        import SimpleLLMFunc.runtime.sync, SimpleLLMFunc.runtime.threads
        print(*(hook for hook in hooks if hook[0].startswith("SimpleLLMFunc")), sep="\\n")
        """,
        "('SimpleLLMFunc.runtime.forking', 'after_in_child')\n('SimpleLLMFunc.runtime.threads', 'before', 'after_in_parent')\n"
        "('SimpleLLMFunc.runtime.per_loop', 'after_in_child')",
    )
