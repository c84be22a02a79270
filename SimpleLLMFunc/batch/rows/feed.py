"""The rows of a map: read in small pieces, no faster than the map needs them; counted; and read again on demand."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import aclosing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.arrow import PARQUET, arrow_length, is_arrow, parquet_length
from SimpleLLMFunc.batch.rows.rows import InputRow, Rows, RowSource, as_told, read_rows, suffix_of, text_rows
from SimpleLLMFunc.batch.rows.tables import frame_kind
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.runtime import ForkSafeLock, Worker, in_thread
from SimpleLLMFunc.utils import close_iterator

PIECE = 128
"""Rows in a piece, at most."""

_WAIT_SECONDS = 0.005
"""Seconds after which a piece is passed on although it could be larger: a slow source holds up no row."""

_LARGEST_COUNTED = 256 * 1024 * 1024
"""Bytes of a file whose rows are counted beforehand, which takes a second or two of those that the map takes."""

_HELD = 10_000
"""Rows that are held where they are read backwards, so that each row is read a few times only."""


class Feed:
    """The rows of a source, in pieces.

    A sync iterable is read in a worker thread: it may block, or ask a model itself through a sync function.

    Args:
        source: anything that `read_rows` takes.
        arguments: what the rows are for: the first of them is looked at before any is given; None looks at none.

    Attributes:
        total: how many rows there will be, None if unknown.
        frame: the source where it is a data frame.
        rows: the rows themselves where they stay at hand, so that they need not be kept.
    """

    def __init__(self, source: Any, arguments: RowArguments | None = None) -> None:
        self._source = source
        self._arguments = arguments
        self._told = source if isinstance(source, RowSource) else RowSource(source)
        base, limit = self._told.source, self._told.limit
        is_frame = frame_kind(base) is not None
        is_plain = not is_frame and not is_arrow(base) and isinstance(base, Iterable) and not isinstance(base, str)
        self.frame: Any = source if frame_kind(source) is not None else None
        self.rows: Sequence[Any] | RowsAgain | None = None
        if is_plain and base is source:
            self.rows = base if isinstance(base, Sequence) else None
        elif can_read_again(source):
            self.rows = RowsAgain(source)
        self.total = arrow_length(base) if not is_frame and is_arrow(base) else None
        if isinstance(base, Sized) and (is_plain or is_frame):
            with suppress(TypeError):  # a progress bar around a generator has no length, though it is Sized
                self.total = len(base)
        if self.total is not None and limit is not None:
            self.total = min(self.total, limit)

    async def counted(self) -> int | None:
        """Return the number of rows; if `total` is None, count those of a file. None if only reading would tell."""
        source, limit = self._told.source, self._told.limit
        if self.total is not None or not isinstance(source, (str, os.PathLike)):
            return self.total
        total = await in_thread(count_rows, file_path(source, "a str as rows"))
        return total if total is None or limit is None else min(total, limit)

    async def pieces(self) -> AsyncGenerator[list[InputRow], None]:
        """Yield the rows; read as far as asked for, and a piece ahead.

        Raises:
            UsageError: the source holds no rows, or its first readable row does not fit the function: the others of
                a table have the same columns.
        """
        first: InputRow | None = None
        source = self._told.source
        is_async = isinstance(source, AsyncIterable)
        given = _as_they_come(source, self._told) if is_async else _from_thread(read_rows(self._source))
        async with aclosing(given) as pieces:
            async for piece in pieces:
                if first is None and self._arguments is not None:
                    first = next((row for row in piece if row.error is None), None)
                    if first is not None:
                        self._arguments.of(first)
                yield piece


async def _from_thread(rows: Generator[InputRow, None, None]) -> AsyncGenerator[list[InputRow], None]:
    worker, pull = Worker(), asyncio.get_running_loop().create_future()
    try:
        while True:
            piece: list[InputRow] = []
            given, pause = 0, _WAIT_SECONDS
            pull = asyncio.ensure_future(worker.run(_pull, rows, piece))
            while given < len(piece) or not pull.done():
                await asyncio.wait({pull}, timeout=pause)
                pause *= 2  # a row that comes later ends the pull, which wakes the loop by itself
                if taken := piece[given:]:  # also while the source waits for its next row
                    given += len(taken)
                    yield taken
            if (error := await pull) is not None:
                raise error
            if not piece:
                return
    finally:
        pull.cancel()
        with suppress(ValueError):  # the thread is still reading; a file is closed when it lets go
            rows.close()


def _pull(rows: Iterator[InputRow], piece: list[InputRow]) -> BaseException | None:
    """Add some rows to `piece`; return what the source raised after them."""
    until = time.monotonic() + _WAIT_SECONDS
    try:
        for row in islice(rows, PIECE):
            piece.append(row)
            if time.monotonic() > until:
                break
    except BaseException as error:  # noqa: BLE001 - raised when the rows before it have been taken
        return error
    return None


async def _as_they_come(source: AsyncIterable[Any], told: RowSource) -> AsyncGenerator[list[InputRow], None]:
    """Yield rows one by one with their columns renamed, up to the limit."""
    if told.limit == 0:
        return
    iterator, index = aiter(source), 0
    try:
        async for value in iterator:
            yield list(as_told([InputRow(index, value)], told))
            index += 1
            if index == told.limit:
                return
    finally:
        await close_iterator(iterator)


# --- a second look ---------------------------------------------------------------------------------------


def can_read_again(source: Rows) -> bool:
    """Say whether `read_rows` gives the same rows when it is asked a second time."""
    if isinstance(source, RowSource):
        return can_read_again(source.source)
    if isinstance(source, (str, os.PathLike)) or frame_kind(source) is not None:
        return True
    if is_arrow(source):
        return arrow_length(source) is not None  # a table: a query may give others, a reader is read once
    # Other iterables may give other rows the second time, or none: so does a progress bar, which has a length.
    return isinstance(source, Collection) and hasattr(source, "__getitem__")


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
        self._path = file_path(base) if isinstance(base, (str, os.PathLike)) else None
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
            found = [row.value for row in islice(self._rows, first - self._next, place + 1 - self._next)]
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
