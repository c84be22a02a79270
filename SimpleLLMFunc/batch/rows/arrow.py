"""Arrow and Parquet: rows in from whatever streams them, a thousand at a time, and reports out again."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Iterator
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from SimpleLLMFunc.batch.rows.columns import Reported, Table, plain
from SimpleLLMFunc.batch.rows.frames import frame_kind, input_record, plain_cell
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.logger import shown_error

PARQUET = (".parquet", ".pq")
"""How files of Parquet end."""

_BATCH = 1024
_WHOLE = range(-(2**63), 2**63)


def parquet_packages(what: str) -> tuple[Any, Any]:
    """Import pyarrow and its Parquet.

    Raises:
        ConfigError: it is not installed.
    """
    return load_extra("pyarrow", "frames", purpose=what), load_extra("pyarrow.parquet", "frames", purpose=what)


# --- in --------------------------------------------------------------------------------------------------


def is_arrow(source: Any) -> bool:
    """Say whether rows come as Arrow batches: by the Arrow stream protocol, of a lazy frame, or of a data set.

    A frame is read as a frame, and a single column as the values that it holds.

    Source: the Arrow PyCapsule interface, method ``__arrow_c_stream__``.
    """
    if frame_kind(source) is not None or isinstance(source, type):
        return False
    if _is_lazy(source) or _is_data_set(source):
        return True
    has_columns = any(hasattr(source, name) for name in ("schema", "columns", "column_names"))
    return hasattr(source, "__arrow_c_stream__") and (has_columns or not isinstance(source, Iterable))


def _is_lazy(source: Any) -> bool:
    return isinstance(source, getattr(sys.modules.get("polars"), "LazyFrame", ()))


def _is_data_set(source: Any) -> bool:
    # Hugging Face's, whole or streamed.
    return callable(getattr(source, "with_format", None)) and callable(getattr(source, "iter", None))


def arrow_length(source: Any) -> int | None:
    """Return how many rows there are, None where only reading them would tell."""
    count = getattr(source, "num_rows", None)
    return count if isinstance(count, int) else None


def arrow_records(source: Any) -> Generator[dict[str, Any], None, None]:
    """Yield the rows as dicts of plain Python values, read batch by batch.

    Raises:
        ConfigError: pyarrow is not installed, or two columns have one name.
        UsageError: the rows cannot be read.
    """
    try:
        for batch in _batches(source):
            _check_names(list(batch.schema.names))
            for start in range(0, batch.num_rows, _BATCH):
                for record in batch.slice(start, _BATCH).to_pylist():
                    yield {str(name): plain_cell(cell) for name, cell in record.items()}
    except (ConfigError, UsageError):
        raise
    except Exception as error:  # of pyarrow, and of what gives the batches
        said = shown_error(error).partition("\n")[0]  # pyarrow's holds a traceback
        raise UsageError(f"the rows of the {type(source).__name__} cannot be read: {said}") from error


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise ConfigError(f"the rows have two columns {max(names, key=names.count)!r}. Rename one of them.")


def _batches(source: Any) -> Iterator[Any]:
    arrow = load_extra("pyarrow", "frames", purpose="Reading Arrow")
    if _is_lazy(source):
        if not hasattr(source, "collect_batches"):
            raise UsageError("this polars streams no LazyFrame. Update it, or give .collect() of the frame.")
        return (frame.to_arrow() for frame in source.collect_batches(chunk_size=_BATCH, maintain_order=True))
    if _is_data_set(source):
        return iter(source.with_format("arrow").iter(_BATCH))
    return iter(arrow.RecordBatchReader.from_stream(source))


def parquet_records(path: Path) -> Generator[dict[str, Any], None, None]:
    """Yield the rows of a Parquet file as dicts, a thousand read at a time.

    Raises:
        ConfigError: pyarrow is not installed, or the file is none.
    """
    _, parquet = parquet_packages("Reading Parquet")
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for record in batch.to_pylist():
                    yield {str(name): plain_cell(cell) for name, cell in record.items()}
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's own are among these
        raise ConfigError(f"{str(path)!r} cannot be read as Parquet: {error}") from error


def parquet_length(path: Path) -> int:
    """Return how many rows a Parquet file says that it has.

    Raises:
        ConfigError: pyarrow is not installed, or the file is none.
    """
    _, parquet = parquet_packages("Reading Parquet")
    try:
        return int(parquet.read_metadata(path).num_rows)
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's own are among these
        raise ConfigError(f"{str(path)!r} cannot be read as Parquet: {error}") from error


# --- out -------------------------------------------------------------------------------------------------


def arrow_reader(report: Reported, what: str = "Writing Arrow") -> Any:
    """Return a report as a `pyarrow.RecordBatchReader`, a thousand rows at a time.

    The rows are gone through twice: what is in the columns of the input shows only then.

    Raises:
        ConfigError: pyarrow is not installed; while it is read: a number is too large for a column.
    """
    arrow = load_extra("pyarrow", "frames", purpose=what)
    kinds: dict[str, set[type]] = {}
    for row in report.rows:
        for name, cell in input_record(row.row).items():
            kinds.setdefault(name, set()).add(type(cell))
    table = Table(report.return_type, kinds)
    result_kinds: dict[str, set[type]] = {}
    for row in report.rows:
        for name, cell in table.cells(row).items():
            result_kinds.setdefault(name, set()).add(type(cell))
    every = {**kinds, **{name: result_kinds.get(name, set()) for name in table.columns}}
    schema = arrow.schema([(name, _arrow_type(arrow, found)) for name, found in every.items()])

    def batches() -> Iterator[Any]:
        rows = iter(report.rows)
        while chunk := list(islice(rows, _BATCH)):
            records = [{**input_record(row.row), **table.cells(row)} for row in chunk]
            columns = [
                arrow.array([_arrow_cell(record.get(field.name), field.type, arrow) for record in records], field.type)
                for field in schema
            ]
            yield arrow.record_batch(columns, schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, batches())


def write_parquet(report: Reported, path: Path) -> None:
    """Write a report as Parquet, a thousand rows at a time.

    Raises:
        ConfigError: pyarrow is not installed, or a number is too large for a column.
    """
    _, parquet = parquet_packages("Writing Parquet")
    with arrow_reader(report, "Writing Parquet") as reader, parquet.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _arrow_type(arrow: Any, kinds: set[type]) -> Any:
    known = kinds - {type(None)}
    for python, made in (
        ({bool}, arrow.bool_()),
        ({int}, arrow.int64()),
        ({int, float}, arrow.float64()),
        ({float}, arrow.float64()),
    ):
        if known == python:
            return made
    return arrow.string()


def _arrow_cell(cell: Any, kind: Any, arrow: Any) -> Any:
    if cell is None:
        return None
    if kind == arrow.string():
        if isinstance(cell, (date, datetime, time)):
            cell = cell.isoformat()
        text = cell if isinstance(cell, str) else json.dumps(plain(cell), ensure_ascii=False)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()
    if kind == arrow.int64() and cell not in _WHOLE:
        raise ConfigError(f"the number {cell} does not fit into a column of Parquet. Write the rows as .jsonl.")
    return float(cell) if kind == arrow.float64() else cell
