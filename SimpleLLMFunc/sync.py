"""The one bridge from synchronous code to the event loop: `run_sync` and `iterate_sync`.

One daemon thread owns one event loop, started at the first call. That works in scripts, in threads, in notebooks and
inside a running loop, whose thread is then blocked as by any other synchronous call.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import selectors
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Generic, Protocol, TypeVar, cast
from weakref import WeakSet

from SimpleLLMFunc.errors import UsageError

__all__ = ["Errands", "ForkAware", "ForkSafeLock", "iterate_sync", "renew_in_child", "run_sync", "submit"]

T = TypeVar("T")

INTERRUPT_SECONDS = 0.5
"""How long an interrupted caller waits for the cancelled work to tidy up."""

CLOSE_SECONDS = 5.0
"""How long closing an iterator waits for its source to tidy up."""

EXIT_SECONDS = 2.0
"""How long the end of the interpreter waits for cancelled work to tidy up."""

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
        bridge = _bridge()
        if bridge is None:
            with _late_runner() as runner:
                return runner.run(work, context=copy_context())
        bridge.refuse_own_thread()
    except UsageError:
        work.close()
        raise
    return _Job(bridge, work, copy_context()).result()


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` on the library's own event loop, with the caller's context variables, and do not wait for it.

    From any thread, that loop's own too. Cancelling the future cancels `work`; `asyncio.wrap_future` awaits it.

    Raises:
        UsageError: the interpreter is about to end.
    """
    try:
        bridge = _bridge()
    except UsageError:
        work.close()
        raise
    if bridge is None:
        work.close()
        raise UsageError(_TOO_LATE)
    return bridge.submit(work)


def iterate_sync(source: AsyncIterator[T]) -> Generator[T, None, None]:
    """Return an iterator over `source`, which runs in one long-lived task on the library's own event loop.

    As under ``async for``, the source goes on only when the next item is asked for. It sees the context variables
    that the caller of this function has now. Closing the iterator, leaving its loop or dropping it closes the
    source at once, in the task it ran in.

    Raises:
        UsageError: called, or asked for an item, from that loop's own thread.
    """
    bridge = _bridge()
    if bridge is None:
        return _iterate_here(source, copy_context())
    bridge.refuse_own_thread()
    return _iterate(_Pump(bridge, source, copy_context()))


def _iterate(pump: _Pump[T]) -> Generator[T, None, None]:
    try:
        while pump.advance():
            yield pump.take()
    finally:
        pump.close()


# --- at the end of the interpreter ------------------------------------------------------------------------

_TOO_LATE = "the interpreter is about to end: no further call can be made here. Make it earlier."


def _late_runner() -> asyncio.Runner:
    """Return what runs coroutines in this thread, when there is no bridge any more.

    Raises:
        UsageError: a loop is running here already, and nobody else could run another one.
    """
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the public one raises
        raise UsageError(_TOO_LATE)
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


# --- the thread and its loop -------------------------------------------------------------------------------


class _Bridge:
    """A daemon thread that runs an event loop until the interpreter ends."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name="SimpleLLMFunc", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._loop.close()
            raise

    def check_alive(self) -> None:
        """Raise in a daemon thread whose call the end of the interpreter has cut off.

        Raises:
            SystemExit: that is so. A thread that it ends says nothing: a traceback would tell no more than that.
        """
        if self._ending:
            raise SystemExit(_TOO_LATE)

    @property
    def is_own_thread(self) -> bool:
        return threading.current_thread() is self._thread

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked child, which inherits the object but not the thread."""
        return os.getpid() == self._pid

    def refuse_own_thread(self) -> None:
        if self.is_own_thread:
            raise UsageError(
                "a synchronous call from the thread of the library's own event loop would wait for itself for ever. "
                "Await the asynchronous form here, or make the calling tool a plain def, which runs in its own thread."
            )

    def call(self, function: Callable[[], object]) -> None:
        """Have the loop call `function` soon; from any thread."""
        if not self.is_of_this_process:
            raise UsageError("this iterator belongs to the parent process. Make a new one after the fork.")
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError as error:  # the loop is closed
            raise UsageError(_TOO_LATE) from error

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:  # the loop is closed
            work.close()
            raise UsageError(_TOO_LATE) from error

    def create_task(self, work: Coroutine[Any, Any, T], context: Context) -> asyncio.Task[T]:
        return self._loop.create_task(work, context=context)

    def stop(self) -> None:
        """Cancel what runs, give it `EXIT_SECONDS` to tidy up, and close the loop."""
        self._ending = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(EXIT_SECONDS * 3)

    def abandon(self) -> None:
        """Leave the loop to the parent process: in the child nobody will ever run its tasks, and none is missed."""
        for task in asyncio.all_tasks(self._loop):
            # asyncio's own way to say so (gather uses it); else each is complained about at the child's end.
            task._log_destroy_pending = False  # type: ignore[attr-defined] # noqa: SLF001
        self._loop.set_debug(False)  # what the child's end finalizes is not on the loop's thread, and harmless
        selector = getattr(self._loop, "_selector", None)
        if selector is None:
            return
        # The child's end closes the generators and transports that it has inherited. They must not reach what is the
        # parent's: neither the poll object, from which they would take its sockets (and its streams would hear nothing
        # any more), nor the sockets themselves, on which they would end its TLS sessions.
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in [key.fd for key in selector.get_map().values()]:
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)
        self._loop._selector = selectors.DefaultSelector()  # type: ignore[attr-defined] # noqa: SLF001
        selector.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._ending:
            # A task may raise these (a tool that calls sys.exit, say). asyncio has already given them to the task,
            # whose caller will see them; that they also stop the loop would hit everybody else.
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


async def _wind_up(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancel every task and close every async generator of `loop`; return whether all of them ended."""
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in tasks:
        task.cancel()
    if tasks:
        _, tasks = await asyncio.wait(tasks, timeout=EXIT_SECONDS)
    closing = asyncio.ensure_future(loop.shutdown_asyncgens())
    _, late = await asyncio.wait({closing}, timeout=EXIT_SECONDS)
    return not tasks and not late


def _bridge() -> _Bridge | None:
    """Return the bridge, built at the first call; None where the interpreter is about to end, and has none.

    Raises:
        UsageError: the interpreter has begun to take itself apart.
    """
    global _running  # noqa: PLW0603 - one per process is the point
    if sys.is_finalizing():
        raise UsageError(_TOO_LATE)  # threads do not run any more: starting one would wait for ever
    with _starting:
        if _running is None and not (_has_stopped or _is_after_the_end()):
            try:
                _running = _Bridge()
            except RuntimeError:
                return None
            atexit.register(_stop_bridge)
        return _running


def _is_after_the_end() -> bool:
    """Whether this is the main thread after its end: in a function that `atexit` calls, perhaps the last one."""
    thread = threading.current_thread()
    return thread is threading.main_thread() and not thread.is_alive()


def _stop_bridge() -> None:
    global _running, _has_stopped
    atexit.unregister(_stop_bridge)
    bridge, _running, _has_stopped = _running, None, True
    if bridge is not None:
        bridge.stop()


# --- one coroutine -----------------------------------------------------------------------------------------


class _Job(Generic[T]):
    """One coroutine on the bridge, and the thread that waits for it."""

    def __init__(self, bridge: _Bridge, work: Coroutine[Any, Any, T], context: Context) -> None:
        self._bridge = bridge
        self._work = work
        self._context = context
        self._task: asyncio.Task[T] | None = None
        self._done = threading.Event()

    def result(self) -> T:
        errands = _errands.get()
        try:
            if errands is not None:
                errands.check()
            self._bridge.call(self._begin)
            if errands is not None:
                errands.begin(self)
            _wait(self._done)
        except (UsageError, asyncio.CancelledError):  # no loop to run it on, or given up before it began
            self._work.close()
            raise
        except BaseException:
            # Not from the work: something interrupted this thread (Ctrl-C, a signal handler that raises).
            self._bridge.call(self._cancel)
            self._done.wait(INTERRUPT_SECONDS)
            raise
        finally:
            if errands is not None:
                errands.end(self)
        task, self._task = cast("asyncio.Task[T]", self._task), None
        try:
            if task.cancelled():
                self._bridge.check_alive()
            return task.result()
        finally:
            # Else: error → traceback → this frame → task → error, which only the garbage collector would end.
            del task

    def cancel(self) -> None:
        """Have the work cancelled, and with it the waiting; from any thread."""
        self._bridge.call(self._cancel)

    def _begin(self) -> None:
        self._task = self._bridge.create_task(self._work, self._context)
        self._task.add_done_callback(lambda _: self._done.set())

    def _cancel(self) -> None:
        if self._task is None:  # interrupted even before it was handed over
            self._work.close()
            self._done.set()
        else:
            self._task.cancel()


# --- one async iterator ------------------------------------------------------------------------------------


class _Pump(Generic[T]):
    """One async iterator in one task on the bridge, handing over one item each time it is asked.

    There is room for one item, and the source rests until it has been taken and the next is wanted: a consumer that
    leaves after an item has not already paid for the next, or had its tools run.
    """

    def __init__(self, bridge: _Bridge, source: AsyncIterator[T], context: Context) -> None:
        self._bridge = bridge
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
        self._bridge.refuse_own_thread()
        errands = _errands.get()
        if errands is not None:
            errands.check()
        self._handed.clear()
        self._patience = CLOSE_SECONDS
        try:
            self._bridge.call(self._want)
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
        if self._ended.is_set() or not self._patience or not self._bridge.is_of_this_process:
            return
        try:
            self._bridge.call(self._cancel)
        except UsageError:
            return  # the loop is closed, and with it the source
        # The garbage collector may have come here in any thread, also in the one that has to do the work.
        if not self._bridge.is_own_thread:
            self._ended.wait(self._patience)
            self._raise_error()

    def cancel(self) -> None:
        """Have the source cancelled while an item is waited for; the waiting ends with CancelledError."""
        self._bridge.call(self._cancel_task)

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if isinstance(error, asyncio.CancelledError):
            self._bridge.check_alive()
        if error is not None:
            try:
                raise error
            finally:
                del error

    # In the bridge's thread.

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _want(self) -> None:
        if self._task is None:
            self._task = self._bridge.create_task(self._run(), self._context)
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


# --- waiting that is given up -----------------------------------------------------------------------------


class _Errand(Protocol):
    def cancel(self) -> None: ...


class Errands:
    """What a piece of synchronous work waits for on the bridge, so that somebody else can end its waiting.

    A thread cannot be cancelled. What it waits for can: it would go on, and cost, for a result that nobody wants.
    """

    def __init__(self) -> None:
        self._open: set[_Errand] = set()
        self._is_cancelled = False
        # The garbage collector may close an iterator anywhere, also in here.
        self._lock = threading.RLock()

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call `function` in this thread and context; what it waits for on the bridge is noted here."""
        _errands.set(self)
        return function(*args)

    def cancel(self) -> None:
        """End the waiting, now and in the future, with `asyncio.CancelledError`; from any thread."""
        with self._lock:
            self._is_cancelled = True
            waited_for = list(self._open)
        for errand in waited_for:
            _give_up(errand)

    def check(self) -> None:
        """Raise if the waiting has been ended.

        Raises:
            CancelledError: it has; nothing new is to begin.
        """
        if self._is_cancelled:
            raise asyncio.CancelledError("the run that this is done for has ended")

    def begin(self, errand: _Errand) -> None:
        """Note that `errand` is waited for from now on."""
        with self._lock:
            self._open.add(errand)
        if self._is_cancelled:
            _give_up(errand)

    def end(self, errand: _Errand) -> None:
        """Note that it is not waited for any more."""
        with self._lock:
            self._open.discard(errand)


def _give_up(errand: _Errand) -> None:
    with suppress(UsageError):  # the loop is closed, and what ran on it has ended
        errand.cancel()


_errands: ContextVar[Errands | None] = ContextVar("SimpleLLMFunc.errands", default=None)


# --- fork --------------------------------------------------------------------------------------------------


class ForkAware(Protocol):
    """Something whose state makes no sense in a forked child as it stands."""

    def renew_in_child(self) -> None:
        """Make it usable in the child, where no thread but the forking one is left."""


_fork_aware: WeakSet[ForkAware] = WeakSet()


def renew_in_child(owner: ForkAware) -> None:
    """Have ``owner.renew_in_child()`` called in every child forked from now on, as long as `owner` lives."""
    _fork_aware.add(owner)


_RLock: Any = type(threading.RLock())


class ForkSafeLock(_RLock):  # type: ignore[misc] # the class has no public name; around it, each use would take thrice as long
    """A lock that is free in a forked child, also if another thread of the parent held it at that moment.

    Its owner may take it again: the garbage collector can run anywhere, and a coroutine it closes takes locks too.
    """

    def __init__(self) -> None:
        renew_in_child(self)

    def renew_in_child(self) -> None:
        """Begin anew: nobody may be left to release it."""
        self._at_fork_reinit()


_running: _Bridge | None = None
_has_stopped = False
_starting = ForkSafeLock()


def _forget_the_parent() -> None:
    global _running
    bridge, _running = _running, None  # its thread did not come along
    if bridge is not None:
        bridge.abandon()
    for owner in tuple(_fork_aware):
        owner.renew_in_child()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_the_parent)
