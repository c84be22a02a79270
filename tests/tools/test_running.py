"""Sync tools in threads, async ones on the loop, results drained."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import threading
import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from SimpleLLMFunc.tools.running import MAX_ITEMS, in_thread, run_callable
from tests.support.processes import check_script

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


async def run(func: Any, *args: Any, **kwargs: Any) -> Any:
    return await run_callable(func, list(args), kwargs)


async def test_a_sync_callable_runs_in_another_thread_with_the_context_of_the_caller():
    VARIABLE.set("mine")

    def look() -> tuple[int, str]:
        seen = VARIABLE.get()
        VARIABLE.set("changed inside")
        return threading.get_ident(), seen

    thread, seen = await run(look)
    assert thread != threading.get_ident()
    assert seen == "mine"
    assert VARIABLE.get() == "mine"


async def test_async_callables_of_every_kind_run_on_the_loop():
    async def plain(a: int) -> tuple[int, int]:
        return a, threading.get_ident()

    class Thing:
        async def __call__(self, a: int) -> tuple[int, int]:
            return a, threading.get_ident()

        async def method(self, a: int) -> tuple[int, int]:
            return a, threading.get_ident()

    here = (1, threading.get_ident())
    for func in (plain, functools.partial(plain), Thing(), Thing().method):
        assert await run(func, 1) == here


async def test_an_awaitable_from_a_sync_callable_is_awaited():
    async def later(a: int) -> int:
        return a

    assert await run(lambda: later(3)) == 3

    @types.coroutine
    def old() -> Iterator[Any]:
        yield from asyncio.sleep(0).__await__()
        return 4

    assert await run(old) == 4


async def test_generators_are_drained():
    closed: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            yield from range(3)
        finally:
            closed.append("sync")

    async def letters() -> AsyncIterator[str]:
        try:
            for letter in "ab":
                yield letter
        finally:
            closed.append("async")

    async def gives_generator() -> Iterator[int]:
        return numbers()

    assert await run(numbers) == [0, 1, 2]
    assert await run(letters) == ["a", "b"]
    assert await run(gives_generator) == [0, 1, 2]
    assert await run(lambda: map(str, [1, 2])) == ["1", "2"]
    assert closed == ["sync", "async", "sync"]


async def test_an_endless_generator_is_cut_and_closed():
    closed: list[str] = []

    def endless() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.append("sync")

    async def endless_too() -> AsyncIterator[int]:
        try:
            for number in itertools.count():
                yield number
        finally:
            closed.append("async")

    class Endless:
        def __aiter__(self) -> Endless:
            return self

        async def __anext__(self) -> int:
            return 1

    for func in (endless, endless_too, itertools.count, Endless):
        assert len(await run(func)) == MAX_ITEMS
    assert closed == ["sync", "async"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
async def test_what_a_thread_raises_arrives(error):
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await in_thread(fail)
    assert caught.value is error


async def test_a_stop_iteration_does_not_hang():
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(run(lambda: next(iter([]))), 10)


async def test_a_cancelled_call_leaves_its_thread_and_ignores_its_result():
    gate, started = threading.Event(), threading.Event()

    def work() -> str:
        started.set()
        gate.wait()
        return "too late"

    task = asyncio.create_task(run(work))
    while not started.is_set():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()


def test_a_hanging_tool_does_not_keep_the_interpreter():
    code = (
        "import asyncio, threading\n"
        "from SimpleLLMFunc.tools.running import run_callable\n"
        "async def main():\n"
        "    task = asyncio.create_task(run_callable(threading.Event().wait, [], {}))\n"
        "    await asyncio.sleep(0)\n"
        "    task.cancel()\n"
        "asyncio.run(main())\n"
        "print('done')\n"
    )
    check_script(code, "done")
