"""A run under way, as rows that wait to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from SimpleLLMFunc.type import NO_USAGE, Usage

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message that many runs begin with, kept once for a version.

    Attributes:
        stored: as it stands in the file.
        digest: by which it is known.
    """

    stored: str | bytes
    digest: str


@dataclass(slots=True, eq=False)
class OpenRun:
    """A run under way.

    Attributes:
        began: on the monotonic clock.
        columns: of its row.
        rows: of other tables, by table and number, that are to be written.
        id: of its row; None until that is written.
        is_dirty: its row is to be written.
        is_rejected: the latest answer was.
        version: what the function is, to be written; None afterwards.
        texts: what can be searched for.
        numbers: of the last row, by table.
        calls: of tools that go on, by id.
        turn: the latest.
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
    numbers: dict[str, int] = field(default_factory=dict)
    calls: dict[str, Row] = field(default_factory=dict)
    turn: Row | None = None
    usage: Usage = NO_USAGE
    output_schema: Mapping[str, Any] | None = None

    def next_number(self, table: str) -> int:
        """Return the number of the next row of a table."""
        self.numbers[table] = self.numbers.get(table, 0) + 1
        return self.numbers[table]

    @property
    def text(self) -> str:
        """What can be searched for."""
        return "\n".join(text for text in self.texts.values() if text)
