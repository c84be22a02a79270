"""Runs of a trace store as a table: CSV, JSON lines, Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any, Literal, TypeAlias, get_args

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.observability.store.content import storable
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import RunOrder, RunQuery

RunFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
"""File formats of an exported table."""

_PAGE = 200
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that a spreadsheet reads as a formula; a model or a user may have written them."""


def exported_runs(
    reader: TraceReader,
    form: RunFormat,
    query: RunQuery | None = None,
    *,
    sort: RunOrder = "started",
    ascending: bool = False,
) -> Iterator[bytes]:
    """Yield a file with a row for each run of a query: the fields of `RunSummary`, arguments, value and text.

    In CSV and Parquet, arguments, value and tags are JSON texts. In CSV an apostrophe precedes a text that a spreadsheet
    would read as a formula.

    Raises:
        ConfigError: the file cannot be read, or pyarrow is missing.
    """
    rows = _rows(reader, query, sort, ascending=ascending)
    if form == "parquet":
        load_extra("pyarrow.parquet", "frames", purpose="Parquet")
        return _parquet(load_extra("pyarrow", "frames", purpose="Parquet"), rows)
    if form == "jsonl":
        return (storable(json.dumps(row, ensure_ascii=False)).encode() + b"\n" for row in rows)
    if form != "csv":
        raise ConfigError(f"runs are not written as {form!r}. Known: {', '.join(get_args(RunFormat))}.")
    return _csv(rows)


def _rows(reader: TraceReader, query: RunQuery | None, sort: RunOrder, *, ascending: bool) -> Iterator[dict[str, Any]]:
    after: str | None = None
    while True:
        page, contents = reader.runs_with_content(query, limit=_PAGE, after=after, sort=sort, ascending=ascending)
        for run, (arguments, value, text) in zip(page.runs, contents, strict=True):
            row = asdict(run)
            del row["seq"], row["question"], row["answer"]
            yield row | {"arguments": arguments, "value": value, "text": text}
        after = page.next
        if after is None:
            return


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose cells are texts, numbers and None; half a character, which no file can hold, is escaped."""
    flat = {
        name: json.dumps(cell, ensure_ascii=False)
        if isinstance(cell, dict | list) or (name == "value" and cell is not None)
        else cell
        for name, cell in row.items()
    }
    return {name: storable(cell) if isinstance(cell, str) else cell for name, cell in flat.items()}


def _csv(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    yield b"\xef\xbb\xbf"  # tells a spreadsheet that the file is UTF-8
    writer: Any = None
    for row in rows:
        file = io.StringIO()
        if writer is None:
            csv.writer(file).writerow(row)
        writer = csv.writer(file)
        cells = _flat(row).values()
        writer.writerow(f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in cells)
        yield file.getvalue().encode()


def _parquet(arrow: Any, rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    file = io.BytesIO()
    schema: Any = None
    writer: Any = None
    while batch := [_flat(row) for row in islice(rows, _PAGE * 10)]:
        if writer is None:
            schema = arrow.schema([(name, _kind(arrow, name, cell)) for name, cell in batch[0].items()])
            writer = arrow.parquet.ParquetWriter(file, schema)
        writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
    if writer is None:
        arrow.parquet.write_table(arrow.table({}), file)
    else:
        writer.close()
    data = file.getvalue()
    yield from (data[at : at + 65_536] for at in range(0, len(data), 65_536))


_REAL = {"started", "seconds", "first_chunk_seconds", "cost", "score"}


def _kind(arrow: Any, name: str, cell: Any) -> Any:
    if name in _REAL:
        return arrow.float64()
    return arrow.bool_() if isinstance(cell, bool) else arrow.int64() if isinstance(cell, int) else arrow.string()
