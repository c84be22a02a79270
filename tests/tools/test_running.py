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

from SimpleLLMFunc.tools.running import MAX_ITEMS, run_callable

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
