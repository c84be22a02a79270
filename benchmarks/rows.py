"""What is measured: one `Row` for each figure, how it is asked for, and how contenders compare in it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Told = Mapping[str, Any]

TEXT = "It rains, and it will go on raining until the evening, says the forecast of the canned server."
LONG = "".join(f"{number:04} " for number in range(2_000))
"""The text of the streams: 200 chunks of 50 characters, or 2,000 of 5."""

CHUNKS_PACED, PACE_MS = 100, 5


def microseconds(told: Told) -> float:
    """Processor time of the client per call."""
    return told["cpu"] / told["calls"] * 1e6


def rate(told: Told) -> float:
    return told["calls"] / told["wall"]


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        key: its name in the raw results.
        title: its name for a reader.
        unit: of the figure.
        ask: the method of the contender, "" where none of its methods is called.
        mode: how the worker calls it; "process" and "environment" are measured from outside.
        figure: reads the figure from what the worker told.
        options: what the server is told in the path.
        expect: what each answer must be.
        order: more for the worker.
        seconds: that a sample should take.
        rounds: at most so many samples.
        higher_is_better: rates and shares.
        requests: to the server, for one call.
        place: where the contender's threads run: on one processor and the server on the others, on one together with the
            server, or both on any.
    """

    key: str
    title: str
    unit: str
    ask: str
    mode: str
    figure: Callable[[Told], float]
    options: str = ""
    expect: Any = ""
    order: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.5
    rounds: int = 99
    higher_is_better: bool = False
    requests: int = 1
    place: Literal["one processor", "with the server", "anywhere"] = "one processor"

    def worse_by(self, ratio: float, recorded: float) -> float:
        """Return how many times worse `ratio` is than the recorded one; below 1 it is better."""
        return recorded / ratio if self.higher_is_better else ratio / recorded


def _share(told: Told) -> float:
    return rate(told) / (1_000 / 0.2) * 100


ROWS: tuple[Row, ...] = (
    Row("plain", "plain call", "µs", "plain", "sequence", microseconds, "say=text", TEXT, place="with the server"),
    Row(
        "plain_any",
        "the same, client and server on any processor",
        "µs",
        "plain",
        "sequence",
        microseconds,
        "say=text",
        TEXT,
        place="anywhere",
    ),
    Row(
        "typed",
        "typed call, nested model of 6 fields",
        "µs",
        "typed",
        "sequence",
        microseconds,
        "answer=order",
        place="with the server",
    ),
    Row(
        "tool",
        "round trip with one tool",
        "µs",
        "tool",
        "sequence",
        microseconds,
        "answer=tool",
        requests=2,
        place="with the server",
    ),
    Row(
        "tool_any",
        "the same, client and server on any processor",
        "µs",
        "tool",
        "sequence",
        microseconds,
        "answer=tool",
        requests=2,
        place="anywhere",
    ),
    Row(
        "history",
        "call with 42 messages",
        "µs",
        "history",
        "sequence",
        microseconds,
        "say=text",
        TEXT,
        place="with the server",
    ),
    Row(
        "chunk200",
        "streamed chunk, 200 in a stream",
        "µs",
        "stream",
        "sequence",
        lambda told: microseconds(told) / 200,
        "say=long,chunks=200",
        LONG,
    ),
    Row(
        "chunk2000",
        "streamed chunk, 2,000 in a stream",
        "µs",
        "stream",
        "sequence",
        lambda told: microseconds(told) / 2_000,
        "say=long,chunks=2000",
        LONG,
    ),
    Row(
        "paced",
        f"delay of a chunk, one every {PACE_MS} ms, median",
        "µs",
        "stream",
        "paced",
        lambda told: float(told["median_us"]),
        f"stamp=1,chunks={CHUNKS_PACED},pace={PACE_MS}",
        CHUNKS_PACED,
    ),
    Row(
        "flight256",
        "256 in flight",
        "calls/s",
        "plain",
        "flight",
        rate,
        "say=text",
        TEXT,
        {"width": 256},
        seconds=1.0,
        higher_is_better=True,
    ),
    Row(
        "share1000",
        "1,000 in flight at 200 ms, share of the ideal rate",
        "%",
        "plain",
        "flight",
        _share,
        "say=text,delay=200",
        TEXT,
        {"width": 1_000, "waves": 5},
        seconds=2.0,
        rounds=3,
        higher_is_better=True,
    ),
    Row(
        "map1000",
        "the same through `f.map`",
        "%",
        "mapped",
        "mapped",
        _share,
        "say=text,delay=200",
        TEXT,
        {"width": 1_000, "waves": 5},
        seconds=2.0,
        rounds=3,
        higher_is_better=True,
    ),
    Row(
        "sync1",
        "plain functions, one thread",
        "calls/s",
        "sync",
        "threaded",
        rate,
        "say=text",
        TEXT,
        {"width": 1},
        higher_is_better=True,
        place="anywhere",  # several threads are what it is about
    ),
    Row(
        "sync16",
        "plain functions, 16 threads",
        "calls/s",
        "sync",
        "threaded",
        rate,
        "say=text",
        TEXT,
        {"width": 16},
        higher_is_better=True,
        place="anywhere",  # several threads are what it is about
    ),
    Row("import", "import", "s", "", "import", lambda told: float(told["seconds"])),
    Row("first", "new interpreter to the first answer", "s", "plain", "first", lambda told: float(told["wall"])),
    Row("imported", "memory after import", "MB", "plain", "first", lambda told: float(told["imported_mb"]), rounds=1),
    Row(
        "peak1000", "memory at 1,000 in flight", "MB", "plain", "memory", lambda told: float(told["peak_mb"]), rounds=1
    ),
    Row("packages", "installed distributions", "", "", "environment", lambda told: float(told["packages"]), rounds=1),
    Row("megabytes", "installed megabytes", "MB", "", "environment", lambda told: float(told["megabytes"]), rounds=1),
)

BY_KEY = {row.key: row for row in ROWS}
MEMORY_OPTIONS = "say=text,delay=3000"


def median(samples: Sequence[float]) -> float | None:
    """Return the median, None for no samples."""
    return statistics.median(samples) if samples else None
