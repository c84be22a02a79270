"""The card of a map's report."""

from __future__ import annotations

from itertools import islice
from typing import Any

from SimpleLLMFunc.batch import MapReport, MapRow, MapRows
from SimpleLLMFunc.display.cards import Card, Part, in_dollars, in_tokens, plainly
from SimpleLLMFunc.errors import CheckpointError, counted

_SHOWN = 10
"""Rows that a card shows."""


def report_card(report: MapReport[Any]) -> Card:
    """Return the report of a map as a card."""
    counts = report.counts
    facts = [
        ("rows", str(counts.rows)),
        ("asked", str(counts.asked)),
        ("restored", str(counts.restored or "")),
        ("duplicates", str(counts.duplicates or "")),
        ("not asked", str(counts.invalid + counts.unasked or "")),
        ("failed", str(counts.failed)),
        ("tokens", in_tokens(report.usage)),
        ("cost", in_dollars(report.cost)),
        ("seconds", f"{report.seconds:.1f}"),
        ("stopped", "" if report.stopped is None else str(report.stopped)),
    ]
    errors = [(kind, str(count)) for kind, count in report.errors.items()]
    first = f"the first {min(len(report.rows), _SHOWN)} of {counted(len(report.rows), 'row')}"
    parts = [
        Part("errors by kind", errors, ("error", "rows")),
        Part(first, _rows_shown(report.rows), ("row", "given", "value or error")),
    ]
    return Card(f"Map of {report.name}" if report.name else "Map", facts, parts)


def _rows_shown(rows: MapRows[Any]) -> list[tuple[str, str, str]]:
    try:
        return [(str(row.index), plainly(row.row), _came_of(row)) for row in islice(rows, _SHOWN)]
    except CheckpointError as error:
        return [("", "", str(error))]


def _came_of(row: MapRow[Any]) -> str:
    error = row.error
    return plainly(row.value) if error is None else f"{type(error).__name__}: {error}"
