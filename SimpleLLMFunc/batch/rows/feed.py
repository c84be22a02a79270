"""The rows of a map, read in small pieces and no faster than the map needs them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from contextlib import aclosing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.arrow import arrow_length, is_arrow
from SimpleLLMFunc.batch.rows.frames import frame_kind
from SimpleLLMFunc.batch.rows.rows import InputRow, RowSource, as_told, read_rows
from SimpleLLMFunc.batch.rows.rows_again import RowsAgain, can_read_again, count_rows
from SimpleLLMFunc.runtime import Worker, in_thread

PIECE = 128
"""Rows in a piece, at most."""

_PATIENCE = 0.005
"""Seconds after which a piece is passed on although it could be larger: a slow source holds up no row."""


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
        self.frame: Any = source if is_frame and base is source else None
        self.rows: Sequence[Any] | RowsAgain | None = None
        if is_plain and base is source:
            self.rows = base if isinstance(base, Sequence) else None
        elif can_read_again(source):
            self.rows = RowsAgain(source)
        self.total = arrow_length(base) if is_arrow(base) else None
        if isinstance(base, Sized) and (is_plain or is_frame):
            self.total = len(base)
        if self.total is not None and limit is not None:
            self.total = min(self.total, limit)

    async def counted(self) -> int | None:
        """Return the number of rows; if `total` is None, count those of a file. None if only reading would tell."""
        source, limit = self._told.source, self._told.limit
        if self.total is not None or not isinstance(source, (str, os.PathLike)):
            return self.total
        total = await in_thread(count_rows, Path(source))
        return total if total is None or limit is None else min(total, limit)

    async def pieces(self) -> AsyncGenerator[list[InputRow], None]:
        """Yield the rows; read as far as asked for, and a piece ahead.

        Raises:
            UsageError: the source holds no rows, or its first readable row does not fit the function: the others of
                a table have the same columns.
        """
        first: InputRow | None = None
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                if first is None and self._arguments is not None:
                    first = next((row for row in piece if row.error is None), None)
                    if first is not None:
                        self._arguments.of(first)
                yield piece

    def _pieces(self) -> AsyncGenerator[list[InputRow], None]:
        if isinstance(self._source, (list, tuple, range)):
            return _at_hand(self._source)
        if isinstance(self._told.source, AsyncIterable):
            return _as_told(_as_they_come(self._told.source), self._told)
        return _from_thread(read_rows(self._source))


async def _at_hand(rows: Sequence[Any]) -> AsyncGenerator[list[InputRow], None]:
    for start in range(0, len(rows), PIECE):
        yield [InputRow(start + place, row) for place, row in enumerate(rows[start : start + PIECE])]


async def _from_thread(rows: Generator[InputRow, None, None]) -> AsyncGenerator[list[InputRow], None]:
    worker = Worker()
    try:
        while True:
            piece, error = await worker.run(_pulled, rows)
            if piece:
                yield piece
            if error is not None:
                raise error
            if not piece:
                return
    finally:
        with suppress(ValueError):  # the thread is still reading; a file is closed when it lets go
            rows.close()


def _pulled(rows: Iterator[InputRow]) -> tuple[list[InputRow], Exception | None]:
    """Return some rows, and what the source raised after them."""
    piece: list[InputRow] = []
    until = time.monotonic() + _PATIENCE
    try:
        for row in islice(rows, PIECE):
            piece.append(row)
            if time.monotonic() > until:
                break
    except Exception as error:  # noqa: BLE001 - raised when the rows before it have been taken
        return piece, error
    return piece, None


async def _as_told(
    pieces: AsyncGenerator[list[InputRow], None], told: RowSource
) -> AsyncGenerator[list[InputRow], None]:
    """Yield pieces with their columns renamed, up to the limit."""
    async with aclosing(pieces):
        while told.limit != 0 and (piece := await anext(pieces, None)):
            yield list(as_told(piece, told))
            if told.limit is not None and piece[-1].index + 1 >= told.limit:
                return


async def _as_they_come(source: AsyncIterable[Any]) -> AsyncGenerator[list[InputRow], None]:
    """Yield what has come since the last piece: many rows of a fast source, each one of a slow one."""
    ahead: asyncio.Queue[InputRow | Exception | None] = asyncio.Queue(PIECE - 1)  # and one row that waits for room
    reader = asyncio.ensure_future(_read(source, ahead))
    try:
        while True:
            came = [await ahead.get()]
            while not ahead.empty():
                came.append(ahead.get_nowait())
            if piece := [row for row in came if isinstance(row, InputRow)]:
                yield piece
            if isinstance(came[-1], Exception):
                raise came[-1]
            if came[-1] is None:
                return
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


async def _read(source: AsyncIterable[Any], ahead: asyncio.Queue[InputRow | Exception | None]) -> None:
    """Put rows into the queue, and at last what the source raised; None where it raised nothing."""
    index, error = 0, None
    iterator = aiter(source)
    try:
        async for value in iterator:
            await ahead.put(InputRow(index, value))
            index += 1
    except Exception as raised:  # noqa: BLE001 - raised when the rows before it have been taken
        error = raised
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
    await ahead.put(error)
