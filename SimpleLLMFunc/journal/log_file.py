"""The file of a journal: for each key an append-only chain of rows, and the answers of people.

Each row's checksum covers the row before, so a changed, missing or moved row is noticed. Missing rows at the end are
noticed by their number, which is kept outside the database too (`StepCounts`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final, Self, TypeAlias

import filelock

from SimpleLLMFunc.config import real_path
from SimpleLLMFunc.errors import CheckpointError, UsageError
from SimpleLLMFunc.logger import mask_known, redact
from SimpleLLMFunc.storage import SqliteFile, is_damage, transaction

_APPLICATION_ID: Final = 0x534C4A4E
"""In the header of our files: "SLJN"."""

_FORMAT: Final = 1
_TABLES: Final = (
    f"PRAGMA user_version = {_FORMAT}",
    "CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, epoch BLOB NOT NULL, at REAL NOT NULL)",
    """
    CREATE TABLE steps (
        key INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, place BLOB NOT NULL, data TEXT NOT NULL,
        at REAL NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (key, n)
    )
    """,
    """
    CREATE TABLE answers (
        key INTEGER NOT NULL, call_id TEXT NOT NULL, data TEXT NOT NULL, at REAL NOT NULL, checksum BLOB NOT NULL,
        PRIMARY KEY (key, call_id)
    )
    """,
)
_WAIT_SECONDS: Final = 0.2
"""Seconds to wait for the lock of a key; readers hold it for a moment."""

# Services and doubles add odd things.
_JSON: Final = json.JSONEncoder(separators=(",", ":"), skipkeys=True, default=str)

_SLOT: Final = struct.Struct("<16sQI4x")
"""Hash of the key, number of steps, checksum of both."""

_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)

NewRow: TypeAlias = tuple[str, bytes, Any]
"""Kind, place and data of a new row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a key.

    Attributes:
        place: of the step.
        text: its data, as JSON.
        at: when it was written, in seconds since the epoch.
    """

    kind: str
    place: bytes
    text: str
    at: float

    @property
    def data(self) -> Any:
        """The data of the row."""
        return json.loads(self.text)


class JournalFile:
    """A journal on the disk; opened at first use.

    Args:
        path: of the file, made with its folders.
        sync: "full" outlasts a loss of power too.
        must_exist: a missing file is an error.

    Raises:
        ConfigError: the path is not a file's path.
        CheckpointError: there is no journal.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: str = "normal", must_exist: bool = False) -> None:
        self.path = real_path(path)
        self.shown = f"the journal {redact(str(self.path))!r}"
        if must_exist and not os.path.isfile(self.path):  # noqa: PTH113 - Path.is_file() raises PermissionError
            raise CheckpointError(
                f"there is no journal {redact(str(self.path))!r}, or it may not be read. `durable(path, key)` makes one."
            )
        self._sync, self._is_open, self._pid = sync, False, os.getpid()
        self._file = SqliteFile(self.path, application_id=_APPLICATION_ID, tables=_TABLES, unusable=self._unusable)

    def companion(self, suffix: str) -> Path:
        """Return the path of a companion file."""
        return self.path.with_name(self.path.name + suffix)

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold the exclusive lock of a key, in all processes.

        Raises:
            CheckpointError: another process or thread writes it.
        """
        lock = filelock.FileLock(self.companion(f".{hash_of(key).hex()[:16]}.lock"), thread_local=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=_WAIT_SECONDS, poll_interval=_WAIT_SECONDS / 5)
        except filelock.Timeout:
            raise CheckpointError(
                f"the run {key!r} of {self.shown} goes on already, here or in another process. Wait until it has ended."
            ) from None
        except (OSError, NotImplementedError) as error:
            raise self._unusable(str(error)) from error
        try:
            yield
        finally:
            if os.name != "nt" and os.getpid() == self._pid:  # a forked child frees nothing
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release(force=True)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield the open connection, under the file's lock.

        Raises:
            CheckpointError: the file is damaged, missing, not a journal, or cannot be read or written.
        """
        try:
            with self._file.lock:
                if not self._is_open:
                    self._open()
                elif self._file.is_replaced:
                    # A new file would lack the earlier steps, so tools could run twice.
                    raise CheckpointError(
                        f"{self.shown} was taken away or replaced. Put it back, and run the block again."
                    )
                yield self._file.connection()
        except UnicodeEncodeError as error:
            raise UsageError(f"a key of {self.shown} is text that can be written as UTF-8: {error}.") from error
        except (OSError, sqlite3.Error, OverflowError) as error:
            way = "Restore a copy" if is_damage(error) else "What was kept before is safe: make room, mind the rights"
            told = f"{self.shown} cannot be read or written: {error}. {way}, and run the block again."
            raise CheckpointError(told) from error

    def _open(self) -> None:
        with filelock.FileLock(self.companion(".lock"), timeout=10.0, thread_local=False):
            if not self.path.exists():  # it was deleted, so its companion files are stale
                for suffix in ("-wal", "-shm", ".steps"):
                    self.companion(suffix).unlink(missing_ok=True)
            connection = self._file.connection()
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._sync == 'full' else 'NORMAL'}")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _FORMAT:
            raise self._unusable(f"it has format {version}, and this version of the library reads format {_FORMAT}")
        self._is_open = True

    def all_keys(self) -> list[str]:
        """Return the keys, the latest first."""
        with self.connection() as connection:
            return [key for (key,) in connection.execute("SELECT key FROM keys ORDER BY at DESC")]

    def finished_before(self, seconds: float) -> list[str]:
        """Return the keys whose block finished at least so many seconds ago."""
        with self.connection() as connection:
            statement = (
                "SELECT keys.key FROM keys JOIN steps ON steps.key = keys.id WHERE kind = 'end' AND steps.at <= ? "
                "AND n = (SELECT max(n) FROM steps WHERE key = keys.id)"
            )
            return [key for (key,) in connection.execute(statement, (time.time() - seconds,))]

    def close(self) -> None:
        """Close the file; the last one to close it merges the write-ahead log."""
        self._file.close()

    def _unusable(self, why: str) -> CheckpointError:
        return CheckpointError(f"{self.shown} cannot be used: {why}. Give another path.")


class KeyLog:
    """The rows of one key, and the answers to it.

    Args:
        file: that holds them.
        key: as the user named it.

    Attributes:
        epoch: random bytes, drawn when the key is first used, so that no two keys share a step.
        rows: as read.
        answers: by the id of the call.
    """

    def __init__(self, file: JournalFile, key: str) -> None:
        self.file = file
        self.key = key
        self._counts = StepCounts(file.companion(".steps"), hash_of(key), file.shown)
        self._begin_empty()

    def _begin_empty(self) -> None:
        self.epoch = token_bytes(16)
        self.rows: list[Row] = []
        self.answers: dict[str, Any] = {}
        self._id: int | None = None
        self._number = 0
        self._last = b""

    def read(self) -> Self:
        """Read and verify all rows; return this.

        Raises:
            CheckpointError: they are damaged.
        """
        noted = self._counts.read()
        with self.file.connection() as connection:
            found = connection.execute("SELECT id, epoch, at FROM keys WHERE key = ?", (self.key,)).fetchone()
            if found is not None:
                self._id, self.epoch = found[0], found[1]
                self._last = _checksum(self.key, *found)
            rows = connection.execute(
                "SELECT n, kind, place, data, at, checksum FROM steps WHERE key = ? ORDER BY n", (self._id,)
            ).fetchall()
            answers = connection.execute(
                "SELECT call_id, data, at, checksum FROM answers WHERE key = ?", (self._id,)
            ).fetchall()
        for n, kind, place, data, at, checksum in rows:
            self._last = _checksum(self._last, n, kind, place, data, at)
            if n != self._number + 1 or checksum != self._last:
                raise self._damaged(f"step {n} is not as it was written")
            self._number = n
            self.rows.append(Row(kind, place, data, at))
        for call_id, data, at, checksum in answers:
            if checksum != _checksum(self.epoch, call_id, data, at):
                raise self._damaged(f"the answer to {call_id!r} is not as it was written")
            self.answers[call_id] = json.loads(data)
        if self._number < noted:
            raise self._damaged(
                f"it has {self._number} of the {noted} steps that were written: it was cut, or its log was"
            )
        return self

    def append(self, rows: Sequence[NewRow], *, used: str = "") -> list[Row]:
        """Write rows, all or none; `used` is the id of a call whose answer is consumed."""
        at = time.time()
        written = [Row(kind, place, mask_known(_JSON.encode(data)), at) for kind, place, data in rows]
        with self.file.connection() as connection:
            with transaction(connection):
                key, number, last = self._id, self._number, self._last
                if key is None:
                    key = connection.execute(
                        "INSERT INTO keys (key, epoch, at) VALUES (?, ?, ?)", (self.key, self.epoch, at)
                    ).lastrowid
                    last = _checksum(self.key, key, self.epoch, at)
                for row in written:
                    number += 1
                    last = _checksum(last, number, row.kind, row.place, row.text, at)
                    values = (key, number, row.kind, row.place, row.text, at, last)
                    connection.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", values)
                if used:
                    connection.execute("DELETE FROM answers WHERE key = ? AND call_id = ?", (key, used))
            self._id, self._number, self._last = key, number, last
        self._counts.note(number)
        self.answers.pop(used, None)
        return written

    def answer(self, call_id: str, data: Any) -> None:
        """Keep an answer.

        Raises:
            UsageError: there is one.
        """
        at, text = time.time(), json.dumps(data)
        with self.file.connection() as connection:
            # The key may have been forgotten since it was read, and its number reused.
            written = connection.execute(
                "INSERT OR IGNORE INTO answers SELECT id, ?, ?, ?, ? FROM keys WHERE id = ? AND epoch = ?",
                (call_id, text, at, _checksum(self.epoch, call_id, text, at), self._id, self.epoch),
            ).rowcount
        if not written:
            raise UsageError(f"the call {call_id!r} of {self.key!r} has been answered.")

    def forget(self) -> bool:
        """Delete all rows and answers, damaged ones too; say whether there were any. Later rows have another epoch."""
        self._counts.forget()  # first: a number above the rows would look like a loss
        with self.file.connection() as connection, transaction(connection):
            of_key = connection.execute("SELECT id FROM keys WHERE key = ?", (self.key,)).fetchone()
            for statement in ("steps WHERE key", "answers WHERE key", "keys WHERE id"):
                connection.execute(f"DELETE FROM {statement} = ?", of_key or (-1,))  # noqa: S608
        self._begin_empty()
        return of_key is not None

    def _damaged(self, problem: str) -> CheckpointError:
        return CheckpointError(
            f"{self.file.shown} is damaged at {self.key!r}: {problem}. Nothing is asked and no tool runs, so that nothing "
            f"is done twice: restore a copy; or start over with SimpleLLMFunc.journal.forget(path, {self.key!r})."
        )


def hash_of(key: str) -> bytes:
    """Return the 16-byte hash of a key."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _checksum(*parts: Iterable[Any] | Any) -> bytes:
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


# --- numbers of steps ------------------------------------------------------------------------------------


@dataclass
class StepCounts:
    """The number of one key's steps, in a file that all keys share; each slot has 32 bytes, written at once.

    A number below the rows is harmless; one above them means that steps are lost.

    Attributes:
        path: of the file.
        key: hash of the key, 16 bytes.
        shown: what the journal is called in errors.
    """

    path: Path
    key: bytes
    shown: str
    _place: int | None = None

    def read(self) -> int:
        """Return the number of steps; 0 if the file has none.

        Raises:
            CheckpointError: the number is damaged.
        """
        try:
            slots = self.path.read_bytes()
        except OSError:
            return 0
        self._place = _find(slots, self.key)
        if self._place is None:
            return 0
        key, count, checksum = _SLOT.unpack_from(slots, self._place)
        if checksum != _crc(key, count):
            raise CheckpointError(
                f"{self.shown} is damaged: the number of steps in {self.path.name} is wrong. Restore a copy of that file; "
                "or remove it, if the journal itself is intact."
            )
        return int(count)

    def note(self, count: int) -> None:
        """Write the number of steps; on a full disk the earlier number stays."""
        with suppress(OSError):
            if self._place is not None:
                self._write(self._place, count)
                return
            with filelock.FileLock(self.path.with_suffix(".lock"), timeout=10.0, thread_local=False):
                slots = self.path.read_bytes() if self.path.exists() else b""
                found = _find(slots, self.key)
                place = len(slots) // _SLOT.size * _SLOT.size if found is None else found
                self._write(place, count)
            self._place = place

    def forget(self) -> None:
        """Set the number of steps to 0, if there is one."""
        self._place = _find(self.path.read_bytes() if self.path.exists() else b"", self.key)
        if self._place is not None:
            self.note(0)

    def _write(self, place: int, count: int) -> None:
        file = os.open(self.path, _FLAGS, 0o600)
        try:
            os.lseek(file, place, os.SEEK_SET)
            os.write(file, _SLOT.pack(self.key, count, _crc(self.key, count)))
        finally:
            os.close(file)


def _find(slots: bytes, key: bytes) -> int | None:
    place = slots.find(key)
    while place >= 0 and (place % _SLOT.size or place + _SLOT.size > len(slots)):
        place = slots.find(key, place + 1)
    return None if place < 0 else place


def _crc(key: bytes, count: int) -> int:
    return zlib.crc32(key + count.to_bytes(8, "little"))
