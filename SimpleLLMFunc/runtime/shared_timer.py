"""One timer of an event loop for all waits of the same length: there are thousands, and hardly one lasts so long.

A timer for each of them would be three more objects for the garbage collector to look at in each call in flight. Waits
of one length end in the order in which they began, so that a dictionary is queue enough.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from contextvars import Context
from typing import Protocol
from weakref import ref

__all__ = ["Alarm", "Sleeper", "alarm_for"]

_MOST = 64
"""Lengths that are remembered for a loop."""


class Sleeper(Hashable, Protocol):
    """Waits, and is told when that takes too long."""

    def strike(self) -> None:
        """End the wait."""


class Alarm:
    """Ends the waits on one event loop that last for `seconds`."""

    # The loop itself is nowhere: it would never be collected.
    __slots__ = ("_is_set", "_seconds", "_waiting")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: dict[Sleeper, float] = {}
        self._is_set = False

    def begin(self, sleeper: Sleeper, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Note that `sleeper` waits from `now` on, the time of the running `loop`."""
        self._waiting[sleeper] = now + self._seconds
        if not self._is_set:
            self._set(loop, now + self._seconds)

    def end(self, sleeper: Sleeper) -> None:
        """Note that it waits no longer; one that was struck need not, and may."""
        self._waiting.pop(sleeper, None)

    def _set(self, loop: asyncio.AbstractEventLoop, moment: float) -> None:
        self._is_set = True
        # In a context of its own: that of whoever comes first would live as long as the timer.
        loop.call_at(moment, self._ring, context=Context())

    def _ring(self) -> None:
        self._is_set = False
        loop = asyncio.get_running_loop()
        now = loop.time()
        late: list[Sleeper] = []
        for sleeper, moment in self._waiting.items():
            if moment > now:
                self._set(loop, moment)
                break
            late.append(sleeper)
        for sleeper in late:
            del self._waiting[sleeper]
            sleeper.strike()


class _Alarms(threading.local):
    """Those of the loop that runs in this thread."""

    def __init__(self) -> None:
        # In one place: to look at an attribute of a thread takes as long as the rest of it.
        self.known: tuple[Callable[[], asyncio.AbstractEventLoop | None], dict[float, Alarm]] = _no_loop, {}


def _no_loop() -> None:
    """Return nothing, as a reference to what is gone does."""


_here = _Alarms()


def alarm_for(seconds: float, loop: asyncio.AbstractEventLoop) -> Alarm:
    """Return the alarm of the running `loop` for waits of so many seconds."""
    its_loop, known = _here.known
    if its_loop() is not loop or len(known) > _MOST:
        known = {}
        _here.known = ref(loop), known
    alarm = known.get(seconds)
    if alarm is None:
        alarm = known[seconds] = Alarm(seconds)
    return alarm
