"""Two versions, or two models, over the same cases: does one do better, and could that be chance?"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from SimpleLLMFunc.batch import replaced_whole
from SimpleLLMFunc.display.cards import text_table
from SimpleLLMFunc.errors import counted, cut
from SimpleLLMFunc.statistics import mcnemar_exact, mean_interval, paired_permutation, paired_share_interval

_ROW = 28
_LEFT = 190
_WIDE = 420
_RIGHT = 130
_TOP = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """How a score differs between two reports.

    Attributes:
        first, second: the means over the cases that both have.
        difference: second - first.
        low, high: its confidence interval: Newcombe's for scores of 0 and 1, else Student's t of the paired differences.
        p: the probability of a difference at least as large if there were none; of a paired test, two-sided.
        test: "mcnemar" (exact) for scores of 0 and 1, "permutation" (of signs) for all others.
        better, worse: cases that the second report scores higher, and lower.
        cases: how many both have.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    test: Literal["mcnemar", "permutation"]
    better: int
    worse: int
    cases: int


@dataclass(frozen=True)
class Comparison:
    """Two reports over the same cases.

    Attributes:
        first, second: what each is of.
        differences: by name of the score. The p-values are not corrected for how many there are.
        unpaired: cases that only one of the two has; they do not count.
    """

    first: str
    second: str
    differences: dict[str, Difference]
    unpaired: int = 0

    def table(self, *, markdown: bool = False) -> str:
        """Return the differences as a table."""
        head = ["score", "first", "second", "difference", "interval", "better", "worse", "p", "test"]
        rows = []
        for name, one in self.differences.items():
            means = [f"{one.first:.3f}", f"{one.second:.3f}", f"{one.difference:+.3f}"]
            interval = f"{one.low:+.3f} .. {one.high:+.3f}"
            rows.append([name, *means, interval, str(one.better), str(one.worse), f"{one.p:.3g}", one.test])
        return text_table(head, rows, markdown=markdown)

    def __str__(self) -> str:
        unpaired = f" ({counted(self.unpaired, 'case')} without a partner)" if self.unpaired else ""
        return f"{self.first} -> {self.second}{unpaired}\n{self.table()}"

    def svg(self) -> str:
        """Return a picture of the differences with their intervals."""
        bars = [(name, one.difference, one.low, one.high) for name, one in self.differences.items()]
        known = [abs(value) for _, *values in bars for value in values if math.isfinite(value)]
        reach = max(known, default=0.0) * 1.1 or 1.0
        return drawn_as_svg(f"{self.first} → {self.second}", bars, -reach, reach, mark=0.0)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as an SVG file.

        Raises:
            ConfigError: it cannot be written.
        """
        with replaced_whole(path) as part:
            part.write_text(self.svg(), encoding="utf-8")

    def got_worse(self, *, alpha: float = 0.05) -> list[str]:
        """Return the names of the scores that are lower in the second report, with p below `alpha`."""
        return [name for name, one in self.differences.items() if one.difference < 0 and one.p < alpha]


def difference_of(scored: Sequence[tuple[float, float]], confidence: float) -> Difference:
    """Return how the second of each pair of scores differs from the first."""
    firsts, seconds = ([pair[number] for pair in scored] for number in (0, 1))
    changes = [b - a for a, b in scored]
    better, worse = sum(change > 1e-12 for change in changes), sum(change < -1e-12 for change in changes)
    is_binary = all(score in {0.0, 1.0} for pair in scored for score in pair)
    if is_binary:
        both = sum(a == b == 1 for a, b in scored)
        low, high, _ = paired_share_interval(both, worse, better, len(scored) - both - worse - better, confidence)
    else:
        low, high, _ = mean_interval(changes, confidence)
        if all(0 <= score <= 1 for pair in scored for score in pair):
            low, high = max(-1.0, low), min(1.0, high)
    return Difference(
        first=math.fsum(firsts) / len(scored),
        second=math.fsum(seconds) / len(scored),
        difference=math.fsum(changes) / len(scored),
        low=low,
        high=high,
        p=mcnemar_exact(worse, better) if is_binary else paired_permutation(changes),
        test="mcnemar" if is_binary else "permutation",
        better=better,
        worse=worse,
        cases=len(scored),
    )


# --- pictures as SVG text, written by hand: nothing to install, nothing fetched -----------------------------------


def drawn_as_svg(
    title: str, bars: Sequence[tuple[str, float, float, float]], low: float, high: float, mark: float | None = None
) -> str:
    """Return a picture with a row for each ``(name, mean, low, high)``: a dot and its interval; a line at `mark`."""
    height = _TOP + _ROW * len(bars) + 34
    bottom = _TOP + _ROW * len(bars)

    def at(value: float) -> float:
        return round(_LEFT + (min(max(value, low), high) - low) / (high - low) * _WIDE, 1)

    size = f'width="{_LEFT + _WIDE + _RIGHT}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="22" font-size="14" font-weight="bold">{escape(cut(title, 90))}</text>',
    ]
    for step in range(5):
        value = low + (high - low) * step / 4
        x = at(value)
        parts += [
            f'<line x1="{x}" y1="{_TOP - 6}" x2="{x}" y2="{bottom}" stroke="#ddd"/>',
            f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#555">{value:.2f}</text>',
        ]
    if mark is not None:
        parts.append(f'<line x1="{at(mark)}" y1="{_TOP - 6}" x2="{at(mark)}" y2="{bottom}" stroke="#333"/>')
    for number, (name, mean, least, most) in enumerate(bars):
        y = _TOP + _ROW * number + _ROW // 2
        parts += [
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(cut(name, 26))}</text>',
            f'<line x1="{at(least)}" y1="{y}" x2="{at(most)}" y2="{y}" stroke="#4477aa" stroke-width="3"/>',
            f'<circle cx="{at(mean)}" cy="{y}" r="5" fill="#224466"/>',
            f'<text x="{_LEFT + _WIDE + 14}" y="{y + 4}">{mean:.3f}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
