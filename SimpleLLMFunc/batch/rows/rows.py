"""Rows in: from whatever holds them, one after the other, each with the place it came from."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from SimpleLLMFunc.batch.rows.frames import PARQUET, frame_kind, frame_records, parquet_records
from SimpleLLMFunc.batch.rows.text_files import TextRow, csv_records, is_packed, json_lines, suffix_of
from SimpleLLMFunc.errors import ConfigError, UsageError, cut
from SimpleLLMFunc.runtime import in_thread

Rows: TypeAlias = Any
"""What `f.map` takes: an iterable or async iterable, a path, a pandas or polars frame, a `RowSource`."""

_CHUNK = 256
"""Rows that are read from a file at a time, in a thread, so that a slow disk does not hold up the event loop."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One row, or the place of one that cannot be read.

    Attributes:
        index: from 0, in input order; bad rows count.
        value: the row.
        line: its line in the file, or its number in a table, from 1; None where there is neither.
        error: why it cannot be read, with the line; None for a good row.
        is_record: a line of a file or of a frame: it may have more columns than the function has parameters.
    """

    index: int
    value: Any = None
    line: int | None = None
    error: UsageError | None = None
    is_record: bool = False


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows with a few words about how to read them; `f.map` takes one wherever it takes rows.

    Attributes:
        source: anything that `read_rows` takes.
        columns: parameters by the names of columns, for columns that are called otherwise.
        limit: read so many rows at most.
    """

    source: Any
    columns: Mapping[str, str] | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        limit: object = self.limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise ConfigError(f"limit is {limit!r}; it must be a whole number from 0 up.")


def read_rows(source: Rows) -> AsyncGenerator[InputRow, None]:
    """Yield the rows of `source` as they are wanted; never the whole of it at once.

    Args:
        source: an iterable or async iterable; a str or Path of a file (.jsonl, .ndjson, .csv, .tsv, also with .gz;
            .parquet); a pandas or polars frame; a `RowSource`.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: a file of another kind, or an extra is missing.
        UsageError: it holds no rows.
    """
    if isinstance(source, RowSource):
        return _as_told(read_rows(source.source), source)
    if isinstance(source, (str, os.PathLike)):
        return _from_file(Path(source))
    if frame_kind(source) is not None:
        return _from_records(frame_records(source))
    if isinstance(source, AsyncIterable):
        return _from_async(source)
    if isinstance(source, (bytes, bytearray, Mapping)) or not isinstance(source, Iterable):
        raise UsageError(
            f"rows is a {type(source).__name__}. Give a list or another iterable of rows, the path of a JSONL, CSV or "
            "Parquet file, or a pandas or polars frame."
        )
    return _from_iterable(source)


# --- from each kind of source ----------------------------------------------------------------------------


async def _from_iterable(source: Iterable[Any]) -> AsyncGenerator[InputRow, None]:
    for index, value in enumerate(source):
        yield InputRow(index, value)


async def _from_async(source: AsyncIterable[Any]) -> AsyncGenerator[InputRow, None]:
    index = 0
    iterator = aiter(source)
    try:
        async for value in iterator:
            yield InputRow(index, value)
            index += 1
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


async def _from_records(records: Iterable[dict[str, Any]]) -> AsyncGenerator[InputRow, None]:
    for index, record in enumerate(records):
        yield InputRow(index, record, line=index + 1, is_record=True)


def _from_file(path: Path) -> AsyncGenerator[InputRow, None]:
    return _in_chunks(file_rows(path), path)


def file_rows(path: Path) -> Generator[TextRow, None, None]:
    """Return the rows of a file; raises what `read_rows` does."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}. Rows given as a str are the path of a file.")
    suffix = suffix_of(path)
    if suffix in {".jsonl", ".ndjson"}:
        return json_lines(path)
    if suffix in {".csv", ".tsv"}:
        return csv_records(path)
    if suffix in PARQUET and not is_packed(path):
        return _numbered(parquet_records(path))
    hint = " Write one JSON value a line, and call it .jsonl." if suffix == ".json" else ""
    raise ConfigError(
        f"{path.name!r}: rows are read from .jsonl, .ndjson, .csv and .tsv (also with .gz) and .parquet.{hint}"
    )


def _numbered(records: Iterable[dict[str, Any]]) -> Generator[TextRow, None, None]:
    for number, record in enumerate(records, 1):
        yield TextRow(number, record)


async def _in_chunks(rows: Generator[TextRow, None, None], path: Path) -> AsyncGenerator[InputRow, None]:
    index = 0
    try:
        while chunk := await in_thread(_next_chunk, rows):
            for row in chunk:
                error = UsageError(f"{path.name}, line {row.line}: {row.problem}") if row.problem else None
                yield InputRow(index, row.value, row.line, error, is_record=True)
                index += 1
    finally:
        with suppress(ValueError):  # a thread is still reading; the file is closed when it lets go
            rows.close()


def _next_chunk(rows: Iterator[TextRow]) -> list[TextRow]:
    return list(itertools.islice(rows, _CHUNK))


async def _as_told(rows: AsyncGenerator[InputRow, None], told: RowSource) -> AsyncGenerator[InputRow, None]:
    """Rename columns, and stop at the limit."""
    async with aclosing(rows):
        if told.limit == 0:
            return
        is_first = True
        async for row in rows:
            if told.columns and row.error is None:
                problem = misfit_of(row.value, told.columns)
                if problem and is_first:
                    # The rows to come will hardly have it either.
                    raise ConfigError(f"{_place(row.line)}{problem}")
                is_first = False
                row = _row_renamed(row, told.columns, problem)  # noqa: PLW2901 - the same row, told otherwise
            yield row
            if told.limit is not None and row.index + 1 >= told.limit:
                return


def misfit_of(value: Any, columns: Mapping[str, str]) -> str:
    """Return why columns of a row cannot be renamed, empty where they can."""
    if not isinstance(value, dict):
        return "it has no columns that could be renamed."
    missing = next((name for name in columns if name not in value), None)
    if missing is None:
        return ""
    return f"there is no column {missing!r}; the columns are {cut(', '.join(map(repr, value)), 300)}."


def _row_renamed(row: InputRow, columns: Mapping[str, str], problem: str) -> InputRow:
    if problem:
        return replace(row, value=None, error=UsageError(f"{_place(row.line)}{problem}"))
    return replace(row, value=renamed(row.value, columns))


def renamed(value: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return a row under the names of parameters; a column that had such a name already gives way."""
    taken = set(columns.values())
    kept = {name: cell for name, cell in value.items() if name in columns or name not in taken}
    return {columns.get(name, name): cell for name, cell in kept.items()}


def _place(line: int | None) -> str:
    return "" if line is None else f"line {line}: "
