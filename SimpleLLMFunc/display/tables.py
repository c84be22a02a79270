"""Rows as a table of text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool = False, rule: bool = True) -> str:
    """Return a table with aligned columns; wide characters such as Chinese count twice."""
    lines = [list(head), *map(list, rows)]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(head))]
    padded = [[cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)] for line in lines]
    if markdown:
        line = "|".join("-" * (width + 2) for width in widths)
        written = ["| " + " | ".join(line) + " |" for line in padded]
        return "\n".join([written[0], f"|{line}|", *written[1:]])
    written = ["  ".join(line).rstrip() for line in padded]
    ruled = ["  ".join("-" * width for width in widths)] * rule
    return "\n".join([written[0], *ruled, *written[1:]])


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in {"F", "W"} else 1 for char in text)
