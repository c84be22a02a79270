"""The one registry for forks: what a forked child renews, and when a fork has to wait.

The same is renewed where gevent or eventlet replace the threads of a process after this package was imported.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import time
from typing import Protocol
from weakref import WeakSet

_FORK_SECONDS = 2.0
"""How long a fork waits for what other threads are doing: an import, or work with a database."""


class ForkAware(Protocol):
    """Something whose state is wrong in a forked child."""

    def renew_in_child(self) -> None:
        """Make it usable in the child, where only the forking thread is left."""


_fork_aware: WeakSet[ForkAware] = WeakSet()


def renew_in_child(owner: ForkAware) -> None:
    """Have ``owner.renew_in_child()`` called in every child forked from now on, as long as `owner` lives."""
    _fork_aware.add(owner)


def renew_if_patched() -> bool:
    """Renew what was made of another kind of threads than there are now; return whether there was any.

    `gevent.monkey.patch_all()` after the import, as under ``gunicorn --preload``, turns threads into greenlets: the
    locks and queues of before would stop all of them at once.
    """
    global _threads  # noqa: PLW0603 - of the process, as the threads are
    if _thread.start_new_thread is _threads:
        return False
    _threads = _thread.start_new_thread
    _renew_all()
    return True


class ForkSafeLock:
    """A lock for ``with`` that is free in a forked child, also if another thread of the parent held it at the fork.

    Its owner may take it again: the garbage collector can run anywhere, and a coroutine it closes takes locks too.

    Args:
        forks_wait: while another thread holds it, for what a C library locks meanwhile would stay locked in the child.
    """

    def __init__(self, *, forks_wait: bool = False) -> None:
        self.renew_in_child()
        renew_in_child(self)
        if forks_wait:
            _waited_for.add(self)

    def renew_in_child(self) -> None:
        """Replace the lock: in the child no thread is left to release it."""
        self._lock = threading.RLock()

    def acquire(self, seconds: float = -1) -> bool:
        """Take it; return False where it was not free within so many seconds."""
        return self._lock.acquire(timeout=seconds)

    def release(self) -> None:
        """Give it back."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def forks_wait() -> contextlib.AbstractContextManager[object]:
    """Hold forks back for the ``with`` block: a child forked during an import would wait for it for ever."""
    return _importing


_threads = _thread.start_new_thread
_importing = threading.RLock()
_waited_for: WeakSet[ForkSafeLock] = WeakSet()
_held: list[ForkSafeLock] = []


def _before() -> None:
    until = time.monotonic() + _FORK_SECONDS
    _importing.acquire(timeout=_FORK_SECONDS)
    _held.extend(lock for lock in tuple(_waited_for) if lock.acquire(max(0.0, until - time.monotonic())))


def _after_in_parent() -> None:
    while _held:
        with contextlib.suppress(RuntimeError):  # that of another thread, which forks too
            _held.pop().release()
    with contextlib.suppress(RuntimeError):  # it was not acquired in time
        _importing.release()


def _renew_all() -> None:
    global _importing  # noqa: PLW0603 - the thread that held it is not in the child
    _importing = threading.RLock()
    _held.clear()
    for owner in tuple(_fork_aware):
        owner.renew_in_child()


if sys.platform != "win32":
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_renew_all)
