"""The progress of a map: a bar, a line, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from SimpleLLMFunc.errors import UsageError, counted


@dataclass(frozen=True, slots=True)
class MapProgress:
    """The progress of a map.

    Attributes:
        done: rows that are finished: asked, restored, duplicates and invalid ones.
        asked: rows that were asked in this run.
        failed: rows without a value.
        total: rows in all, None if unknown.
        cost: USD so far, None when unknown.
        seconds: since the map began.
    """

    name: str
    done: int
    asked: int
    failed: int
    total: int | None
    cost: float | None
    seconds: float
    in_flight: int = 0

    @property
    def rate(self) -> float:
        """Rows asked in a second."""
        return self.asked / self.seconds if self.seconds > 0 else 0.0

    @property
    def share(self) -> float | None:
        """The share of finished rows, from 0 to 1; None if the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        """About how long it will take, None where that cannot be told."""
        if self.total is None or not self.rate:
            return None
        return max(0, self.total - self.done) / self.rate

    def __str__(self) -> str:
        rows = counted(self.done, "row") if self.total is None else f"{self.done} of {counted(self.total, 'row')}"
        # Cut and not rounded: 100 % is when nothing is left to do.
        share = "" if self.share is None else f" ({int(100 * self.share)} %)"
        cost = "" if not self.cost else f", {self.cost:.4f} USD"
        left = "" if self.seconds_left is None else f", {_clock(self.seconds_left)} left"
        return f"{self.name}: {rows}{share}, {self.rate:.1f} a second, {self.failed} failed{cost}{left}"


Progress: TypeAlias = bool | Callable[[MapProgress], object] | None
"""What `progress=` takes: None shows it on a terminal and in a notebook, True always, False never; a function is called
with a `MapProgress` about twice a second."""


ProgressView: TypeAlias = Callable[[MapProgress, str | None], object]
"""Shows how far a map is; the last time with a text, empty or how to go on, else with None."""


def progress_view(progress: Progress) -> ProgressView | None:
    """Return the view that `progress` asks for; None for none.

    Raises:
        UsageError: `progress` is something else.
    """
    if callable(progress):
        return lambda state, _: progress(state)  # the log has the note
    if progress is not None and not isinstance(progress, bool):
        raise UsageError(f"progress is True, False, None or a function, not {progress!r}.")
    is_seen = _is_terminal() or _is_notebook()
    if progress is False or not (is_seen or (progress is True and sys.stderr is not None)):
        return None
    try:
        auto = import_module("tqdm.auto")
    except ImportError:
        return _Line()
    return _Bar(auto.tqdm)


class _Line:
    """Rewrites one line of a terminal; elsewhere writes a line every ten seconds."""

    def __init__(self) -> None:
        self._next = 0.0
        self._width = 0

    def __call__(self, state: MapProgress, note: str | None) -> None:
        if _is_terminal():
            _write(f"\r{str(state).ljust(self._width)}" + ("" if note is None else "\n"))
            self._width = len(str(state))
        elif note is not None or time.monotonic() >= self._next:
            self._next = time.monotonic() + 10
            _write(f"{state}\n")
        _write(f"{note}\n" if note else "")


class _Bar:
    """A bar of tqdm, which knows terminals and notebooks."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def __call__(self, state: MapProgress, note: str | None) -> None:
        if self._bar is None:
            # Restored rows say nothing about the speed.
            before = state.done - state.asked
            self._bar = self._tqdm(total=state.total, initial=before, desc=state.name, unit="row", dynamic_ncols=True)
        facts = {"failed": state.failed}
        self._bar.set_postfix({**facts, "USD": f"{state.cost:.4f}"} if state.cost else facts, refresh=False)
        self._bar.update(state.done - self._bar.n)
        if note is not None:
            self._bar.close()
        _write(f"{note}\n" if note else "")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
