"""What ends a process that works for a map on a Ray cluster, once the map is over.

As a rule Ray does. But it gives an actor that nobody needs any more half a minute to come to its end, a process that is
just being started may miss that it is to end, and one whose raylet is gone learns of it only where its main thread is
free. Until then such a process holds processors of the cluster, and its files. So each of them looks by itself. And one
that has come to its end may hang in it: Ray's own clearing up, after Python's, was seen to wait for itself.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from concurrent.futures import CancelledError, Future
from typing import Any, Self

from SimpleLLMFunc.batch.ray.cluster import ray_package

__all__ = ["Guard", "guarded"]

_TICK_SECONDS = 0.5
_AFTER_END_SECONDS = 15.0
"""More than the driver waits for the dataset to come to its end."""

_AFTER_LOSS_SECONDS = 1.0
"""The hub is the last to go: what Ray would end by itself has been told so."""


_EXIT_SECONDS = 15
"""Whole ones, for all that is done when the interpreter ends."""


class Guard(threading.Thread):
    """Ends the process when its parent is gone, and soon after the hub said that the map is over, or is gone itself.

    Once the interpreter ends, no thread of Python's can do that any more: from then on an alarm of the system does.

    Args:
        hub: None: only the parent counts.
    """

    def __init__(self, hub: Any = None) -> None:
        super().__init__(name="SimpleLLMFunc-guard", daemon=True)
        self._hub = hub
        self._parent = os.getppid()
        self._is_dismissed = threading.Event()
        self._over: Future[None] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_dismissed.set()
        atexit.unregister(_set_alarm)

    def start(self) -> None:
        """Begin to look."""
        atexit.register(_set_alarm)
        super().start()

    def run(self) -> None:
        """End the process when it is time, whatever its other threads wait for."""
        if self._is_time():
            os._exit(1)

    def _is_time(self) -> bool:
        """Look twice a second, and return when it is time, or when nobody wants to know any more."""
        end = float("inf")
        while not self._is_dismissed.wait(_TICK_SECONDS):
            left = self._left()
            if left is not None:
                end = min(end, time.monotonic() + left)
            if os.getppid() != self._parent or time.monotonic() >= end:
                return True
        return False

    def _left(self) -> float | None:
        """Return how many seconds there are, as far as the hub is concerned."""
        if self._hub is None:
            return None
        try:
            over: Future[None] = self._over or self._hub.over.remote().future()
            self._over = None if over.done() else over  # asked again: a hub that has said it may go
            if self._over is not None:
                return None
            over.result()
        except ray_package().exceptions.ActorUnavailableError:
            return None
        except (Exception, CancelledError):  # noqa: BLE001 - who cannot even ask is cut off from the map
            return _AFTER_LOSS_SECONDS
        return _AFTER_END_SECONDS


def _set_alarm() -> None:
    if hasattr(signal, "alarm"):  # Windows has none
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_EXIT_SECONDS)


def guarded(kind: type) -> type:
    """Return the class of an actor that ends with its parent."""

    class Guarded(kind):  # type: ignore[misc]
        def __init__(self, *args: Any) -> None:
            Guard().start()
            super().__init__(*args)

    Guarded.__name__ = Guarded.__qualname__ = kind.__name__
    return Guarded
