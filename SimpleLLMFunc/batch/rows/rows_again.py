"""A second look at the rows of a source: how many there are, and single rows on demand."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import closing
from pathlib import Path
from typing import Any

from SimpleLLMFunc.batch.rows.arrow import PARQUET, arrow_length, is_arrow, parquet_length
from SimpleLLMFunc.batch.rows.frames import frame_kind
from SimpleLLMFunc.batch.rows.rows import InputRow, Rows, RowSource, file_rows, read_rows
from SimpleLLMFunc.batch.rows.text_files import suffix_of
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.runtime import ForkSafeLock

_LARGEST_COUNTED = 256 * 1024 * 1024
"""Bytes of a file whose rows are counted beforehand, which takes a second or two of those that the map takes."""

_HELD = 256
_MOST_HELD = 10_000
"""Rows that are held, at least and at most, where they are read backwards."""


def can_read_again(source: Rows) -> bool:
    """Say whether `read_rows` gives the same rows when it is asked a second time."""
    if isinstance(source, RowSource):
        return can_read_again(source.source)
    if isinstance(source, (str, os.PathLike)) or frame_kind(source) is not None:
        return True
    if is_arrow(source):
        return arrow_length(source) is not None  # a table: a query may give others, a reader is read once
    return isinstance(source, Iterable) and not isinstance(source, Iterator)


def count_rows(source: Rows, is_over: Callable[[], bool] = lambda: False) -> int | None:
    """Return how many rows `read_rows` will give, None where only reading them would tell; may take seconds.

    Args:
        source: as for `read_rows`.
        is_over: says that the count is no longer needed; then it returns None soon.
    """
    if isinstance(source, RowSource):
        total = count_rows(source.source, is_over)
        return total if total is None or source.limit is None else min(total, source.limit)
    if frame_kind(source) is not None:
        return len(source)
    if is_arrow(source):
        return arrow_length(source)
    if not isinstance(source, (str, os.PathLike)):
        return len(source) if isinstance(source, Sized) and isinstance(source, Iterable) else None
    path = Path(source)
    try:
        if suffix_of(path) in PARQUET:
            return parquet_length(path)
        if not path.is_file() or path.stat().st_size > _LARGEST_COUNTED:
            return None
        with closing(file_rows(path)) as rows:
            count = sum(1 for _ in itertools.takewhile(lambda _: not is_over(), rows))
        return None if is_over() else count
    except (OSError, SimpleLLMFuncError):
        return None  # reading the rows raises the error


class RowsAgain:
    """The rows of a file or a table, read again on demand.

    One after the other is fast, forwards and backwards; a row from the middle takes as long as all that are before it.

    What was kept under the key of a row is no substitute: rows that ask the same may differ in the columns that the
    function does not take, such as their number.

    Args:
        source: for which `can_read_again` is true.
    """

    def __init__(self, source: Rows) -> None:
        self._source = source
        self._path = _path_of(source)
        self._began_as = None if self._path is None else _identity(self._path)
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
        first = place
        try:
            if self._rows is None or place < self._next:
                if self._rows is not None:
                    # A part of all there is before, so that each row is read a few times only, however many there are.
                    first = max(0, place - min(_MOST_HELD, _HELD + place // 16) + 1)
                self._begin()
            assert self._rows is not None, "it has begun"
            rows = itertools.islice(self._rows, first - self._next, place + 1 - self._next)
            found = [row.value for row in rows]
        except (OSError, SimpleLLMFuncError) as error:
            self._lost(str(error))
            found = []
        self._first, self._next = first, place + 1
        self._held = found + [None] * (self._next - first - len(found))

    def close(self) -> None:
        """Close the file; it opens again where it is needed."""
        with self._lock:
            if self._rows is not None:
                self._rows.close()
            self._rows, self._held = None, []

    def _begin(self) -> None:
        if self._rows is not None:
            self._rows.close()
        self._next = 0
        is_same = self._path is None or _is_same_or_longer(self._began_as, _identity(self._path))
        self._rows = read_rows(self._source if is_same else ())
        if not is_same:
            self._lost("it was replaced or cut")

    def _lost(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            push_warning(f"{self._path} has changed since the map ({why}), so the rows are shown without their input.")


def _path_of(source: Rows) -> Path | None:
    if isinstance(source, RowSource):
        return _path_of(source.source)
    return Path(source) if isinstance(source, (str, os.PathLike)) else None


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size


def _is_same_or_longer(then: tuple[int, int, int] | None, now: tuple[int, int, int] | None) -> bool:
    # Rows that were added at the end change nothing about those that were mapped.
    return then is not None and now is not None and then[:2] == now[:2] and now[2] >= then[2]
