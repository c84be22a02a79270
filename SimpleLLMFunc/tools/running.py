"""Running a tool, async ones on the loop and sync ones in new threads, and asking whether it may run."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, nullcontext
from typing import Any, Final, TypeAlias, TypeVar

from SimpleLLMFunc.errors import RunPaused, UsageError
from SimpleLLMFunc.logger import push_warning, shown_traceback
from SimpleLLMFunc.runtime import Errands
from SimpleLLMFunc.runtime import in_thread as in_own_thread
from SimpleLLMFunc.tools.schemas import underlying

T = TypeVar("T")

Confirm: TypeAlias = Callable[[str, dict[str, Any]], Any]
"""``confirm(tool_name, arguments) -> bool``, sync or async; only `True` lets the tool run."""

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


# --- may it run? ---


class AnsweredInstead(Exception):
    """Raised by a confirmation that answers in place of the tool: its text is what the model reads."""


class NobodyToAsk(UsageError):
    """Raised by a confirmation that cannot ask anybody in the way it was told to; any other failure is a no."""


async def is_agreed(confirm: Confirm, tool: str, arguments: dict[str, Any]) -> bool:
    """Return whether `confirm` says `True`; a text such as "no", a number or a failure is no agreement, and is logged.

    Raises:
        AnsweredInstead: the model is to read something else.
        RunPaused: the answer comes later, and from elsewhere.
        NobodyToAsk: no person can be asked in this way.
    """
    said = await _said(confirm, tool, arguments, AnsweredInstead, RunPaused, NobodyToAsk)
    if not isinstance(said, bool):
        kind = type(said).__name__
        push_warning(f"the confirmation of {tool} gave a {kind}, which counts as no. Return True to let it run.")
    return said is True


async def filled_in(confirm: Confirm, tool: str, form: dict[str, Any]) -> bool | dict[str, Any]:
    """Return what `confirm` says to a form that a tool's server wants filled in: the fields, yes or no; a failure is a no."""
    said = await _said(confirm, tool, form)
    if isinstance(said, bool):
        return said
    if isinstance(said, Mapping):
        return dict(said)
    push_warning(
        f"the confirmation of {tool} gave a {type(said).__name__}, which counts as no. Return a bool or a dict."
    )
    return False


async def _said(confirm: Confirm, tool: str, given: dict[str, Any], *passing: type[Exception]) -> Any:
    """Return what `confirm` says, False where it fails; the errors of `passing` are raised."""
    try:
        # A thread for a sync one: it may well wait at a prompt.
        return await run_callable(confirm, [tool, given], {})
    except passing:
        raise
    except Exception as error:  # noqa: BLE001 - a user who cannot be asked has not agreed
        reason = error
    push_warning(lambda: f"the confirmation of {tool} failed: {shown_traceback(reason)}")
    return False
