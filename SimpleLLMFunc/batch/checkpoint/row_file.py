"""Finished rows in one SQLite file; synchronous, for worker threads."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.batch.checkpoint.codec import Record, StoredRow, cells_of, is_sound
from SimpleLLMFunc.batch.progress import MapProgress
from SimpleLLMFunc.errors import CheckpointError
from SimpleLLMFunc.storage import SqliteFile, is_damage, transaction

FORMAT: Final = 3
"""The format we write. Older files are read as they are; the next map that writes one migrates it."""

_APPLICATION_ID = 0x534C4D50
"""In the header of our files: "SLMP"."""

_MAPS = """
    CREATE TABLE maps (
        version INTEGER PRIMARY KEY, done INTEGER NOT NULL, asked INTEGER NOT NULL, failed INTEGER NOT NULL,
        total INTEGER, cost REAL, seconds REAL NOT NULL, at REAL NOT NULL
    )
    """
"""How far the latest map of each version is, as it was told with the last commit."""

BATCH_TABLES: Final = (
    "CREATE TABLE batches (tag TEXT PRIMARY KEY, address TEXT NOT NULL, id TEXT, file TEXT)",
    "CREATE TABLE requests (key BLOB PRIMARY KEY, tag TEXT NOT NULL, mode TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX requests_by_batch ON requests (tag)",
    """
    CREATE TABLE answers (
        key BLOB PRIMARY KEY, mode TEXT NOT NULL, place INTEGER NOT NULL, is_good INTEGER NOT NULL,
        line BLOB NOT NULL, checksum BLOB NOT NULL
    )
    """,
    "CREATE INDEX answers_by_place ON answers (place)",
)
"""What is known of a provider's batches: those under way, which request is in which, and the answers that came."""

_FIRST: Final = (
    "CREATE TABLE progress (commits INTEGER NOT NULL)",
    "INSERT INTO progress VALUES (0)",
    """
    CREATE TABLE versions (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, name TEXT NOT NULL, definition TEXT NOT NULL,
        at REAL NOT NULL
    )
    """,
    # The table and its index both hold the key: SQLite finds a damaged one by comparing the two.
    """
    CREATE TABLE rows (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, version INTEGER NOT NULL, error TEXT, answer BLOB NOT NULL,
        usage TEXT NOT NULL, given BLOB, at REAL NOT NULL, checksum BLOB NOT NULL
    )
    """,
)

_MIGRATIONS: Final = ((_MAPS,), BATCH_TABLES)
"""What makes format n + 1 of format n, the first of them of format 1."""

_OLDER: Final = (_FIRST, (*_FIRST, _MAPS))
_TABLES: Final = (f"PRAGMA user_version = {FORMAT}", *_FIRST, _MAPS, *BATCH_TABLES)

_COLUMNS = "id, key, version, error, answer, usage, given, at, checksum"
_COUNTED = "UPDATE progress SET commits = commits + 1"


class RowFile:
    """The rows, by key and by number.

    Args:
        path: of the file.
        output, repair: of the function whose values these are.
        shown: what the file is called in errors.

    Attributes:
        format: of the file, once it was opened.
        commits: how often rows were written.
        last_id: the highest number of a row.
    """

    def __init__(self, path: Path, output: OutputSpec | None, repair: RepairLevel, shown: str) -> None:
        self.path = path
        self.format = FORMAT
        self.commits = 0
        self._output = output
        self._repair: RepairLevel = repair
        self._shown = shown
        self._version = 0
        self.last_id = 0
        self.file = SqliteFile(
            path, application_id=_APPLICATION_ID, tables=_TABLES, older=_OLDER, unusable=self.unusable
        )

    # --- opening ---------------------------------------------------------------------------------------------

    def check_format(self) -> None:
        """Note the format of the file.

        Raises:
            CheckpointError: it is of another version.
        """
        ((self.format,),) = self.query("PRAGMA user_version")
        if not 1 <= self.format <= FORMAT:
            raise CheckpointError(
                f"{self._shown} has format {self.format}, and this version of the library reads format {FORMAT} "
                "and older ones. Give another path, or use the version that wrote it."
            )

    def open(self) -> None:
        """Open the file, and make sure that it is whole.

        Raises:
            CheckpointError: it is not, or none of ours, or of another version.
        """
        with self.connection("opened") as connection:
            self.check_format()
            problems = [text for (text,) in connection.execute("PRAGMA integrity_check(3)") if text != "ok"]
            if problems:
                raise self._damaged("; ".join(problems))
            self.commits, count = connection.execute("SELECT max(commits), count(*) FROM progress").fetchone()
            if count != 1:
                raise self._damaged("how often it was written is gone")
            (self.last_id,) = connection.execute("SELECT coalesce(max(id), 0) FROM rows").fetchone()

    def use_version(self, version: bytes, name: str, definition: str) -> None:
        """Say of which function the rows to come are; a file of an older format is brought up to date."""
        with self.connection("written") as connection:
            if self.format < FORMAT:
                with transaction(connection):
                    for statements in _MIGRATIONS[self.format - 1 :]:
                        for statement in statements:
                            connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                self.format = FORMAT
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

    # --- rows ------------------------------------------------------------------------------------------------

    def find(self, keys: Sequence[bytes]) -> dict[bytes, StoredRow]:
        """Return what there is under these keys, a few hundred at most."""
        return {row.key: row for row in self._rows_with("key", keys)}

    def read(self, ids: Sequence[int]) -> dict[int, StoredRow]:
        """Return the rows of these numbers, a few hundred at most."""
        return {row.id: row for row in self._rows_with("id", ids)}

    def _rows_with(self, column: str, values: Sequence[Any]) -> Iterator[StoredRow]:
        assert self._output is not None, "rows are read for a function"
        statement = f"SELECT {_COLUMNS} FROM rows WHERE {column} IN ({marks(values)})"  # noqa: S608 - question marks
        for cells in self.query(statement, values):
            number, key, _, error, answer, usage, given, _, _ = cells
            yield StoredRow(number, key, error, answer, usage, given, is_sound(cells), self._output)

    def write(self, records: Sequence[Record], progress: MapProgress) -> None:
        """Keep rows, and how far their map is with them, all or none; each row gets its number."""
        now, numbers = time.time(), itertools.count(self.last_id + 1)
        version, output, repair = self._version, self._output, self._repair
        rows = [cells_of(record, record.id or next(numbers), version, now, output, repair) for record in records]
        with self.changing() as connection:
            connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            connection.execute(_COUNTED)
            self._note(connection, progress, now)
        self.commits += 1
        for record, row in zip(records, rows, strict=True):
            record.id = row[0]
        self.last_id = max(self.last_id, *(row[0] for row in rows))

    def note(self, progress: MapProgress) -> None:
        """Keep how far the map is."""
        with self.connection("written") as connection:
            self._note(connection, progress, time.time())

    def progress(self) -> dict[int, tuple[MapProgress, float]]:
        """Return how far the latest map of each version is, and when that was, in seconds since the epoch."""
        if self.format < 2:
            return {}
        statement = (
            "SELECT version, name, done, asked, failed, total, cost, seconds, maps.at "
            "FROM maps JOIN versions ON versions.id = version"
        )
        return {version: (MapProgress(*facts), at) for version, *facts, at in self.query(statement)}

    def query(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return what a statement finds."""
        with self.connection("read") as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; all that is written inside is kept, or nothing. Raises what `connection` does."""
        with self.connection("written") as connection, transaction(connection):
            yield connection

    @contextmanager
    def connection(self, what: str) -> Iterator[sqlite3.Connection]:
        """Yield the connection, under the lock of the file; `what` says in errors what could not be done.

        Raises:
            CheckpointError: the file is gone, damaged, or cannot be read or written.
        """
        with self.file.lock:
            if self.file.is_replaced:
                # We create no new file: the reader would take it for the one that held the rows.
                raise CheckpointError(
                    f"{self._shown} is gone, and with it what its rows came to: it was taken away or replaced. Put it "
                    "back, or map again to ask for all rows."
                )
            try:
                yield self.file.connection()
            except (sqlite3.Error, OverflowError) as error:
                if isinstance(error, sqlite3.DatabaseError) and _is_damage(error):
                    raise self._damaged(str(error)) from error
                raise CheckpointError(
                    f"{self._shown} cannot be {what}: {error}. What was kept before is safe: make room, or see to the "
                    "rights, and map again with the same checkpoint."
                ) from error

    def checked_rows(self) -> Iterator[tuple[int, bool]]:
        """Yield the number of each row that can be reached, and whether it is sound."""
        with self.file.lock:
            try:
                for row in self.file.connection().execute(f"SELECT {_COLUMNS} FROM rows ORDER BY id"):  # noqa: S608
                    yield row[0], is_sound(row)
            except sqlite3.Error:
                return

    def close(self) -> bool:
        """Close the file; return whether the one file holds all rows, without a log."""
        is_busy = 1
        with suppress(sqlite3.Error, CheckpointError), self.file.lock:
            if not self.file.is_replaced:
                (is_busy, _, _) = self.file.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self.file.close()
        return not is_busy

    # --- inside ----------------------------------------------------------------------------------------------

    def _note(self, connection: sqlite3.Connection, told: MapProgress, now: float) -> None:
        values = (self._version, told.done, told.asked, told.failed, told.total, told.cost, told.seconds, now)
        connection.execute("INSERT OR REPLACE INTO maps VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def _damaged(self, problem: str) -> CheckpointError:
        return CheckpointError(
            f"{self._shown} is damaged ({problem}). Nothing is asked, so that nothing is paid twice: put a copy in its "
            "place, or give another path to ask for all rows again."
        )

    def unusable(self, why: str) -> CheckpointError:
        """Return the error for a file that cannot be used."""
        return CheckpointError(f"{self._shown} cannot be used: {why}. Give another path.")


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    # A table or a column that is not there, in a file that says it is ours, is damage as well.
    return is_damage(error) or getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_ERROR


def marks(values: Sequence[Any]) -> str:
    """Return a question mark for each value, for a statement."""
    return ",".join("?" * len(values))
