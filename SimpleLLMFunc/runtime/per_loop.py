"""One thing per event loop: opened at the first use, closed with its loop, never shared with a forked child."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet, finalize

from SimpleLLMFunc.runtime.forking import ForkSafeLock

__all__ = ["PerLoop"]

T = TypeVar("T")

Known: TypeAlias = dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]]
"""What was made for each loop, and the generator that the loop closes."""


class PerLoop(Generic[T]):
    """What belongs to the event loop it was made on, such as a pool of connections.

    Args:
        make: gives a new one; called on the loop.
        close: called on the loop, at its end; holds nothing of whoever has this.
        is_open: whether one can still be used; one that cannot is replaced.
    """

    def __init__(
        self, make: Callable[[], T], close: Callable[[T], Awaitable[None]], is_open: Callable[[T], bool]
    ) -> None:
        self._make = make
        self._close = close
        self._is_open = is_open
        self.known: Known[T] = {}
        with _lock:
            _all.add(self)
        # Held from outside: else the garbage collector would find the connections together with who could close them.
        finalize(self, _close_orphans, self.known).atexit = False

    def here(self) -> T:
        """Return that of the running loop; the first call makes it."""
        loop = asyncio.get_running_loop()
        known = self.known.get(loop)
        if known is not None and self._is_open(known[0]):
            return known[0]
        made = self._make()
        # The loop notes every async generator that began on it and closes it at its own end (shutdown_asyncgens):
        # that is the one hook that asyncio.run, a Runner and most servers share.
        keeper = _keep(made, loop, self.known, self._close)
        with contextlib.suppress(StopIteration):  # it has come to its yield
            keeper.__anext__().send(None)
        self.known[loop] = (made, keeper)
        _close_with(loop)
        return made

    async def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close that of `loop`, which must be the running one."""
        known = self.known.get(loop)
        if known is not None:
            await known[1].aclose()

    def close_all(self) -> None:
        """Close what is still open when the interpreter ends: that of loops that nobody closed."""
        for loop in list(self.known):
            if loop.is_closed():
                continue
            with contextlib.suppress(RuntimeError, TimeoutError):  # a loop that stops meanwhile needs nothing more
                if loop.is_running():
                    asyncio.run_coroutine_threadsafe(self.close(loop), loop).result(1.0)
                else:
                    loop.run_until_complete(self.close(loop))

    def leave_to_the_parent(self) -> None:
        """Forget what a child can neither use nor close; it keeps it as it is."""
        _abandoned.extend(self.known.values())
        self.known.clear()


async def _keep(
    made: T, loop: asyncio.AbstractEventLoop, known: Known[T], close: Callable[[T], Awaitable[None]]
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if loop in known and known[loop][0] is made:
            del known[loop]
        await close(made)


def _every() -> list[PerLoop[Any]]:
    with _lock:
        return list(_all)


def _close_orphans(known: Known[Any]) -> None:
    """Close on their loops what nobody can ask for any more."""
    for loop, (_, keeper) in list(known.items()):
        with contextlib.suppress(RuntimeError):  # the loop is closed, and so is what belonged to it
            loop.call_soon_threadsafe(_close_soon, loop, keeper)


def _close_soon(loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[None, None]) -> None:
    task = loop.create_task(_closed(keeper))
    _closing.add(task)
    task.add_done_callback(_closing.discard)


async def _closed(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


_closing: set[asyncio.Task[None]] = set()
_all: WeakSet[PerLoop[Any]] = WeakSet()
_lock = ForkSafeLock()
_abandoned: list[Any] = []


def _close_with(loop: asyncio.AbstractEventLoop) -> None:
    """Close what belongs to `loop` also where somebody closes it without asking it to shut its generators down."""
    if getattr(loop.close, "closes_what_belongs_to_it", False):
        return
    close: Callable[[], None] = loop.close

    def closing() -> None:
        if not loop.is_running() and not loop.is_closed():
            for each in _every():
                if loop in each.known:
                    loop.run_until_complete(each.close(loop))
        close()

    closing.closes_what_belongs_to_it = True  # type: ignore[attr-defined]
    with contextlib.suppress(AttributeError):  # a loop that takes no attributes has only the first hook
        loop.close = closing  # type: ignore[method-assign]


@atexit.register
def _close_all() -> None:
    for each in _every():
        each.close_all()


def _begin_anew() -> None:
    for each in _every():
        each.leave_to_the_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
