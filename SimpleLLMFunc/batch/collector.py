"""How often the garbage collector looks while rows are in flight: less often, but in time."""

from __future__ import annotations

import gc
import weakref
from typing import Final, TypeAlias

from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child

__all__ = ["RowsInFlight"]

_Threshold: TypeAlias = tuple[int, int, int]

_OBJECTS_OF_A_ROW: Final = 50
"""New objects after which the collector looks, for each row in flight: about as many as there are of a row from its
request to its answer. If it looks earlier, nearly all that it goes over is in use; looking later would gain nothing."""

_MOST: Final = 100_000
"""New objects after which it looks in any case."""

_PATIENCE: Final = 4
"""After so many times as many rows as are in flight it may look as early as ever: a lot may hang on a few objects, and
what rows leave behind is to be no more than a few times what is in flight anyway."""

_USUAL: Final = frozenset({(700, 10, 10), (2_000, 10, 10), (2_000, 10, 0)})
"""What interpreters come with. Other thresholds are the user's, and stay."""


class RowsInFlight:
    """The rows of one map, for as long as it runs: while there are many in this process, the collector looks less often."""

    def __init__(self) -> None:
        self._most = 0
        self._left = 0
        # Also where the map is abandoned with its event loop.
        self._leave = weakref.finalize(self, _thresholds.leave, id(self))

    def at_least(self, rows: int) -> None:
        """Say that so many are in flight."""
        if rows > self._most and self._leave.alive:
            self._left += _PATIENCE * (rows - self._most)
            self._most = rows
            _thresholds.use(id(self), rows)

    def finished(self) -> None:
        """Say that one has come to its end; another may be in its place."""
        self._left -= 1
        if self._left == 0:
            _thresholds.look()
        elif self._left < 0:
            self._left = _PATIENCE * self._most
            _thresholds.use(id(self), self._most)

    def ended(self) -> None:
        """Say that there will be none any more; saying it twice does no harm."""
        self._leave()


class _Thresholds:
    """Those of this process: raised while there are maps that need it, put back by the last of them."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._rows: dict[int, int] = {}
        self._before: _Threshold | None = None
        self._ours: _Threshold | None = None
        renew_in_child(self)

    def use(self, who: int, rows: int) -> None:
        with self._lock:
            self._rows[who] = rows
            self._settle()

    def leave(self, who: int) -> None:
        with self._lock:
            self._rows.pop(who, None)
            self._settle()

    def look(self) -> None:
        """Let the collector look now if there is anything, until somebody says again what is in flight."""
        with self._lock:
            before, ours = self._before, self._ours
            if before is not None and ours is not None and gc.get_threshold() == ours:
                self._ours = (before[0], ours[1], ours[2])
                gc.set_threshold(*self._ours)

    def renew_in_child(self) -> None:
        """Put them back: the maps are the parent's."""
        self._rows.clear()
        self._settle()

    def _settle(self) -> None:
        # The collector may run in here too, and what it closes may be a map, which then leaves in the middle of this.
        rows = -1
        while rows != (rows := sum(self._rows.values())):
            self._set_for(rows)

    def _set_for(self, rows: int) -> None:
        now, before, ours = gc.get_threshold(), self._before, self._ours
        if before is None or now != ours:
            if not gc.isenabled() or now not in _USUAL:
                return
            before = now
        first = min(_MOST, _OBJECTS_OF_A_ROW * rows)
        # Each look at the new objects is a rare one by now: every second goes on to those that have survived one.
        wanted = (first, 1, 1) if first > before[0] else before
        # What stands there is ours only while it differs from what was there before.
        self._before, self._ours = (None, None) if wanted == before else (before, wanted)
        if wanted != now:
            gc.set_threshold(*wanted)


_thresholds = _Thresholds()
