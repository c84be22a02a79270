"""Work that blocks, done in threads while the event loop goes on; the other direction of the bridge in `sync`."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import math
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar, cast

__all__ = ["Workers", "import_module", "importing", "in_thread"]

T = TypeVar("T")

_REST_SECONDS = 5.0
"""How long a worker waits for something more to do before it goes."""

_FORK_SECONDS = 2.0
"""How long a fork waits for an import that is under way in another thread."""

_numbers = itertools.count(1)


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run `function` in a daemon thread, with the caller's context variables, and return its result.

    There are as many threads as there is work at a time; one that has done its work rests a while for the next, since
    beginning a thread takes longer than most work. A pool of so many, as `asyncio.to_thread` has it, would be the wrong
    shape for work that may hang (a tool, a look-up of a name): some that hang would use it up, and the end of the loop
    and of the interpreter would wait for them. Nor does it take anything any more when the main thread has ended, while
    others may go on for hours. A cancelled caller leaves the thread behind, and its result is ignored.
    """
    return await _many.run(function, *args)


class Workers:
    """Daemon threads for work that blocks: begun when they are needed, gone after a while of rest.

    Args:
        most: threads at a time; further work waits for its turn.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._begin_anew()

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function` in one of the threads, with the caller's context variables, and return its result.

        Cancelling the caller does not take the work away: it is done, and its result ignored.
        """
        job = _Job(function, args)
        if not self._take(job):
            job.run()  # the interpreter is about to end, and has no more threads: nothing else will be held up
        return await job.result()

    def _take(self, job: _Job[Any]) -> bool:
        """Give `job` to a thread; return False where none will ever come for it."""
        if sys.is_finalizing():
            return False
        if self._pid != os.getpid():
            self._begin_anew()  # the threads are the parent's
        with self._changing:
            if self._free <= 0 and self._count < self._most:
                self._count += 1
                if _begin(partial(self._serve, [job])):
                    return True
                self._count -= 1
                if not self._count or self._most == math.inf:
                    return False  # those that there are may hang
            self._free -= 1
            self._jobs.put(job)
        return True

    def _serve(self, first: list[_Job[Any]]) -> None:
        job = first.pop()
        while True:
            job.run()
            del job  # it holds the result, and whatever the work was called with
            with self._changing:
                self._free += 1
            try:
                job = self._jobs.get(timeout=_REST_SECONDS)
            except queue.Empty:
                with self._changing:
                    if self._free > 0:
                        self._free -= 1
                        self._count -= 1
                        return
                job = self._jobs.get()  # one is on its way to this thread

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._changing = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job[Any]] = queue.SimpleQueue()
        self._count = 0
        self._free = 0  # threads that rest, less the jobs that wait for one


class _Job(Generic[T]):
    """A call for another thread, whose outcome comes back to the event loop it was made on."""

    def __init__(self, function: Callable[..., T], args: tuple[Any, ...]) -> None:
        self._function = function
        self._args = args
        self._context = copy_context()
        self._loop = asyncio.get_running_loop()
        # Only tells that it is done: the debug log of an event loop shows what a future holds and a callback gets.
        self._waiter: asyncio.Future[None] = self._loop.create_future()
        self._outcome: tuple[bool, Any] = (True, None)

    def run(self) -> None:
        try:
            self._outcome = (True, self._context.run(self._function, *self._args))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is awaited
            self._outcome = (False, error)
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _deliver(self) -> None:
        if not self._waiter.done():
            self._waiter.set_result(None)

    async def result(self) -> T:
        await self._waiter
        succeeded, result = self._outcome
        if succeeded:
            return cast("T", result)
        try:
            raise result
        finally:
            del result, self  # the traceback holds this frame, which would hold the traceback


def _begin(work: Callable[[], None]) -> bool:
    """Start a daemon thread; return False where none can be had any more."""
    if sys.is_finalizing():
        return False  # it would never get to run, and starting it would wait for that
    try:
        threading.Thread(target=work, name=f"SimpleLLMFunc-work-{next(_numbers)}", daemon=True).start()
    except RuntimeError:  # the interpreter is about to end, or the system has no more
        return False
    return True


_many = Workers(math.inf)
_imports = Workers(1)
_imported: set[str] = set()
_importing = threading.RLock()


async def importing(load: Callable[..., T], *args: Any) -> T:
    """Run `load`, which imports what takes its time, in the one thread that does so, and return its result.

    The event loop goes on, and so does a child forked meanwhile.
    """
    return await _imports.run(_unforked, load, *args)


async def import_module(name: str) -> None:
    """Import a module that takes its time, unless that was done."""
    if name not in _imported:
        await importing(importlib.import_module, name)
        _imported.add(name)


def _unforked(load: Callable[..., T], *args: Any) -> T:
    with _importing:
        return load(*args)


def _before_fork() -> None:
    # A child forked in the middle of an import would wait for ever for a thread that did not come along.
    global _is_held  # noqa: PLW0603 - forks are one at a time
    _is_held = _importing.acquire(timeout=_FORK_SECONDS)


def _after_fork_in_parent() -> None:
    if _is_held:
        _importing.release()


def _after_fork_in_child() -> None:
    global _importing  # noqa: PLW0603 - nobody may be left to release the old one
    _importing = threading.RLock()


_is_held = False
if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
