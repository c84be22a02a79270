"""Data frames and Parquet: read without importing what the user did not import, written in the kind that was given."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Generator, Iterable, Iterator
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.batch.rows.columns import ROW, Reported, Table, plain
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.extras import install_line, load_extra

FrameKind: TypeAlias = Literal["pandas", "polars"]

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


def frame_kind(source: Any) -> FrameKind | None:
    """Say whose frame `source` is, None for whatever is no frame; imports nothing.

    Raises:
        UsageError: a lazy frame, or one column without a name of its own.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(source, getattr(pandas, "DataFrame", ())):
        return "pandas"
    if polars is not None:
        if isinstance(source, getattr(polars, "DataFrame", ())):
            return "polars"
        if isinstance(source, getattr(polars, "LazyFrame", ())):
            raise UsageError("rows is a polars LazyFrame. Give .collect() of it.")
    return None


def frame_records(frame: Any) -> Iterator[dict[str, Any]]:
    """Return the rows of a frame as dicts of plain Python values; what is missing is None.

    Raises:
        ConfigError: two columns have one name.
    """
    columns = [str(name) for name in frame.columns]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ConfigError(f"the frame has two columns {twice[0]!r}. Rename one of them.")
    rows = frame.itertuples(index=False, name=None) if frame_kind(frame) == "pandas" else frame.iter_rows()
    return (dict(zip(columns, map(_value, row), strict=True)) for row in rows)


def _value(cell: Any) -> Any:
    """Return a cell as a plain Python value; what stands for a missing one becomes None."""
    if cell is None or type(cell) in (str, int, bool):
        return cell
    if isinstance(cell, float):
        return None if cell != cell else float(cell)  # noqa: PLR0124 - only NaN differs from itself
    if type(cell).__name__ in ("NAType", "NaTType"):
        return None
    for name in ("to_pydatetime", "to_pytimedelta", "to_list", "tolist"):
        if hasattr(cell, name):
            return getattr(cell, name)()
    return cell


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
                    yield {str(name): _value(cell) for name, cell in record.items()}
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


def to_frame(report: Reported, source: Any = None) -> Any:
    """Return a report as a frame: the columns of the input, those of the results, and ``error``.

    It is of the kind of `source` where that is a frame, which then keeps its own columns and index; else pandas where
    it is installed, else polars.

    Raises:
        ConfigError: neither is installed.
    """
    kind = frame_kind(source) or _installed()
    rows = list(report.rows)
    has_frame = frame_kind(source) is not None and len(source) >= len(rows)
    inputs = {str(name): [] for name in source.columns} if has_frame else _input_columns(rows)
    table = Table(report.return_type, inputs)
    results: dict[str, list[Any]] = {name: [] for name in table.columns}
    for row in rows:
        for name, cell in table.cells(row).items():
            results[name].append(cell)
    module = load_extra(kind, "frames", purpose="A frame")
    if kind == "pandas":
        index = source.index[: len(rows)] if has_frame else None
        made = module.DataFrame(
            {name: _pandas_column(module, cells, index) for name, cells in ({} if has_frame else inputs).items()}
            | {name: _pandas_column(module, cells, index) for name, cells in results.items()},
            index=index,
        )
        return module.concat([source.iloc[: len(rows)], made], axis=1) if has_frame else made
    made = [_polars_column(module, name, cells) for name, cells in results.items()]
    if has_frame:
        return source.head(len(rows)).with_columns(made)
    return module.DataFrame([_polars_column(module, name, cells) for name, cells in inputs.items()] + made)


def _installed() -> FrameKind:
    names: tuple[FrameKind, ...] = ("pandas", "polars")
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise ConfigError(f"A frame needs pandas or polars, and neither is installed: {install_line('frames')}")


def _input_columns(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the input as columns: those of the rows that are dicts, ``row`` for everything else."""
    records = [input_record(row.row) for row in rows]
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def input_record(given: Any) -> dict[str, Any]:
    """Return what a row was given as, by column."""
    if isinstance(given, dict) and given and all(isinstance(name, str) for name in given):
        return {name: _cell(cell) for name, cell in given.items()}
    return {} if given is None else {ROW: _cell(given)}


def _cell(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, date, datetime, time)) else plain(value)


def _pandas_column(pandas: Any, cells: list[Any], index: Any) -> Any:
    kinds = {type(cell) for cell in cells}
    if kinds == {int, type(None)} and all(cell is None or cell in _WHOLE for cell in cells):
        return pandas.Series(cells, index=index, dtype="Int64")  # pandas would turn the numbers into floats
    return pandas.Series(cells, index=index, dtype="object" if kinds == {type(None)} else None)


def _polars_column(polars: Any, name: str, cells: list[Any]) -> Any:
    kinds = {type(cell) for cell in cells} - {type(None)}
    if not kinds:
        return polars.Series(name, cells, dtype=polars.String)
    if len(kinds) == 1:
        try:
            return polars.Series(name, cells)
        except Exception:  # noqa: BLE001 - whatever polars finds too mixed for a column
            kinds = set()
    if kinds and kinds <= {int, float}:
        return polars.Series(name, [None if cell is None else float(cell) for cell in cells])
    return polars.Series(name, [_as_text(cell) for cell in cells], dtype=polars.String)


def _as_text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return json.dumps(plain(cell), ensure_ascii=False)


# --- Parquet out -----------------------------------------------------------------------------------------


def write_parquet(report: Reported, path: Path) -> None:
    """Write a report as Parquet, a thousand rows at a time.

    The rows are gone through twice: what is in the columns of the input shows only then.

    Raises:
        ConfigError: pyarrow is not installed, or a number is too large for a column.
    """
    arrow, parquet = parquet_packages("Writing Parquet")
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
    with parquet.ParquetWriter(path, schema) as writer:
        rows = iter(report.rows)
        while chunk := list(islice(rows, _BATCH)):
            records = [{**input_record(row.row), **table.cells(row)} for row in chunk]
            columns = [
                arrow.array([_arrow_cell(record.get(field.name), field.type, arrow) for record in records], field.type)
                for field in schema
            ]
            writer.write_batch(arrow.record_batch(columns, schema=schema))


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
