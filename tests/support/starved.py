"""How long this thread was ready to run and was not let: what a busy machine adds to any time that a test measures."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["starved"]


def starved() -> float:
    """Return those seconds since the thread began; 0 on systems that do not tell.

    Source: the second figure of ``/proc/<pid>/schedstat``, sched-stats.rst of the Linux kernel.
    """
    with suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/thread-self/schedstat").read_text("ascii").split()[1]) / 1e9
    return 0.0
