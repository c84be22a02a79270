"""Blocking work in daemon threads, awaited by a coroutine; the other direction of the bridge in `sync`.

`asyncio.to_thread` and `ThreadPoolExecutor` do not serve: tools that hang would use up their threads, nested calls would
wait for one another, and the interpreter would wait for all of them at its end.
"""

from __future__ import annotations

import asyncio
import importlib
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import finalize

from SimpleLLMFunc.runtime.forking import forks_wait, renew_in_child

T = TypeVar("T")

LARGE: Final = 16 * 1024
"""Bytes or characters; work on more than this is done in a thread. Mending so much JSON takes about 20 ms."""


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run `function` in a daemon thread, with the caller's context variables, and return its result.

    Each call has its own thread. A cancelled caller leaves the thread behind, and its result is ignored.
    """
    job: _Job[T] = _Job(function, args)
    if not _start(job):
        job()
    return await job.result()


async def off_loop_if_large(size: int, work: Callable[[], T]) -> T:
    """Return ``work()``; a `size` above `LARGE` is worked on in a thread, so that the event loop goes on."""
    return await in_thread(work) if size > LARGE else work()


class Worker:
    """One daemon thread that does one piece of work after the other; started at the first one, ends with its owner."""

    def __init__(self) -> None:
        self.renew_in_child()
        renew_in_child(self)

    def renew_in_child(self) -> None:
        """Start again without a thread: it is the parent's."""
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._has_thread = False

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function` in the thread, with the caller's context variables, and return its result.

        Cancelling the caller does not cancel the work: it is done, and its result is ignored.
        """
        job: _Job[T] = _Job(function, args)
        with self._starting:
            if not self._has_thread:
                self._has_thread = _start(partial(_serve, self._jobs))
                finalize(self, self._jobs.put, None).atexit = False
        if self._has_thread and not sys.is_finalizing():
            self._jobs.put(job)
        else:
            job()
        return await job.result()


def _serve(jobs: queue.SimpleQueue[_Job[Any] | None]) -> None:
    while job := jobs.get():
        job()
        del job  # it holds the arguments and the result


class _Job(Generic[T]):
    """A call for another thread. It keeps the outcome itself: asyncio's debug log shows what a future holds."""

    def __init__(self, function: Callable[..., T], args: tuple[Any, ...]) -> None:
        self._work = partial(copy_context().run, function, *args)
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._error: BaseException | None = None
        self._result: T

    def __call__(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            self._error = error
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    async def result(self) -> T:
        await self._done
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error  # its traceback holds this frame


def _start(work: Callable[[], None]) -> bool:
    """Start a daemon thread; return False where there are no more: the caller then does the work itself."""
    if sys.is_finalizing():
        return False  # starting one would wait for ever
    try:
        threading.Thread(target=work, name="SimpleLLMFunc-work", daemon=True).start()
    except RuntimeError:  # the interpreter is about to end, or the system has no more
        return False
    return True


_imports = Worker()


async def importing(load: Callable[..., T], *args: Any) -> T:
    """Run `load`, which imports something slow, in the thread for imports, and return its result.

    The event loop goes on meanwhile, and a fork waits until the import is done.
    """
    return await _imports.run(_unforked, load, *args)


async def import_module(name: str) -> None:
    """Import a slow module off the event loop, unless it is imported already."""
    if name not in _imported:
        await importing(importlib.import_module, name)
        _imported.add(name)


_imported: set[str] = set()


def _unforked(load: Callable[..., T], *args: Any) -> T:
    with forks_wait():
        return load(*args)
