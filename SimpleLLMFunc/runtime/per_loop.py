"""One thing per event loop: made at the first use, closed with its loop, never shared with a forked child."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet, finalize

from SimpleLLMFunc.runtime.forking import renew_in_child

T = TypeVar("T")

Known: TypeAlias = dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None], threading.Thread]]


class PerLoop(Generic[T]):
    """Something that belongs to the event loop it was made on, such as a pool of connections.

    It is closed when the loop shuts its async generators down, as `asyncio.run`, a `Runner` and most servers have it do.
    Loops that are still open at the end of the interpreter are dealt with then. A loop that is closed by hand needs
    ``await loop.shutdown_asyncgens()`` before.

    Args:
        make: gives a new one; called on the loop.
        close: called on the loop, at its end; holds no reference to the owner.
        is_open: whether one can still be used; one that cannot is replaced.

    Attributes:
        known: for each loop what was made there, the generator that closes it, and the thread it was made in.
    """

    def __init__(
        self, make: Callable[[], T], close: Callable[[T], Awaitable[None]], is_open: Callable[[T], bool]
    ) -> None:
        self._make = make
        self._close = close
        self._is_open = is_open
        self.known: Known[T] = {}
        _all.add(self)
        renew_in_child(self)
        # Held from outside: else the garbage collector would find the connections together with what closes them.
        finalize(self, _close_orphans, self.known).atexit = False

    def here(self) -> T:
        """Return that of the running loop; the first call makes it."""
        loop = asyncio.get_running_loop()
        known = self.known.get(loop)
        if known is not None and self._is_open(known[0]):
            return known[0]
        for closed in [each for each in list(self.known) if each.is_closed()]:
            if (dropped := self.known.pop(closed, None)) is not None:
                self._drop(dropped[0])
        made = self._make()
        keeper = _keep(made, self._close)
        with contextlib.suppress(StopIteration):  # it has come to its yield, and the loop has noted it
            keeper.__anext__().send(None)
        self.known[loop] = (made, keeper, threading.current_thread())
        return made

    def close_all(self) -> None:
        """Close what is still open at the end of the interpreter, on loops that were not closed."""
        for loop, (made, keeper, thread) in list(self.known.items()):
            if loop.is_closed():
                self._drop(made)
            if loop.is_closed() or not self._is_open(made):
                continue
            with contextlib.suppress(RuntimeError, TimeoutError, CancelledError):  # the loop stops meanwhile
                if loop.is_running():
                    asyncio.run_coroutine_threadsafe(_closed(keeper), loop).result(1.0)
                elif thread is threading.current_thread() or not thread.is_alive():
                    loop.run_until_complete(_closed(keeper))
                # Else the loop rests between two runs of a thread that closes it: running it here would disturb those.

    def _drop(self, made: T) -> None:
        # Its loop was closed by hand. What says so at its end, as aiohttp's session does, is closed as far as that goes.
        with contextlib.suppress(Exception):
            next(self._close(made).__await__(), None)

    def renew_in_child(self) -> None:
        """Start again without the parent's; they are kept, since closing them would close the parent's connections."""
        _of_the_parent.extend(self.known.values())
        self.known.clear()


async def _keep(made: T, close: Callable[[T], Awaitable[None]]) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await close(made)


def _close_orphans(known: Known[Any]) -> None:
    """Close on their loops what belonged to an owner that is gone."""
    for loop, (_, keeper, _) in list(known.items()):
        if not loop.is_closed():
            asyncio.run_coroutine_threadsafe(_closed(keeper), loop)


async def _closed(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


_all: WeakSet[PerLoop[Any]] = WeakSet()
_of_the_parent: list[Any] = []


@atexit.register
def _close_all() -> None:
    for each in list(_all):
        each.close_all()
