"""Waiting of synchronous work that is given up from outside."""

import asyncio
import contextlib
import contextvars
import threading

import pytest

from SimpleLLMFunc.runtime.sync import Errands, iterate_sync, run_sync


def in_errands(errands, function):
    """Run `function` in a thread whose waiting `errands` can end; return the thread and what it gave or raised."""
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(contextvars.copy_context().run(errands.run, function))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, outcome


@pytest.mark.parametrize("how", ["run_sync", "iterate_sync"])
def test_a_wait_can_be_given_up_from_another_thread(how):
    is_waiting, is_closed = threading.Event(), threading.Event()

    async def items():
        try:
            is_waiting.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            is_closed.set()

    async def first():
        async with contextlib.aclosing(items()) as source:
            return await anext(source)

    errands = Errands()
    thread, outcome = in_errands(
        errands, (lambda: run_sync(first())) if how == "run_sync" else (lambda: list(iterate_sync(items())))
    )
    assert is_waiting.wait(5)
    errands.cancel()
    thread.join(5)
    assert isinstance(outcome[0], asyncio.CancelledError)
    assert is_closed.is_set()


def test_after_that_nothing_new_begins():
    begun: list[int] = []

    async def begin():
        begun.append(1)

    async def items():
        begun.append(2)
        yield 1

    errands = Errands()
    errands.cancel()
    for function in (lambda: run_sync(begin()), lambda: list(iterate_sync(items()))):
        thread, outcome = in_errands(errands, function)
        thread.join(5)
        assert isinstance(outcome[0], asyncio.CancelledError)
    assert begun == []


def test_what_has_ended_is_not_given_up():
    async def answer():
        return 42

    async def items():
        yield 1
        yield 2

    errands = Errands()
    thread, outcome = in_errands(errands, lambda: (run_sync(answer()), list(iterate_sync(items()))))
    thread.join(5)
    assert outcome == [(42, [1, 2])]
    assert errands._open == set()
    errands.cancel()
    assert run_sync(answer()) == 42  # others do not notice
