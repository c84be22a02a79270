"""The one bridge from synchronous code to the event loop: `run_sync` and `iterate_sync`.

One daemon thread owns one event loop (`loop_thread`), started at the first call. That works in scripts, in threads, in
notebooks and inside a running loop, whose thread is then blocked as by any other synchronous call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.runtime.loop_thread import TOO_LATE, LoopThread, loop_thread
from SimpleLLMFunc.utils import close_iterator

T = TypeVar("T")

INTERRUPT_SECONDS = 0.5
"""How long an interrupted caller waits for the cancelled work to tidy up."""

CLOSE_SECONDS = 5.0
"""How long closing an iterator waits for its source to tidy up."""

# Windows cannot interrupt a thread that waits for a lock: there, wake up now and then to let Ctrl-C through.
_WAKE_SECONDS = 0.2 if sys.platform == "win32" else None


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the library's own event loop, with the caller's context variables, and wait for its result.

    What `work` raises is raised here, with its traceback. If the wait itself is interrupted (Ctrl-C), `work` is
    cancelled first. A daemon thread that still waits when the interpreter ends gets SystemExit.

    At the end of the interpreter, when that loop has been stopped, it runs on a new loop in this thread.

    Raises:
        UsageError: called from that loop's own thread, where waiting would never end; or `work` is no coroutine; or
            the interpreter has begun to take itself apart.
    """
    if not isinstance(work, Coroutine):
        raise UsageError(f"run_sync takes a coroutine, as calling an async function gives it, not {work!r:.80}.")
    try:
        thread = loop_thread()
        if thread is None:
            with _late_runner() as runner:
                return runner.run(work, context=copy_context())
        thread.check_elsewhere()
    except UsageError:
        work.close()
        raise
    return _Job(thread, work, copy_context()).result()


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` on the library's own event loop, with the caller's context variables, and do not wait for it.

    From any thread, that loop's own too. Cancelling the future cancels `work`; `asyncio.wrap_future` awaits it.

    Raises:
        UsageError: the interpreter is about to end.
    """
    try:
        thread = loop_thread()
    except UsageError:
        work.close()
        raise
    if thread is None:
        work.close()
        raise UsageError(TOO_LATE)
    return thread.submit(work)


def iterate_sync(source: AsyncIterator[T]) -> Generator[T, None, None]:
    """Return an iterator over `source`, which runs in one long-lived task on the library's own event loop.

    As under ``async for``, the source goes on only when the next item is asked for. It sees the context variables
    that the caller of this function has now. Closing the iterator, leaving its loop or dropping it closes the
    source at once, in the task it ran in.

    Raises:
        UsageError: called, or asked for an item, from that loop's own thread.
    """
    thread = loop_thread()
    if thread is None:
        return _iterate_here(source, copy_context())
    thread.check_elsewhere()
    return _iterate(thread, source, copy_context())


def _iterate(thread: LoopThread, source: AsyncIterator[T], context: Context) -> Generator[T, None, None]:
    pump = _Pump(thread, source, context)
    try:
        while pump.advance():
            yield pump.take()
    finally:
        pump.close()


def _late_runner() -> asyncio.Runner:
    """Return a runner for coroutines in this thread, when the library's own loop has been stopped.

    Raises:
        UsageError: a loop is running here already.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.Runner()
    raise UsageError(TOO_LATE)


def _iterate_here(source: AsyncIterator[T], context: Context) -> Generator[T, None, None]:
    """Yield the items of `source`, which runs on a new loop in this thread."""

    async def following() -> list[T]:
        async for item in source:
            return [item]
        return []

    with _late_runner() as runner:
        try:
            while items := runner.run(following(), context=context):
                yield from items
        finally:
            runner.run(close_iterator(source), context=context)


# --- ending a wait from outside -----------------------------------------------------------------------------


class Errands:
    """The waits of one piece of synchronous work for the library's loop, so that they can be ended.

    A thread cannot be cancelled, but the coroutine that it waits for can: otherwise it would go on, and cost, for a
    result that is ignored.
    """

    def __init__(self) -> None:
        self._open: set[_Job[Any]] = set()
        self._is_cancelled = False
        # The garbage collector may close an iterator anywhere, also in here.
        self._lock = threading.RLock()

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call `function` in this thread and context; its waits are noted here."""
        _errands.set(self)
        return function(*args)

    def cancel(self) -> None:
        """End the waits, now and in the future, with `asyncio.CancelledError`; from any thread."""
        with self._lock:
            self._is_cancelled = True
            jobs = list(self._open)
        for job in jobs:
            with suppress(UsageError):  # the loop is closed, and what ran on it has ended
                job.cancel()

    @contextmanager
    def noted(self, job: _Job[Any]) -> Iterator[None]:
        """Let the wait for `job` in the block be ended.

        Raises:
            CancelledError: all waits have been ended, so nothing new may begin.
        """
        with self._lock:
            if self._is_cancelled:
                raise asyncio.CancelledError("the run that this is done for has ended")
            self._open.add(job)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(job)


_errands: ContextVar[Errands | None] = ContextVar("SimpleLLMFunc.errands", default=None)


def _noted(job: _Job[Any]) -> AbstractContextManager[None]:
    errands = _errands.get()
    return nullcontext() if errands is None else errands.noted(job)


# --- on the library's own loop -----------------------------------------------------------------------------


class _Job(Generic[T]):
    """A coroutine in a task on the loop, for which another thread waits."""

    def __init__(self, thread: LoopThread, work: Coroutine[Any, Any, T], context: Context) -> None:
        self.thread = thread
        self.work = work
        self.context = context
        self.ended = threading.Event()
        self.task: asyncio.Task[T] | None = None

    def result(self) -> T:
        """Run it, wait for it, and return its result."""
        try:
            with _noted(self):
                self.thread.call(self.begin)
                _wait(self.ended)
        except (UsageError, asyncio.CancelledError):  # it has not begun
            self.work.close()
            raise
        except BaseException:
            # Something interrupted this thread (Ctrl-C, a signal handler that raises).
            self.cancel()
            self.ended.wait(INTERRUPT_SECONDS)
            raise
        return self.outcome()

    def outcome(self) -> T:
        """Return the result of what has ended."""
        task, self.task = self.task, None
        if task is None or task.cancelled():
            self.thread.check_alive()
        if task is None:
            raise asyncio.CancelledError("the run that this is done for has ended")
        try:
            return task.result()
        finally:
            # Else: error → traceback → this frame → task → error, which only the garbage collector would end.
            del task

    def cancel(self) -> None:
        """Have the work cancelled, and with it the waiting; from any thread."""
        self.thread.call(self._cancel)

    def begin(self) -> None:
        """Start the work, once; in the loop's thread."""
        if self.task is None and not self.ended.is_set():
            self.task = self.thread.create_task(self.work, self.context)
            self.task.add_done_callback(self.end)

    def end(self, _: object = None) -> None:
        """Note that it has ended."""
        self.ended.set()

    def _cancel(self) -> None:
        if self.task is None:  # cancelled before it began
            self.work.close()
            self.end()
        else:
            self.task.cancel()


class _Pump(_Job[None], Generic[T]):
    """An async iterator in one task on the loop, which hands over one item each time it is asked.

    There is room for one item, and the source rests until it has been taken and the next is wanted: a consumer that
    leaves after an item has not already paid for the next, or had its tools run.
    """

    def __init__(self, thread: LoopThread, source: AsyncIterator[T], context: Context) -> None:
        super().__init__(thread, self._run(source), context)
        self._wanted = asyncio.Event()
        self._handed = threading.Event()
        self._item: list[T] = []
        self._seconds_to_close = CLOSE_SECONDS

    # In the consumer's thread.

    def advance(self) -> bool:
        """Wait for the next item; return whether there is one.

        Raises:
            BaseException: what the source raised.
        """
        self.thread.check_elsewhere()
        self._handed.clear()
        try:
            with _noted(self):
                self.thread.call(self._want)
                _wait(self._handed)
        except BaseException:
            self._seconds_to_close = INTERRUPT_SECONDS
            raise
        if not self._item:
            self.outcome()
        return bool(self._item)

    def take(self) -> T:
        """Return the item that `advance` waited for."""
        return self._item.pop()

    def close(self) -> None:
        """Close the source, and wait until it has tidied up; what it raises meanwhile is raised here."""
        if not self.thread.is_of_this_process:
            if self.task is None:
                self.work.close()
            return
        if self.ended.is_set():
            return
        try:
            self.cancel()
        except UsageError:
            return  # the loop is closed, and with it the source
        # The garbage collector may have come here in any thread, also in the one that has to do the work.
        if not self.thread.is_current:
            self.ended.wait(self._seconds_to_close)
            if self.task is not None and self.task.done() and not self.task.cancelled():
                self.outcome()

    # In the loop's thread.

    def _want(self) -> None:
        self._wanted.set()
        self.begin()

    def end(self, _: object = None) -> None:
        """Note that the source has ended."""
        self.ended.set()
        self._handed.set()

    async def _run(self, source: AsyncIterator[T]) -> None:
        try:
            await self._next_wanted()
            async for item in source:
                self._item.append(item)
                self._handed.set()
                await self._next_wanted()
        finally:
            await close_iterator(source)

    async def _next_wanted(self) -> None:
        await self._wanted.wait()
        self._wanted.clear()


def _wait(event: threading.Event) -> None:
    while not event.wait(_WAKE_SECONDS):
        pass
