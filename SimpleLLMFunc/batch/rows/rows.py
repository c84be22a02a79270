"""Rows in: an iterable, a file or a table, read one row at a time, each with its place.

JSONL and CSV are read line by line here; an unreadable line becomes a row with an error.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from pydantic_core import from_json

from SimpleLLMFunc.batch.rows.arrow import PARQUET, arrow_records, is_arrow, parquet_records
from SimpleLLMFunc.batch.rows.tables import check_columns, frame_kind, frame_records
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError, UsageError, counted, cut
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.utils import is_number

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
        if self.limit is not None and not (is_number(self.limit, int) and self.limit >= 0):
            raise ConfigError(f"limit is {self.limit!r}; it must be a whole number from 0 up.")


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
        path = file_path(source, "a str as rows")
        if suffix_of(path) in PARQUET and os.path.exists(path) and not is_packed(path):  # noqa: PTH110 - as below
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
        for index, (line, value, problem) in enumerate(rows):
            error = UsageError(f"{name}, line {line}: {problem}") if problem else None
            yield InputRow(index, value, line, error, is_record=True)


def text_rows(path: Path) -> Generator[TextRow, None, None]:
    """Return the rows of a JSONL or CSV file; raises what `read_rows` does."""
    try:
        path.stat()
    except PermissionError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except OSError:
        message = f"there is no file {str(path)!r}. Rows given as a str are the path of a file."
        raise FileNotFoundError(message) from None
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


# --- files of text --------------------------------------------------------------------------------------

LARGEST_CELL = 64 * 1024 * 1024
"""Characters of a cell in CSV; a longer one is a quote that is never closed."""

_SAMPLE = 1024 * 1024
_SNIFFED_ROWS = 20
_DELIMITERS = ",\t;|"


TextRow: TypeAlias = tuple[int, Any, str]
"""The line where a row of a file begins, from 1; its value; and why it cannot be read, empty for a good one."""


def suffix_of(path: Path) -> str:
    """Return the suffix for the kind of a file, without a ``.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_packed(path: Path) -> bool:
    """Say whether a file is packed with gzip, by its name."""
    return path.suffix.lower() == ".gz"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked.

    Raises:
        FileNotFoundError: the file does not exist.
        ConfigError: it cannot be read, or is broken.
    """
    try:
        with gzip.open(path) if is_packed(path) else path.open("rb") as file:
            yield cast("BinaryIO", file)
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


# --- JSONL -----------------------------------------------------------------------------------------------


def json_lines(path: Path) -> Generator[TextRow, None, None]:
    """Yield the values of a file with one JSON value a line; blank lines are skipped, and counted.

    Raises:
        ConfigError: the file cannot be read.
    """
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if text.strip():
                yield _json_row(number, text)


def _json_row(number: int, line: bytes) -> TextRow:
    try:
        return number, from_json(line), ""
    except ValueError:
        pass
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return number, None, f"it is not UTF-8 (byte {error.start + 1}). Save the file as UTF-8."
    try:
        return number, decode(line), ""  # lone surrogates, which the strict reader refuses
    except ValueError as error:
        return number, None, f"it is not JSON: {error}"


# --- CSV -------------------------------------------------------------------------------------------------


def csv_records(path: Path) -> Generator[TextRow, None, None]:
    """Yield the rows of a CSV file as dicts from column to text; the first row names the columns.

    UTF-8 with or without a mark, UTF-16 with one, and GB18030 where the text is Chinese. The delimiter is the one of
    comma, tab, semicolon and bar that gives the rows the same number of cells.

    Raises:
        ConfigError: the file cannot be read, its encoding is another one, or two columns have one name.
    """
    with opened(path) as file:
        sample = file.read(_SAMPLE)
        encoding = _encoding(sample, path, is_whole=len(sample) < _SAMPLE)
        delimiter = "\t" if suffix_of(path) == ".tsv" else _delimiter(sample.decode(encoding, "replace"))
    # One limit for the whole process: only ever raised, so that other readers of CSV go on working.
    csv.field_size_limit(max(LARGEST_CELL, csv.field_size_limit()))
    with opened(path) as file:
        # What is not in the encoding is kept as surrogates, by which it is found in its row.
        text = io.TextIOWrapper(file, encoding, errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        columns: list[str] | None = None
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if columns is None:
                    raise ConfigError(f"{str(path)!r}: the names of the columns cannot be read: {error}.") from None
                more = f". The row goes on to line {reader.line_num}: close its quote" if reader.line_num > line else ""
                yield line, None, f"it is not CSV: {error}{more}"
                continue
            except UnicodeError as error:
                raise ConfigError(f"{str(path)!r} cannot be read as {encoding}: {error}.") from None
            # In a single column "" in quotes is a cell.
            if not cells or (len(cells) == 1 and not cells[0].strip() and (cells[0] or len(columns or ()) != 1)):
                continue
            if columns is None:
                # A column without a name is what a data frame's index is written as.
                columns = [cell.strip() or f"column_{number}" for number, cell in enumerate(cells, 1)]
                check_columns(columns, repr(str(path)))
            else:
                yield _csv_row(line, columns, cells, encoding)


def _csv_row(line: int, columns: list[str], cells: list[str], encoding: str) -> TextRow:
    if len(cells) != len(columns):
        return line, None, f"it has {counted(len(cells), 'cell')} for {counted(len(columns), 'column')}"
    for cell in cells:
        if not cell.isascii() and any("\ud800" <= character <= "\udfff" for character in cell):
            name = encoding.removesuffix("-sig").upper()
            return line, None, f"it is not {name}: {cut(cell, 60)!r}. Save the file as UTF-8."
    return line, dict(zip(columns, cells, strict=True)), ""


def _encoding(sample: bytes, path: Path, *, is_whole: bool) -> str:
    """Return the encoding of a file that begins with `sample`.

    Raises:
        ConfigError: an unknown encoding, which we would read as other characters.
    """
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    place = _misfit(sample, "utf-8-sig", is_whole=is_whole)
    if place is None:
        return "utf-8-sig"
    if _misfit(sample, "gb18030", is_whole=is_whole) is None and _is_chinese(sample.decode("gb18030", "ignore")):
        return "gb18030"
    line = sample.count(b"\n", 0, place) + 1
    if line > 1 and not sample[:place].isascii():
        return "utf-8-sig"  # what came before is UTF-8, and one bad line does not change that: the row says so itself
    raise ConfigError(f"{str(path)!r} is not UTF-8 (line {line}). Save it as UTF-8.")


def _misfit(sample: bytes, encoding: str, *, is_whole: bool) -> int | None:
    """Return where `sample` is not in this encoding, None if it is; a character that its end cuts in two is."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample, final=is_whole)
    except UnicodeDecodeError as error:
        return error.start
    return None


def _is_chinese(text: str) -> bool:
    """Whether what is beyond ASCII is Chinese, but for a few strays: bytes of other encodings give rare signs."""
    beyond = "".join(character for character in text if character > "\x7f")
    # The 6,763 characters of GB2312, and its signs, two bytes each: what Chinese is written with.
    return bool(beyond) and len(beyond.encode("gb2312", "ignore")) / 2 >= 0.95 * len(beyond)


def _delimiter(text: str) -> str:
    """Return the delimiter that gives the first rows the same number of cells, and the most of them."""
    best, width = ",", 1
    for delimiter in _DELIMITERS:
        widths = set()
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            for cells in reader:
                if cells:
                    widths.add(len(cells))
                if reader.line_num >= _SNIFFED_ROWS:
                    break
        except csv.Error:
            continue
        if len(widths) == 1 and (found := widths.pop()) > width:
            best, width = delimiter, found
    if width > 1:
        return best
    # No delimiter fits every row: the names of the columns decide.
    header = next((line for line in text.splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=lambda delimiter: (header.count(delimiter), delimiter == ","))
