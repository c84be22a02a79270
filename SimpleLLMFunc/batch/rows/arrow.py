"""Arrow and Parquet: rows in, a thousand at a time, and reports out."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from SimpleLLMFunc.batch.rows.tables import WHOLE, Reported, cell_text, check_columns, plain_cell, table_of
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.logger import shown_error

PARQUET = (".parquet", ".pq")
"""How files of Parquet end."""

_BATCH = 1024


def parquet_package(what: str) -> Any:
    """Import the Parquet of pyarrow.

    Raises:
        ConfigError: it is not installed.
    """
    load_extra("pyarrow", "frames", purpose=what)
    return load_extra("pyarrow.parquet", "frames", purpose=what)


# --- in --------------------------------------------------------------------------------------------------


def is_arrow(source: Any) -> bool:
    """Say whether rows that are no frame come as Arrow batches: by the stream protocol, of a lazy frame or a data set.

    A single column is read as the values that it holds.

    Source: the Arrow PyCapsule interface, method ``__arrow_c_stream__``.
    """
    if isinstance(source, type):
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
        yield from _records(_batches(source))
    except (ConfigError, UsageError):
        raise
    except Exception as error:  # of pyarrow, and of the source of the batches
        said = shown_error(error).partition("\n")[0]  # pyarrow's holds a traceback
        raise UsageError(f"the rows of the {type(source).__name__} cannot be read: {said}") from error


def _batches(source: Any) -> Iterator[Any]:
    arrow = load_extra("pyarrow", "frames", purpose="Reading Arrow")
    if _is_lazy(source):
        if not hasattr(source, "collect_batches"):
            raise UsageError("this polars cannot stream a LazyFrame. Update it, or give .collect() of the frame.")
        return (frame.to_arrow() for frame in source.collect_batches(chunk_size=_BATCH, maintain_order=True))
    if _is_data_set(source):
        return iter(source.with_format("arrow").iter(_BATCH))
    return iter(arrow.RecordBatchReader.from_stream(source))


def _records(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        check_columns(batch.schema.names, "the table")
        for start in range(0, batch.num_rows, _BATCH):
            for record in batch.slice(start, _BATCH).to_pylist():
                yield {str(name): plain_cell(cell) for name, cell in record.items()}


@contextmanager
def _parquet_file(path: Path) -> Generator[Any, None, None]:
    """Open a Parquet file.

    Raises:
        ConfigError: pyarrow is not installed, or this is no Parquet file.
    """
    parquet = parquet_package("Reading Parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's own are among these
        raise ConfigError(f"{str(path)!r} cannot be read as Parquet: {error}") from error


def parquet_records(path: Path) -> Generator[dict[str, Any], None, None]:
    """Yield the rows of a Parquet file as dicts, a thousand read at a time; raises as `_parquet_file`."""
    with _parquet_file(path) as file:
        yield from _records(file.iter_batches(batch_size=_BATCH))


def parquet_length(path: Path) -> int:
    """Return how many rows a Parquet file says that it has; raises as `_parquet_file`."""
    with _parquet_file(path) as file:
        return int(file.metadata.num_rows)


# --- out -------------------------------------------------------------------------------------------------


def arrow_reader(report: Reported, what: str = "Writing Arrow") -> Any:
    """Return a report as a `pyarrow.RecordBatchReader`, a thousand rows at a time.

    The rows are gone through three times: what is in the columns shows only then.

    Raises:
        ConfigError: pyarrow is not installed; while it is read: a number is too large for a column.
    """
    arrow = load_extra("pyarrow", "frames", purpose=what)
    names, records = table_of(report)
    kinds: dict[str, set[type]] = {name: set() for name in names}
    for record in records():
        for name, cell in record.items():
            kinds[name].add(type(cell))
    schema = arrow.schema([(name, _arrow_type(arrow, found)) for name, found in kinds.items()])

    def batches() -> Iterator[Any]:
        rows = records()
        while chunk := list(islice(rows, _BATCH)):
            columns = [
                arrow.array([_arrow_cell(record.get(field.name), field.type, arrow) for record in chunk], field.type)
                for field in schema
            ]
            yield arrow.record_batch(columns, schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, batches())


def write_parquet(report: Reported, path: Path) -> None:
    """Write a report as Parquet, a thousand rows at a time.

    Raises:
        ConfigError: pyarrow is not installed, or a number is too large for a column.
    """
    parquet = parquet_package("Writing Parquet")
    with arrow_reader(report, "Writing Parquet") as reader, parquet.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _arrow_type(arrow: Any, kinds: set[type]) -> Any:
    made = {
        frozenset({bool}): arrow.bool_(),
        frozenset({int}): arrow.int64(),
        frozenset({float}): arrow.float64(),
        frozenset({int, float}): arrow.float64(),
    }
    return made.get(frozenset(kinds - {type(None)}), arrow.string())


def _arrow_cell(cell: Any, kind: Any, arrow: Any) -> Any:
    if cell is None:
        return None
    if kind == arrow.string():
        return str(cell_text(cell)).encode("utf-8", "replace").decode()  # without lone surrogates
    if kind == arrow.int64() and cell not in WHOLE:
        raise ConfigError(f"the number {cell} does not fit into a column of Parquet. Write the rows as .jsonl.")
    return float(cell) if kind == arrow.float64() else cell
