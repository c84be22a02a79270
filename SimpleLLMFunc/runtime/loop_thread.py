"""The daemon thread that runs the library's own event loop: started at the first call, stopped with the interpreter."""

from __future__ import annotations

import asyncio
import atexit
import os
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.runtime.forking import ForkSafeLock, renew_if_patched

T = TypeVar("T")

EXIT_SECONDS = 2.0
"""How long the end of the interpreter waits for cancelled work to tidy up."""

TOO_LATE = "the interpreter is about to end: no further call can be made here. Make it earlier."


class LoopThread:
    """A daemon thread that runs an event loop until the interpreter ends.

    Raises:
        RuntimeError: the interpreter is about to end, and has no more threads.
        ConfigError: the process has no file descriptors left for the loop.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._ending = False
        # A loop holds its tasks weakly. In a forked child, where nothing runs them, their end would be complained about.
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._serve, name="SimpleLLMFunc", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._loop.close()
            raise

    def check_alive(self) -> None:
        """Raise in a daemon thread whose call was cut off by the end of the interpreter.

        Raises:
            SystemExit: that is so. It ends a thread without a traceback.
        """
        if self._ending:
            raise SystemExit(TOO_LATE)

    @property
    def is_current(self) -> bool:
        """Whether this is the thread."""
        return threading.current_thread() is self._thread

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked child, which inherits the object but not the thread."""
        return os.getpid() == self._pid

    def check_elsewhere(self) -> None:
        """Raise in the thread itself, where waiting for its loop would never end.

        Raises:
            UsageError: that is so.
        """
        if self.is_current:
            raise UsageError(
                "a synchronous call from the thread of the library's own event loop would wait for itself for ever. "
                "Await the asynchronous form here, or make the calling tool a plain def, which runs in its own thread."
            )

    def call(self, function: Callable[[], object]) -> None:
        """Have the loop call `function` soon, in a copy of the caller's context; from any thread.

        Raises:
            UsageError: the loop is the parent process's, or closed.
        """
        if not self.is_of_this_process:
            raise UsageError("this iterator belongs to the parent process. Make a new one after the fork.")
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError as error:
            raise UsageError(TOO_LATE) from error

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `work` in the caller's context, and do not wait for it; from any thread.

        Raises:
            UsageError: the loop is closed.
        """
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise UsageError(TOO_LATE) from error

    def create_task(self, work: Coroutine[Any, Any, T], context: Context) -> asyncio.Task[T]:
        """Start `work` in `context`; from the thread itself only."""
        task = self._loop.create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def stop(self) -> None:
        """Cancel what runs, give it `EXIT_SECONDS` to tidy up, and close the loop."""
        self._ending = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(EXIT_SECONDS * 3)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._ending:
            # A task may raise these (a tool that calls sys.exit, say). asyncio has already given them to the task,
            # whose caller will see them; that they also stop the loop would hit every other call.
            with suppress(KeyboardInterrupt, SystemExit):
                self._loop.run_forever()
        if self._has_wound_up():
            self._loop.close()
        else:
            # Something ignores its cancellation. Closing the loop under it would only add noise to the exit: keep
            # it alive in this thread, which ends with the process.
            threading.Event().wait()

    def _has_wound_up(self) -> bool:
        try:
            return self._loop.run_until_complete(_wind_up(self._loop))
        except (KeyboardInterrupt, SystemExit):  # raised by a task in answer to its cancellation
            return False


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        with socket.socket(), socket.socket(), socket.socket():
            pass  # a loop that gets only some of its three descriptors complains when it is collected
        return asyncio.new_event_loop()
    except OSError as error:
        raise ConfigError(
            f"the event loop for synchronous calls cannot be started: {error.strerror or error}. The process has no "
            "free file descriptors: close files and connections, or raise the limit (ulimit -n), and call again."
        ) from error


async def _wind_up(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancel every task and close every async generator of `loop`; return whether all of them ended."""
    end, own = loop.time() + EXIT_SECONDS, {asyncio.current_task(loop)}
    # A thread may bring another task meanwhile.
    while (tasks := asyncio.all_tasks(loop) - own) and (left := end - loop.time()) > 0:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=left)
    _, late = await asyncio.wait({asyncio.ensure_future(loop.shutdown_asyncgens())}, timeout=EXIT_SECONDS)
    return not tasks and not late


def loop_thread() -> LoopThread | None:
    """Return the thread, started at the first call; None where the interpreter is about to end, and has no more threads.

    Raises:
        UsageError: the interpreter has begun to take itself apart.
        ConfigError: the process has no file descriptors left.
    """
    global _running  # noqa: PLW0603 - one per process is the point
    if sys.is_finalizing():
        raise UsageError(TOO_LATE)  # threads do not run any more: starting one would wait for ever
    if renew_if_patched():
        _running = None
    with _starting:
        if _running is None or not _running.is_of_this_process:
            if _has_stopped or _is_after_the_end():
                return None
            try:
                _running = LoopThread()
            except RuntimeError:
                return None
            atexit.register(_stop)
        return _running


def _is_after_the_end() -> bool:
    """Whether this is the main thread after its end: in a function that `atexit` calls, perhaps the last one."""
    thread = threading.current_thread()
    return thread is threading.main_thread() and not thread.is_alive()


def _stop() -> None:
    global _running, _has_stopped
    atexit.unregister(_stop)
    thread, _running, _has_stopped = _running, None, True
    if thread is not None and thread.is_of_this_process:
        thread.stop()


_running: LoopThread | None = None
_has_stopped = False
_starting = ForkSafeLock()
