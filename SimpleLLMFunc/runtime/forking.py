"""What a forked child has to begin anew: locks that others held, and state that belongs to the parent's threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakSet

__all__ = ["ForkAware", "ForkSafeLock", "forget_in_child", "renew_in_child"]


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


_forgetting: list[Callable[[], None]] = []


def forget_in_child(forget: Callable[[], None]) -> None:
    """Have `forget` called in every child forked from now on, before anything is renewed there.

    What is renewed drops what waits for the parent's threads, and they must be known to be gone by then.
    """
    _forgetting.append(forget)


def _begin_anew() -> None:
    for forget in _forgetting:
        forget()
    for owner in tuple(_fork_aware):
        owner.renew_in_child()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_begin_anew)
