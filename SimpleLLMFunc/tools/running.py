"""Running a tool: async ones on the loop, sync ones in threads of their own."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, nullcontext
from typing import Any, Final, TypeVar

from SimpleLLMFunc.runtime import Errands
from SimpleLLMFunc.runtime import in_thread as in_own_thread
from SimpleLLMFunc.tools.schemas import underlying

T = TypeVar("T")

MAX_ITEMS: Final = 10_000
"""Items taken from a generator that a tool returns; one that never ends is cut here."""


async def run_callable(func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a sync or async callable and return its result; awaitables are awaited, generators drained into a list.

    A sync callable runs in a new thread, with the caller's context variables.
    """
    if _is_async(func):
        result = func(*args, **kwargs)
    else:
        result = await in_thread(lambda: _drain(func(*args, **kwargs)))
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncIterator):
        return await _drain_async(result)
    # From an async callable; draining it may block, and must not do so here.
    return await in_thread(_drain, result) if isinstance(result, Iterator) else result


async def in_thread(func: Callable[..., T], *args: Any) -> T:
    """Run `func` in a new thread, with the caller's context variables, and return its result.

    A cancelled call leaves the thread behind; what that waits for on the library's own loop (a decorated `def`) is
    cancelled with it.
    """
    errands = Errands()
    try:
        return await in_own_thread(errands.run, func, *args)
    except asyncio.CancelledError:
        errands.cancel()
        raise


def _is_async(func: Callable[..., Any]) -> bool:
    target = underlying(func)
    return (
        inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target)
    )


def _drain(result: Any) -> Any:
    """Return an iterator's items as a list; everything else as it is."""
    # A coroutine made by `types.coroutine` is a generator too, and is to be awaited.
    if not isinstance(result, Iterator) or inspect.isawaitable(result):
        return result
    items = list(itertools.islice(result, MAX_ITEMS))
    if inspect.isgenerator(result):
        result.close()
    return items


async def _drain_async(result: AsyncIterator[Any]) -> list[Any]:
    items: list[Any] = []
    async with aclosing(result) if isinstance(result, AsyncGenerator) else nullcontext():
        async for item in result:
            items.append(item)
            if len(items) == MAX_ITEMS:
                break
    return items
