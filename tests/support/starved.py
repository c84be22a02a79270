"""What a busy machine adds to what a test measures or reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def starved() -> float:
    """Return the seconds that this thread was ready to run and was not let, since it began; 0 on systems that do not tell.

    Source: the second figure of ``/proc/<pid>/schedstat``, sched-stats.rst of the Linux kernel.
    """
    with suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/thread-self/schedstat").read_text("ascii").split()[1]) / 1e9
    return 0.0


def without_slow_steps(errors: str) -> str:
    """Return what a program wrote, without the lines by which asyncio's debug mode tells that a step took its time."""
    return "".join(line for line in errors.splitlines(keepends=True) if not line.startswith(("Executing <", "Close <")))
