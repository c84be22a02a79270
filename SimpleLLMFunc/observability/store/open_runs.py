"""A run under way, as rows that wait to be written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from SimpleLLMFunc.type import NO_USAGE, Usage

Row: TypeAlias = dict[str, Any]


@dataclass(slots=True, eq=False)
class OpenRun:
    """A run under way.

    Attributes:
        began: on the monotonic clock.
        columns: of its row.
        rows: unwritten rows of other tables, by table and number; a system message is a `prompt`, stored once.
        id: of its row; None until that is written.
        is_dirty: its row has unwritten changes.
        is_rejected: the latest answer was rejected.
        version: row of the function's version; None once it is written.
        texts: for the full-text index.
        numbers: of the last row, by table.
        calls: running tool calls, by id.
        turn: row of the latest turn.
        output_schema: of the function's answer.
    """

    trace_id: str
    began: float
    columns: Row
    rows: dict[tuple[str, int], Row] = field(default_factory=dict)
    id: int | None = None
    is_dirty: bool = True
    has_ended: bool = False
    is_rejected: bool = False
    version: Row | None = None
    texts: dict[str, str] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)
    calls: dict[str, Row] = field(default_factory=dict)
    turn: Row | None = None
    usage: Usage = NO_USAGE
    output_schema: Mapping[str, Any] | None = None

    def add(self, table: str, row: Row) -> Row:
        """Give a new row of a table its number, have it written, and return it."""
        self.numbers[table] += 1
        row["number"] = self.numbers[table]
        return self.change(table, row)

    def change(self, table: str, row: Row) -> Row:
        """Have a row of a table written again, and return it."""
        self.rows[table, row["number"]] = row
        return row
