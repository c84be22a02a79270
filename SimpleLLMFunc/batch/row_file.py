"""Finished rows in one SQLite file; synchronous, for worker threads."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from SimpleLLMFunc.base.mappable import Answer
from SimpleLLMFunc.base.output_mode import OutputSpec
from SimpleLLMFunc.base.result import RepairLevel
from SimpleLLMFunc.batch.codec import (
    decode_error,
    decode_given,
    decode_usage,
    decode_value,
    encode_answer,
    encode_error,
    encode_given,
    encode_usage,
)
from SimpleLLMFunc.errors import CheckpointError
from SimpleLLMFunc.interface.sqlite_file import SqliteFile, transaction
from SimpleLLMFunc.type.usage import Usage

__all__ = ["FORMAT", "Found", "Record", "RowFile", "StoredRow"]

T = TypeVar("T")

FORMAT: Final = 1
"""Of the file; another one is refused."""

_APPLICATION_ID = 0x534C4D50
"""In the header of our files: "SLMP"."""

_TABLES = (
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE progress (commits INTEGER NOT NULL)",
    "INSERT INTO progress VALUES (0)",
    """
    CREATE TABLE versions (
        id INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        name TEXT NOT NULL,
        definition TEXT NOT NULL,
        at REAL NOT NULL
    )
    """,
    # The key stands in the table and in its index: a damaged one is found by comparing the two.
    """
    CREATE TABLE rows (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        error TEXT,
        answer BLOB NOT NULL,
        usage TEXT NOT NULL,
        given BLOB,
        at REAL NOT NULL,
        checksum BLOB NOT NULL
    )
    """,
)

_COLUMNS = "id, key, version, error, answer, usage, given, at, checksum"
_COUNTED = "UPDATE progress SET commits = commits + 1"
_SIZES = (1, 4, 16, 64)
"""How many rows one statement handles: few sizes, so that SQLite prepares each statement once. One statement for many
rows takes the interpreter's lock once and not for each row."""


@dataclass(slots=True)
class Record:
    """A row that has been asked, on its way into the file.

    Attributes:
        answer: None where there is no value.
        failure: why not.
        id: its number in the file; 0 for a new one.
        row: as it was given; None where it need not be kept.
    """

    key: bytes
    answer: Answer[Any] | None
    failure: Exception | None
    usage: Usage
    id: int = 0
    row: Any = None

    is_sound = True

    def value(self, place: int) -> Any:
        """Return the value."""
        assert self.answer is not None, f"row {place} has a value"
        return self.answer.value

    def error(self, place: int) -> Exception | None:  # noqa: ARG002 - as `StoredRow`
        """Return what went wrong."""
        return self.failure

    def given(self) -> Any:
        """Return the row as it was given."""
        return self.row


@dataclass(frozen=True, slots=True)
class Found:
    """What the file has under a key.

    Attributes:
        error: name of the error, None where there is a value.
        is_sound: its checksum fits.
    """

    id: int
    error: str | None
    is_sound: bool


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row as it stands in the file; decoded when it is looked at."""

    key: bytes
    usage: Usage
    is_sound: bool
    _is_error: bool
    _answer: bytes
    _given: bytes | None
    _output: OutputSpec

    def value(self, place: int) -> Any:
        """Return the value, of the function's return type.

        Raises:
            CheckpointError: it cannot be made of what is kept.
        """
        try:
            return decode_value(self._answer, self._output)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise CheckpointError(
                f"what is kept of its value cannot be read as {self._output.name}: {error}", row=place
            ) from error

    def error(self, place: int) -> Exception | None:
        """Return what went wrong, None where there is a value."""
        if not self._is_error:
            return None
        try:
            return decode_error(self._answer, self.usage)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"what is kept of its error cannot be read: {error}", row=place) from error

    def given(self) -> Any:
        """Return the row as it was given, as plain data."""
        return decode_given(self._given)


class RowFile:
    """The rows, by key and by number.

    Args:
        path: of the file.
        output, repair: of the function whose values these are.
        shown: what the file is called in errors.
    """

    def __init__(self, path: Path, output: OutputSpec | None, repair: RepairLevel, shown: str) -> None:
        self.path = path
        self.commits = 0
        self._output = output
        self._repair: RepairLevel = repair
        self._shown = shown
        self._version = 0
        self._identity: tuple[int, int] | None = None
        self.last_id = 0
        self.file = SqliteFile(path, application_id=_APPLICATION_ID, tables=_TABLES, unusable=self.unusable)

    # --- opening ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the file, and make sure that it is whole.

        Raises:
            CheckpointError: it is not, or none of ours, or of another version.
        """

        def work(connection: sqlite3.Connection) -> None:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != FORMAT:
                raise CheckpointError(
                    f"{self._shown} has format {version}, and this version of the library reads format {FORMAT}. "
                    "Give another path, or use the version that wrote it."
                )
            problems = [text for (text,) in connection.execute("PRAGMA integrity_check(3)") if text != "ok"]
            if problems:
                raise self._damaged("; ".join(problems))
            (self.commits,) = connection.execute("SELECT commits FROM progress").fetchone()
            (self.last_id,) = connection.execute("SELECT coalesce(max(id), 0) FROM rows").fetchone()

        self._identity = None
        try:
            self._do("opened", work)
            self._identity = self._found()
        except CheckpointError as error:
            if error.row is None and (damaged := self._first_damaged()) is not None:
                raise CheckpointError(f"{error} The first damaged row is this one.", row=damaged) from error
            raise

    def use_version(self, version: bytes, name: str, definition: str) -> None:
        """Say of which function the rows to come are."""

        def work(connection: sqlite3.Connection) -> None:
            known = connection.execute("SELECT id FROM versions WHERE hash = ?", (version,)).fetchone()
            if known is None:
                values = (version, name, definition, time.time())
                with transaction(connection):
                    inserted = connection.execute(
                        "INSERT INTO versions (hash, name, definition, at) VALUES (?, ?, ?, ?)", values
                    )
                    connection.execute(_COUNTED)
                self.commits += 1
                self._version = inserted.lastrowid or 0
            else:
                self._version = known[0]

        self._do("written", work)

    # --- rows ------------------------------------------------------------------------------------------------

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Found]:
        """Return what there is under these keys."""

        def work(connection: sqlite3.Connection) -> dict[bytes, Found]:
            found: dict[bytes, Found] = {}
            for piece, marks in _pieces(keys, "?"):
                statement = f"SELECT {_COLUMNS} FROM rows WHERE key IN ({marks})"  # noqa: S608 - question marks
                for row in connection.execute(statement, piece):
                    found[row[1]] = Found(row[0], row[3], _is_sound(row))
            return found

        return self._do("read", work)

    def write(self, records: Sequence[Record]) -> None:
        """Keep rows, all or none; each gets its number."""
        last_id, now = self.last_id, time.time()
        rows = []
        for record in records:
            if not record.id:
                last_id += 1
            rows.append(self._row(record, record.id or last_id, now))

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                for piece, marks in _pieces(rows, "(?,?,?,?,?,?,?,?,?)"):
                    values = [cell for row in piece for cell in row]
                    connection.execute(f"INSERT OR REPLACE INTO rows ({_COLUMNS}) VALUES {marks}", values)  # noqa: S608
                connection.execute(_COUNTED)

        self._do("written", work)
        self.commits += 1
        for record, row in zip(records, rows, strict=True):
            record.id = row[0]
        self.last_id = max(last_id, *(row[0] for row in rows))

    def read(self, ids: Sequence[int]) -> dict[int, StoredRow]:
        """Return the rows of these numbers."""
        assert self._output is not None, "rows are read for a function"
        output = self._output

        def work(connection: sqlite3.Connection) -> dict[int, StoredRow]:
            found = {}
            for piece, marks in _pieces(ids, "?"):
                statement = f"SELECT {_COLUMNS} FROM rows WHERE id IN ({marks})"  # noqa: S608 - question marks
                for row in connection.execute(statement, piece):
                    is_sound = _is_sound(row)
                    usage = decode_usage(row[5]) if is_sound else Usage()
                    found[row[0]] = StoredRow(row[1], usage, is_sound, row[3] is not None, row[4], row[6], output)
            return found

        return self._do("read", work)

    def query(self, statement: str) -> list[Any]:
        """Return what a statement finds."""
        return self._do("read", lambda connection: connection.execute(statement).fetchall())

    def checked_rows(self) -> Iterator[tuple[int, bool]]:
        """Yield the number of each row that can be reached, and whether it is sound."""
        with self.file.lock:
            try:
                for row in self.file.connection().execute(f"SELECT {_COLUMNS} FROM rows ORDER BY id"):  # noqa: S608
                    yield row[0], _is_sound(row)
            except sqlite3.Error:
                return

    def close(self) -> bool:
        """Close the file; return whether all of it stands in the one file, without a log beside it."""
        try:
            with self.file.lock:
                if self._identity is not None and self._found() != self._identity:
                    self.file.close()
                    return False
                (is_busy, _, _) = self.file.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except (sqlite3.Error, CheckpointError):
            is_busy = 1
        self.file.close()
        return not is_busy

    # --- inside ----------------------------------------------------------------------------------------------

    def _row(self, record: Record, number: int, now: float) -> tuple[Any, ...]:
        if record.answer is None:
            assert record.failure is not None, "a row has a value or an error"
            error: str | None = type(record.failure).__name__
            data = encode_error(record.failure)
        else:
            assert self._output is not None, "rows are written for a function"
            error, data = None, encode_answer(record.answer, self._output, self._repair)
        given = None if record.row is None else encode_given(record.row)
        row = (number, record.key, self._version, error, data, encode_usage(record.usage), given, now)
        return (*row, _checksum(row))

    def _found(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _do(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        with self.file.lock:
            if self._identity is not None and self._found() != self._identity:
                # Not made anew: whoever reads on would take it for the one that held the rows.
                raise CheckpointError(
                    f"{self._shown} is gone, and with it what its rows came to: it was taken away or replaced. Put it "
                    "back, or map again to ask for all rows."
                )
            try:
                return work(self.file.connection())
            except (sqlite3.Error, OverflowError) as error:
                if isinstance(error, sqlite3.DatabaseError) and _is_damage(error):
                    raise self._damaged(str(error)) from error
                raise CheckpointError(
                    f"{self._shown} cannot be {what}: {error}. What was kept before is safe: make room, or see to the "
                    "rights, and map again with the same checkpoint."
                ) from error

    def _damaged(self, problem: str) -> CheckpointError:
        return CheckpointError(
            f"{self._shown} is damaged ({problem}). Nothing is asked, so that nothing is paid twice: put a copy in its "
            "place, or give another path to ask for all rows again."
        )

    def unusable(self, why: str) -> CheckpointError:
        """Return the error for a file that cannot be used."""
        return CheckpointError(f"{self._shown} cannot be used: {why}. Give another path.")

    def _first_damaged(self) -> int | None:
        return next((number for number, is_sound in self.checked_rows() if not is_sound), None)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # A table or a column that is not there, in a file that says it is ours.
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


def _pieces(items: Sequence[T], mark: str) -> Iterator[tuple[Sequence[T], str]]:
    """Yield `items` in pieces of a few sizes, with as many marks."""
    at = 0
    while at < len(items):
        size = max(each for each in _SIZES if each <= len(items) - at)
        yield items[at : at + size], ",".join([mark] * size)
        at += size


def _checksum(row: Sequence[Any]) -> bytes:
    number, key, version, error, answer, usage, given, at = row
    head = f"{number}|{version}|{error}|{usage}|{at!r}|{len(answer)}|{-1 if given is None else len(given)}|"
    text = head.encode("utf-8", "surrogateescape") + key + answer + (given or b"")
    return hashlib.blake2b(text, digest_size=8).digest()


def _is_sound(row: Sequence[Any]) -> bool:
    try:
        return bool(_checksum(row[:-1]) == row[-1])
    except (TypeError, ValueError, AttributeError):  # a cell of another type than was written
        return False
