"""The one bridge from synchronous code to the event loop: `run_sync` and `iterate_sync`.

One daemon thread owns one event loop (`loop_thread`), started at the first call. That works in scripts, in threads, in
notebooks and inside a running loop, whose thread is then blocked as by any other synchronous call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Generator
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar, cast

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.runtime.cancellation import Errands
from SimpleLLMFunc.runtime.loop_thread import TOO_LATE, LoopThread, loop_thread

__all__ = ["iterate_sync", "run_sync", "submit"]

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

    At the end of the interpreter, when that loop has been stopped, it runs on one of its own, in this thread.

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
    return _iterate(_Pump(thread, source, copy_context()))


def _iterate(pump: _Pump[T]) -> Generator[T, None, None]:
    try:
        while pump.advance():
            yield pump.take()
    finally:
        pump.close()


# --- at the end of the interpreter ------------------------------------------------------------------------


def _late_runner() -> asyncio.Runner:
    """Return what runs coroutines in this thread, when the library's own loop is no more.

    Raises:
        UsageError: a loop is running here already, and nobody else could run another one.
    """
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the public one raises
        raise UsageError(TOO_LATE)
    return asyncio.Runner()


def _iterate_here(source: AsyncIterator[T], context: Context) -> Generator[T, None, None]:
    """Yield the items of `source`, which runs on a loop of its own in this thread."""

    async def ended() -> None:
        aclose = getattr(source, "aclose", None)
        if aclose is not None:
            await aclose()

    async def following() -> list[T]:
        async for item in source:
            return [item]
        return []

    with _late_runner() as runner:
        try:
            while items := runner.run(following(), context=context):
                yield from items
        finally:
            runner.run(ended(), context=context)


# --- one coroutine -----------------------------------------------------------------------------------------


class _Job(Generic[T]):
    """One coroutine on the loop, and the thread that waits for it."""

    def __init__(self, thread: LoopThread, work: Coroutine[Any, Any, T], context: Context) -> None:
        self._thread = thread
        self._work = work
        self._context = context
        self._task: asyncio.Task[T] | None = None
        self._done = threading.Event()

    def result(self) -> T:
        errands = Errands.current()
        try:
            if errands is not None:
                errands.check()
            self._thread.call(self._begin)
            if errands is not None:
                errands.begin(self)
            _wait(self._done)
        except (UsageError, asyncio.CancelledError):  # no loop to run it on, or given up before it began
            self._work.close()
            raise
        except BaseException:
            # Not from the work: something interrupted this thread (Ctrl-C, a signal handler that raises).
            self._thread.call(self._cancel)
            self._done.wait(INTERRUPT_SECONDS)
            raise
        finally:
            if errands is not None:
                errands.end(self)
        task, self._task = cast("asyncio.Task[T]", self._task), None
        try:
            if task.cancelled():
                self._thread.check_alive()
            return task.result()
        finally:
            # Else: error → traceback → this frame → task → error, which only the garbage collector would end.
            del task

    def cancel(self) -> None:
        """Have the work cancelled, and with it the waiting; from any thread."""
        self._thread.call(self._cancel)

    def _begin(self) -> None:
        self._task = self._thread.create_task(self._work, self._context)
        self._task.add_done_callback(lambda _: self._done.set())

    def _cancel(self) -> None:
        if self._task is None:  # interrupted even before it was handed over
            self._work.close()
            self._done.set()
        else:
            self._task.cancel()


# --- one async iterator ------------------------------------------------------------------------------------


class _Pump(Generic[T]):
    """One async iterator in one task on the loop, handing over one item each time it is asked.

    There is room for one item, and the source rests until it has been taken and the next is wanted: a consumer that
    leaves after an item has not already paid for the next, or had its tools run.
    """

    def __init__(self, thread: LoopThread, source: AsyncIterator[T], context: Context) -> None:
        self._thread = thread
        self._source = source
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._handed = threading.Event()
        self._ended = threading.Event()
        self._item: list[T] = []
        self._error: BaseException | None = None
        self._closing = False
        self._patience = 0.0  # nothing to wait for before the first item is asked for

    # In the consumer's thread.

    def advance(self) -> bool:
        """Wait for the next item; return whether there is one.

        Raises:
            BaseException: what the source raised.
        """
        self._thread.check_elsewhere()
        errands = Errands.current()
        if errands is not None:
            errands.check()
        self._handed.clear()
        self._patience = CLOSE_SECONDS
        try:
            self._thread.call(self._want)
            if errands is not None:
                errands.begin(self)
            _wait(self._handed)
        except BaseException:
            self._patience = INTERRUPT_SECONDS
            raise
        finally:
            if errands is not None:
                errands.end(self)
        self._raise_error()
        return bool(self._item)

    def take(self) -> T:
        """Return the item that `advance` waited for."""
        return self._item.pop()

    def close(self) -> None:
        """Close the source, and wait until it has tidied up; what it raises meanwhile is raised here."""
        if self._ended.is_set() or not self._patience or not self._thread.is_of_this_process:
            return
        try:
            self._thread.call(self._cancel)
        except UsageError:
            return  # the loop is closed, and with it the source
        # The garbage collector may have come here in any thread, also in the one that has to do the work.
        if not self._thread.is_current:
            self._ended.wait(self._patience)
            self._raise_error()

    def cancel(self) -> None:
        """Have the source cancelled while an item is waited for; the waiting ends with CancelledError."""
        self._thread.call(self._cancel_task)

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if isinstance(error, asyncio.CancelledError):
            self._thread.check_alive()
        if error is not None:
            try:
                raise error
            finally:
                del error

    # In the loop's thread.

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _want(self) -> None:
        if self._task is None:
            self._task = self._thread.create_task(self._run(), self._context)
            self._task.add_done_callback(self._finish)
        self._wanted.set()

    def _cancel(self) -> None:
        self._closing = True
        if self._task is None:  # interrupted even before it was asked for the first item
            self._ended.set()
        else:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._wanted.wait()
            self._wanted.clear()
            async for item in self._source:
                self._item.append(item)
                self._handed.set()
                await self._wanted.wait()
                self._wanted.clear()
        finally:
            aclose = getattr(self._source, "aclose", None)
            if aclose is not None:
                await aclose()

    def _finish(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._error = task.exception()
        elif not self._closing:
            self._error = asyncio.CancelledError("the caller's run was cancelled")
        self._ended.set()
        self._handed.set()


def _wait(event: threading.Event) -> None:
    while not event.wait(_WAKE_SECONDS):
        pass
