"""Work that blocks, done in threads while the event loop goes on; the other direction of the bridge in `sync`."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import math
import os
import queue
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar, cast

from SimpleLLMFunc.runtime.forking import ForkSafeLock, renew_in_child

__all__ = ["Workers", "import_module", "importing", "in_thread"]

T = TypeVar("T")

_REST_SECONDS = 5.0
"""How long a worker waits for something more to do before it goes."""

_FORK_SECONDS = 2.0
"""How long a fork waits for an import that is under way in another thread."""

_numbers = itertools.count(1)


def in_thread(function: Callable[..., T], *args: Any, pause: float = 0.0) -> Coroutine[Any, Any, T]:
    """Run `function`, when awaited, in a daemon thread, with the caller's context variables, and return its result.

    There are as many threads as there is work at a time; one that has done its work rests a while for the next, since
    beginning a thread takes longer than most work. A pool of so many, as `asyncio.to_thread` has it, would be the wrong
    shape for work that may hang (a tool, a look-up of a name): some that hang would use it up, and the end of the loop
    and of the interpreter would wait for them. Nor does it take anything any more when the main thread has ended, while
    others may go on for hours. A cancelled caller leaves the thread behind, and its result is ignored.

    Args:
        function: the work.
        *args: its arguments.
        pause: seconds that the event loop stands still for the result before it goes on with other things: a fraction
            of a millisecond, for work that is expected to take less than going on and being called back does.
    """
    return _many.run(function, *args, pause=pause)


class Workers:
    """Daemon threads for work that blocks: begun when they are needed, gone after a while of rest.

    Args:
        most: threads at a time; further work waits for its turn.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self.renew_in_child()
        renew_in_child(self)

    def renew_in_child(self) -> None:
        """Begin anew: the threads are the parent's."""
        self._changing = threading.Lock()
        # A thread is called for each, and takes the first, whichever that is: they begin in the order they came in.
        self._jobs: deque[_Job[Any]] = deque()
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._seat: _Seat | None = None
        self._count = 0
        self._free = 0  # threads that rest at the queue, less the calls that wait in it

    async def run(self, function: Callable[..., T], *args: Any, pause: float = 0.0) -> T:
        """Run `function` in one of the threads, with the caller's context variables, and return its result.

        Cancelling the caller does not take the work away: it is done, and its result ignored. `pause` as in
        `in_thread`.
        """
        job = _Job(function, args, pause)
        if not self._take(job):
            job.work()  # the interpreter is about to end, and has no more threads: nothing else will be held up
            job.tell()
        return await job.result()

    def _take(self, job: _Job[Any]) -> bool:
        """Give `job` to a thread; return False where none will ever come for it."""
        if sys.is_finalizing():
            return False
        try:
            with self._changing:
                self._jobs.append(job)
                seat = self._seat
                if seat is None or not seat.call():
                    seat = None
                    if self._free <= 0 and self._count < self._most:
                        self._count += 1
                        if _begin(self._serve):
                            return True
                        self._count -= 1
                        if not self._count or self._most == math.inf:
                            return not self._withdraw(job)  # those that there are may hang
                    self._free -= 1
                    self._calls.put(None)
            if seat is not None:
                seat.wake()  # without the lock, which the thread may want before this one goes on
        except BaseException:
            self._withdraw(job)  # Ctrl-C: nobody waits for it, and nobody else's call must come to it
            raise
        return True

    def _withdraw(self, job: _Job[Any]) -> bool:
        """Take back what no thread has taken yet; return False where one has."""
        try:
            self._jobs.remove(job)
        except ValueError:
            return False
        return True

    def _serve(self) -> None:
        job: _Job[Any] | None
        is_called = True
        while is_called:
            try:
                job = self._jobs.popleft()
            except IndexError:
                job = None  # it was taken back
            else:
                job.work()
            with self._changing:
                # Before anybody hears of the result: what comes next then needs no thread of its own.
                if self._seat is None:
                    self._seat = _new_seat()
                seat = self._seat
                if self._free < 0 or seat is None or not seat.take():
                    self._free += 1
                    seat = None
            if job is not None:
                job.tell()
            job = None  # it holds the result, and whatever the work was called with
            is_called = self._rest(seat)

    def _rest(self, seat: _Seat | None) -> bool:
        """Rest on `seat` or at the queue; return whether there is a call, False after a while without."""
        if seat is not None:
            if not seat.is_called_within(_REST_SECONDS):
                with self._changing:
                    if seat.leave():
                        self._count -= 1
                        return False
            seat.rise()
            return True
        try:
            self._calls.get(timeout=_REST_SECONDS)
        except queue.Empty:
            with self._changing:
                if self._free > 0:
                    self._free -= 1
                    self._count -= 1
                    return False
            self._calls.get()  # one is on its way to this thread
        return True


class _Job(Generic[T]):
    """A call for another thread, whose outcome comes back to the event loop it was made on."""

    __slots__ = ("_args", "_context", "_function", "_is_awaited", "_loop", "_outcome", "_pause", "_undone", "_waiter")

    def __init__(self, function: Callable[..., T], args: tuple[Any, ...], pause: float) -> None:
        self._function = function
        self._args = args
        self._pause = pause
        self._context = copy_context()
        self._loop = asyncio.get_running_loop()
        # Only tells that it is done: the debug log of an event loop shows what a future holds and a callback gets.
        self._waiter: asyncio.Future[None] | None = None
        self._is_awaited = False
        self._undone: threading.Lock | None = None
        if pause:
            self._undone = threading.Lock()
            self._undone.acquire()  # the thread releases it
        else:
            self._await()
        self._outcome: tuple[bool, Any] = (True, None)

    def work(self) -> None:
        """Do the work, and tell nobody yet."""
        try:
            self._outcome = (True, self._context.run(self._function, *self._args))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is awaited
            self._outcome = (False, error)

    def tell(self) -> None:
        """Tell whoever waits that the work is done."""
        if self._undone is not None:
            self._undone.release()
        if self._is_awaited:  # looked at after the release, and set before the last look at what is released
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more

    def _await(self) -> None:
        self._waiter = self._loop.create_future()
        self._is_awaited = True

    def _deliver(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _is_done(self) -> bool:
        """Whether the result is here; if not, the loop will be told of it."""
        undone = self._undone
        if undone is None:
            return False
        # Neither a write to the loop nor a round of it, and no two threads that want the interpreter at one time:
        # for work that takes microseconds that is most of what a thread costs.
        if undone.acquire(timeout=self._pause):
            return True
        self._await()
        return undone.acquire(blocking=False)

    async def result(self) -> T:
        if not self._is_done() and self._waiter is not None:
            await self._waiter
        succeeded, result = self._outcome
        if succeeded:
            return cast("T", result)
        try:
            raise result
        finally:
            del result, self  # the traceback holds this frame, which would hold the traceback


class _Seat:
    """Where one thread at a time rests, to be woken by an event counter of the kernel, which only Linux has.

    Whoever adds to the counter lets go of the interpreter meanwhile. The lock in a queue is released with the interpreter
    in hand: where the two threads have one processor, the system runs the one that wakes at once, which finds the
    interpreter taken and sleeps again, so that there are two switches more.

    `take`, `call` and `leave` are for who holds the lock of the workers.
    """

    __slots__ = ("_counter", "_poll", "_state")

    def __init__(self, counter: int) -> None:
        self._state = "empty"
        self._counter = counter
        self._poll = select.poll()
        self._poll.register(self._counter, select.POLLIN)

    def __del__(self) -> None:
        os.close(self._counter)

    def take(self) -> bool:
        """Have the calling thread rest here; return False where another does."""
        if self._state != "empty":
            return False
        self._state = "taken"
        return True

    def call(self) -> bool:
        """Have the thread that rests here rise, which is to be woken then; return False where none does."""
        if self._state != "taken":
            return False
        self._state = "called"
        return True

    def wake(self) -> None:
        """Wake the thread that was called."""
        os.eventfd_write(self._counter, 1)

    def leave(self) -> bool:
        """Have the thread go; return False where it is called."""
        if self._state == "called":
            return False
        self._state = "empty"
        return True

    def is_called_within(self, seconds: float) -> bool:
        """Rest so long at most, and return whether it was ended by a call."""
        return bool(self._poll.poll(seconds * 1000))

    def rise(self) -> None:
        """Leave for the job that the call was for, without waiting for whoever is about to wake the thread."""
        with suppress(BlockingIOError):  # then the next who rests here is woken in vain
            os.eventfd_read(self._counter)
        self._state = "empty"


def _new_seat() -> _Seat | None:
    try:
        return _Seat(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)) if hasattr(os, "eventfd") else None
    except OSError:  # no more files can be opened
        return None


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
_importing = ForkSafeLock()


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


_is_held = False
if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent)
