"""Rows in: an iterable, a file or a table, read one row at a time, each with its place."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from SimpleLLMFunc.batch.rows.arrow import PARQUET, arrow_records, is_arrow, parquet_records
from SimpleLLMFunc.batch.rows.frames import frame_kind, frame_records
from SimpleLLMFunc.batch.rows.text_files import TextRow, csv_records, is_packed, json_lines, suffix_of
from SimpleLLMFunc.errors import ConfigError, UsageError, cut

Rows: TypeAlias = Any
"""What `f.map` takes: an iterable or async iterable, a path, a pandas or polars frame, what streams Arrow, a `RowSource`."""


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
    """Rows with instructions for reading them; `f.map` takes one as its rows.

    Attributes:
        source: anything else that `f.map` takes.
        columns: parameters by the names of columns, for columns that are called otherwise.
        limit: read so many rows at most.
    """

    source: Any
    columns: Mapping[str, str] | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.source, RowSource):
            raise ConfigError(
                "a RowSource cannot be the source of another one. Give one with all columns and the limit."
            )
        limit: object = self.limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise ConfigError(f"limit is {limit!r}; it must be a whole number from 0 up.")


def read_rows(source: Rows) -> Generator[InputRow, None, None]:
    """Return the rows of `source`, read on demand in the caller's thread; never all at once.

    Args:
        source: an iterable; a str or Path of a file (.jsonl, .ndjson, .csv, .tsv, also with .gz; .parquet); a pandas or
            polars frame; what streams Arrow batches: a pyarrow table or reader, a DuckDB relation, a polars LazyFrame, a
            data set of Hugging Face; a `RowSource`. `Feed` takes async iterables too.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: a file of another kind, or an extra is missing.
        UsageError: it holds no rows.
    """
    if isinstance(source, RowSource):
        return as_told(read_rows(source.source), source)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if suffix_of(path) in PARQUET and path.exists() and not is_packed(path):
            return _from_records(parquet_records(path))
        return _from_file(text_rows(path), path.name)
    if frame_kind(source) is not None:
        return _from_records(frame_records(source))
    if is_arrow(source):
        return _from_records(arrow_records(source))
    if isinstance(source, (bytes, bytearray, Mapping)) or not isinstance(source, Iterable):
        raise UsageError(
            f"rows is a {type(source).__name__}. Give a list or another iterable of rows, the path of a JSONL, CSV or "
            "Parquet file, a pandas or polars frame, or an object that streams Arrow batches."
        )
    return (InputRow(index, value) for index, value in enumerate(source))


# --- from each kind of source ----------------------------------------------------------------------------


def _from_records(records: Iterable[dict[str, Any]]) -> Generator[InputRow, None, None]:
    for index, record in enumerate(records):
        yield InputRow(index, record, line=index + 1, is_record=True)


def _from_file(rows: Generator[TextRow, None, None], name: str) -> Generator[InputRow, None, None]:
    with closing(rows):
        for index, row in enumerate(rows):
            error = UsageError(f"{name}, line {row.line}: {row.problem}") if row.problem else None
            yield InputRow(index, row.value, row.line, error, is_record=True)


def text_rows(path: Path) -> Generator[TextRow, None, None]:
    """Return the rows of a JSONL or CSV file; raises what `read_rows` does."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}. Rows given as a str are the path of a file.")
    suffix = suffix_of(path)
    if suffix in {".jsonl", ".ndjson"}:
        return json_lines(path)
    if suffix in {".csv", ".tsv"}:
        return csv_records(path)
    hint = " Write one JSON value a line, and call it .jsonl." if suffix == ".json" else ""
    raise ConfigError(
        f"{path.name!r}: rows are read from .jsonl, .ndjson, .csv and .tsv (also with .gz) and .parquet.{hint}"
    )


def as_told(rows: Iterable[InputRow], told: RowSource) -> Generator[InputRow, None, None]:
    """Rename columns, and stop at the limit.

    Raises:
        ConfigError: the very first row cannot be renamed; the rows to come will hardly be other ones.
    """
    if told.limit == 0:
        return
    for row in rows:
        yield _renamed(row, told.columns) if told.columns and row.error is None else row
        if told.limit is not None and row.index + 1 >= told.limit:
            return


def _renamed(row: InputRow, columns: Mapping[str, str]) -> InputRow:
    """Return a row under the names of parameters; a column that had such a name already gives way."""
    if not isinstance(row.value, dict):
        problem = "it has no columns that could be renamed."
    elif missing := [name for name in columns if name not in row.value]:
        there = cut(", ".join(map(repr, row.value)), 300)
        problem = f"there is no column {missing[0]!r}; the columns are {there}."
    else:
        taken = set(columns.values())
        kept = {name: cell for name, cell in row.value.items() if name in columns or name not in taken}
        return replace(row, value={columns.get(name, name): cell for name, cell in kept.items()})
    problem = problem if row.line is None else f"line {row.line}: {problem}"
    if row.index == 0:
        raise ConfigError(problem)
    return replace(row, value=None, error=UsageError(problem))
