"""A second look at the rows of a source: how many there are, and single rows on demand."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

from SimpleLLMFunc.batch.rows.arrow import PARQUET, arrow_length, is_arrow, parquet_length
from SimpleLLMFunc.batch.rows.frames import frame_kind
from SimpleLLMFunc.batch.rows.rows import InputRow, Rows, RowSource, read_rows, text_rows
from SimpleLLMFunc.batch.rows.text_files import suffix_of
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.runtime import ForkSafeLock

_LARGEST_COUNTED = 256 * 1024 * 1024
"""Bytes of a file whose rows are counted beforehand, which takes a second or two of those that the map takes."""

_HELD = 10_000
"""Rows that are held where they are read backwards, so that each row is read a few times only."""


def can_read_again(source: Rows) -> bool:
    """Say whether `read_rows` gives the same rows when it is asked a second time."""
    if isinstance(source, RowSource):
        return can_read_again(source.source)
    if isinstance(source, (str, os.PathLike)) or frame_kind(source) is not None:
        return True
    if is_arrow(source):
        return arrow_length(source) is not None  # a table: a query may give others, a reader is read once
    return isinstance(source, Iterable) and not isinstance(source, Iterator)


def count_rows(path: Path) -> int | None:
    """Return how many rows a file has; None if it is too large to be counted, or cannot be read. May take seconds."""
    try:
        if suffix_of(path) in PARQUET:
            return parquet_length(path)
        if not path.is_file() or path.stat().st_size > _LARGEST_COUNTED:
            return None
        return sum(1 for _ in text_rows(path))
    except (OSError, SimpleLLMFuncError):
        return None  # reading the rows raises the error


class RowsAgain:
    """The rows of a file or a table, read again on demand.

    Reading one row after the other is fast, forwards and backwards. A row from the middle takes as long as all rows
    before it. The checkpoint cannot serve instead: rows that ask the same may differ in columns that the function does
    not take, such as their number.

    Args:
        source: for which `can_read_again` is true.
    """

    def __init__(self, source: Rows) -> None:
        self._source = source
        base = source.source if isinstance(source, RowSource) else source
        self._path = Path(base) if isinstance(base, (str, os.PathLike)) else None
        self._began_as = self._found()
        self._lock = ForkSafeLock()
        self._rows: Generator[InputRow, None, None] | None = None
        self._next = 0
        self._first = 0
        self._held: list[Any] = []
        self._has_warned = False

    def __getitem__(self, place: int) -> Any:
        """Return the row at a place; None where it could not be read, or the file is another one by now."""
        with self._lock:
            if not self._first <= place < self._first + len(self._held):
                self._read(place)
            return self._held[place - self._first]

    def _read(self, place: int) -> None:
        """Hold the row at a place; for a reader that goes backwards, as `reversed` does, also the rows before it."""
        first, found = place, []
        try:
            if self._rows is None:
                self._rows = self._begin()
            elif place < self._next:
                first = max(0, place - _HELD + 1)
                self._rows.close()
                self._rows = self._begin()
            found = [row.value for row in itertools.islice(self._rows, first - self._next, place + 1 - self._next)]
        except (OSError, SimpleLLMFuncError) as error:
            self._lost(str(error))
        self._first, self._next = first, place + 1
        self._held = found + [None] * (self._next - first - len(found))

    def close(self) -> None:
        """Close the file; it opens again where it is needed."""
        with self._lock:
            if self._rows is not None:
                self._rows.close()
            self._rows, self._held = None, []

    def _begin(self) -> Generator[InputRow, None, None]:
        self._next = 0
        then, now = self._began_as, self._found()
        # Rows that were added at the end change nothing about those that were mapped.
        if self._path is None or (then and now and os.path.samestat(then, now) and now.st_size >= then.st_size):
            return read_rows(self._source)
        self._lost("it was replaced or cut")
        return read_rows(())

    def _found(self) -> os.stat_result | None:
        try:
            return None if self._path is None else self._path.stat()
        except OSError:
            return None

    def _lost(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            push_warning(f"{self._path} has changed since the map ({why}), so the rows are shown without their input.")
