"""MapReport: the outcome of a map, for each row and in total; written as JSONL, CSV and Parquet.

A file is written row by row, and replaced only when it is complete.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import secrets
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TextIO, TypeVar, cast, overload

from SimpleLLMFunc.base.run import Shown
from SimpleLLMFunc.batch.checkpoint.codec import Finished
from SimpleLLMFunc.batch.checkpoint.store import Store
from SimpleLLMFunc.batch.rows.arrow import PARQUET, arrow_reader, parquet_package, write_parquet
from SimpleLLMFunc.batch.rows.feed import RowsAgain
from SimpleLLMFunc.batch.rows.rows import is_packed, suffix_of
from SimpleLLMFunc.batch.rows.tables import Reported, cell_text, json_lines, table_of, to_frame
from SimpleLLMFunc.config import file_to_write, real_path
from SimpleLLMFunc.errors import CheckpointError, ConfigError, RunError, SimpleLLMFuncError, counted
from SimpleLLMFunc.logger import redacted_cause
from SimpleLLMFunc.type import NO_USAGE, Usage
from SimpleLLMFunc.utils import is_number

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_AT_A_TIME = 256
"""Rows that are looked up together where they are read one after the other."""

_LINES, _CELLS = (".jsonl", ".ndjson"), (".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class MapCounts:
    """Counts of rows; each row is one of asked, restored, duplicates, invalid and unasked.

    Attributes:
        rows: all that were read.
        asked: sent to the model in this run, answered or failed.
        restored: found in the checkpoint.
        duplicates: the same as another row of this map, and asked with it.
        invalid: not sent, because they do not fit the function's parameters or could not be read.
        unasked: not sent, because the map stopped before.
        failed: rows without a value, of any of these kinds.
    """

    rows: int = 0
    asked: int = 0
    restored: int = 0
    duplicates: int = 0
    invalid: int = 0
    unasked: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MapRow(Generic[R_co]):
    """One row with its value or error.

    Attributes:
        index: its place in the input, from 0.
    """

    index: int
    _finished: Finished | None
    _source: Sequence[Any] | RowsAgain | dict[int, Any]
    _stopped: Exception | None

    @property
    def row(self) -> Any:
        """The row as it was given; one that came from a stream and was no plain data comes back as plain data."""
        if not isinstance(self._source, dict) or self.index in self._source:
            return self._source[self.index]
        return None if self._finished is None else self._finished.given

    @property
    def value(self) -> R_co:
        """The value, of the function's return type.

        Raises:
            Exception: what `error` holds, where there is no value.
        """
        if (error := self.error) is not None:
            raise error
        assert self._finished is not None, "a row without an error was answered"
        return cast("R_co", self._finished.value(self.index))

    @property
    def error(self) -> Exception | None:
        """What went wrong; None exactly when there is a value."""
        if self._finished is None:
            return self._stopped or RunError("the row was not asked")
        return self._finished.error(self.index)

    @property
    def usage(self) -> Usage:
        """What it took, also in an earlier run."""
        return NO_USAGE if self._finished is None else self._finished.usage

    @property
    def key(self) -> str:
        """By which it is known in the checkpoint; empty where it was not asked."""
        return "" if self._finished is None else self._finished.key.hex()

    def __repr__(self) -> str:
        error = self.error
        came = f"value={self.value!r}" if error is None else f"error={error!r}"
        return f"MapRow(index={self.index}, {came})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MapRows(Sequence[MapRow[R_co]]):
    """The rows of a map in the order of the input, read on access: a million rows take no memory."""

    _ids: array[int]
    _store: Store
    _source: Sequence[Any] | RowsAgain | dict[int, Any]
    _stopped: Exception | None
    _places: range

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> MapRow[R_co]: ...
    @overload
    def __getitem__(self, index: slice) -> MapRows[R_co]: ...
    def __getitem__(self, index: int | slice) -> MapRow[R_co] | MapRows[R_co]:
        if isinstance(index, slice):
            return replace(self, _places=self._places[index])
        return self._read([self._places[index]])[0]

    def __iter__(self) -> Iterator[MapRow[R_co]]:
        for start in range(0, len(self._places), _AT_A_TIME):
            yield from self._read(self._places[start : start + _AT_A_TIME])

    def __reversed__(self) -> Iterator[MapRow[R_co]]:
        return iter(self[::-1])

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'row')}>"

    def close(self) -> None:
        """Close the file behind the rows; it opens again where one is read after all."""
        self._store.release()
        if isinstance(self._source, RowsAgain):
            self._source.close()

    def _read(self, places: Sequence[int]) -> list[MapRow[R_co]]:
        found = self._store.read(sorted({self._ids[place] for place in places if self._ids[place]}))
        return [self._row(place, found) for place in places]

    def _row(self, place: int, found: Mapping[int, Finished]) -> MapRow[R_co]:
        number = self._ids[place]
        finished = found.get(number) if number else None
        if number and finished is None:
            raise CheckpointError("it is no longer in the checkpoint. Map again to ask for it.", row=place)
        if finished is not None and not finished.is_sound:
            raise CheckpointError("its stored result is damaged. Put a copy of the checkpoint in its place.", row=place)
        return MapRow(place, finished, self._source, self._stopped)


@dataclass(frozen=True)
class MapReport(Shown, Generic[R_co]):
    """The outcome of a map.

    Attributes:
        rows: every row in the order of the input.
        counts: how many went which way.
        usage: what this run took; what restored rows took before is in their own `usage`.
        seconds: how long this run took.
        errors: how many rows failed, by the name of the error.
        stopped: why the map ended before its last row (a budget, a deadline); None where it did not.
        name: of the function.
    """

    card: ClassVar[str] = "SimpleLLMFunc.display.results:report_card"

    rows: MapRows[R_co]
    counts: MapCounts
    usage: Usage
    seconds: float
    errors: Mapping[str, int] = field(default_factory=dict)
    stopped: SimpleLLMFuncError | None = None
    name: str = ""
    return_type: Any = field(default=None, repr=False)
    frame: Any = field(default=None, repr=False)

    @property
    def cost(self) -> float | None:
        """USD that this run took, None when unknown."""
        return self.usage.cost

    def to_frame(self) -> Any:
        """Return the rows as a data frame, with one column for each field of a model result.

        It is of the kind that was mapped, whose columns and index stay; else pandas where it is installed, else polars.

        Raises:
            ConfigError: neither pandas nor polars is installed.
        """
        return to_frame(self, self.frame)

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.RecordBatchReader`, batch by batch; what takes Arrow takes the report itself too.

        Columns are those of a Parquet file: `polars.DataFrame(report)`, `pyarrow.table(report)`, DuckDB's ``FROM report``.

        Raises:
            ConfigError: pyarrow is not installed.
        """
        return arrow_reader(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the rows by the Arrow stream protocol."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as JSONL, CSV or Parquet, as the name of the file says.

        Raises:
            ConfigError: another ending, a folder that is not there, or the file cannot be written.
        """
        write_rows(self, path)

    def close(self) -> None:
        """Close the file behind the rows; it opens again where one is read after all, and closes by itself."""
        self.rows.close()

    def __enter__(self) -> Self:
        """Return the report; the file behind its rows is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        counts = self.counts
        failed = "".join(f", {count} x {kind}" for kind, count in self.errors.items())
        cost = "" if not self.cost else f", {self.cost:.4f} USD"
        return (
            f"{self.name}: {counted(counts.rows, 'row')} in {self.seconds:.1f} s ({counts.asked} asked, {counts.restored} restored, "
            f"{counted(counts.duplicates, 'duplicate')}, {counts.failed} failed{failed}){cost}"
        )


# --- files ----------------------------------------------------------------------------------------------


def write_rows(report: Reported, path: str | os.PathLike[str]) -> None:
    """Write a report to a file: all of it, or nothing.

    JSONL holds one object a line: ``index``, ``row``, ``value`` and ``error``, where the value is None for a row with
    an error. CSV and Parquet hold the columns of the input (``row`` where the rows have none), one column for each
    field of a model result (``value`` for every other type), and ``error``; nested values are JSON.

    Raises:
        ConfigError: a file of another kind, pyarrow is missing, or the file cannot be written.
    """
    place = check_output_path(path)
    with replaced_whole(place) as part:
        if suffix_of(place) in PARQUET:
            write_parquet(report, part)
        elif suffix_of(place) in _LINES:
            with _text(part, place) as file:
                file.writelines(json_lines(report))
        else:
            _write_csv(report, part, place)


def check_output_path(path: str | os.PathLike[str]) -> Path:
    """Return the path if rows can be written there, as far as its name and its folder tell.

    Raises:
        ConfigError: it is of another kind, the folder is missing, or what writes it is not installed.
    """
    place = file_to_write(path)
    suffix = suffix_of(place)
    if suffix not in (*_LINES, *_CELLS, *PARQUET) or (suffix in PARQUET and is_packed(place)):
        raise ConfigError(
            f"{place.name!r}: rows are written as .jsonl, .ndjson, .csv, .tsv (also with .gz) or .parquet."
        )
    if suffix in PARQUET:
        parquet_package("Writing Parquet")
    return place


@contextmanager
def replaced_whole(path: str | os.PathLike[str]) -> Generator[Path, None, None]:
    """Give the path of a new file in the same folder; it replaces `path` when the block ends without an error.

    Raises:
        ConfigError: it cannot be written.
    """
    target = real_path(path)  # the file behind a link, not the link
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    failure: ConfigError
    try:
        if target.exists() and not target.is_file():
            raise IsADirectoryError(errno.EISDIR, "Is a folder, a device or a pipe")
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        failure = ConfigError(f"{str(path)!r} cannot be written: {error.strerror or error}.")
        cause = redacted_cause(error)
    else:
        return
    finally:
        with suppress(OSError):
            part.unlink()
    raise failure from cause


@contextmanager
def _text(part: Path, place: Path) -> Generator[TextIO, None, None]:
    with ExitStack() as stack:
        file: Any = stack.enter_context(part.open("xb"))
        if is_packed(place):
            # Without name and time: the same rows give the same file.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        # Lone surrogates, which UTF-8 does not have, become a question mark.
        yield stack.enter_context(io.TextIOWrapper(cast("io.BufferedWriter", file), "utf-8", "replace", newline=""))


def _write_csv(report: Reported, part: Path, place: Path) -> None:
    names, records = table_of(report)
    with _text(part, place) as file:
        writer = csv.writer(file, delimiter="\t" if suffix_of(place) == ".tsv" else ",", lineterminator="\n")
        writer.writerow(names)
        for record in records():
            writer.writerow([cell if is_number(cell) else cell_text(cell) for cell in map(record.get, names)])
