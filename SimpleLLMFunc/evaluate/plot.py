"""Small pictures as SVG text, written by hand: nothing to install, nothing fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from SimpleLLMFunc.errors import cut

_ROW = 28
_LEFT = 190
_WIDE = 420
_RIGHT = 130
_TOP = 40


def scores_svg(title: str, bars: Sequence[tuple[str, float, float, float]]) -> str:
    """Return a picture with a row for each ``(name, mean, low, high)``: a dot and its interval."""
    known = [value for _, *values in bars for value in values if math.isfinite(value)]
    low, high = min(0.0, *known, 0.0), max(1.0, *known, 1.0)
    return _drawn(title, bars, low, high, mark=None)


def differences_svg(title: str, bars: Sequence[tuple[str, float, float, float]]) -> str:
    """Return the same for differences, with a line at 0."""
    known = [abs(value) for _, *values in bars for value in values if math.isfinite(value)]
    reach = max(known, default=0.0) * 1.1 or 1.0
    return _drawn(title, bars, -reach, reach, mark=0.0)


def _drawn(
    title: str, bars: Sequence[tuple[str, float, float, float]], low: float, high: float, mark: float | None
) -> str:
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
