"""One SQLite file of answers: what `CachedLLM` writes and reads; synchronous, for worker threads.

A file that cannot be read any more is set aside and a new one begun, but only a file that was ours: anything else
at that path is somebody's property.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger.records import push_warning
from SimpleLLMFunc.sync import ForkSafeLock, renew_in_child

__all__ = ["AnswerStore"]

T = TypeVar("T")

_APPLICATION_ID = 0x534C4346
"""In the header of our files: "SLCF"."""

_HEADER = b"SQLite format 3\x00"
_BUSY_SECONDS = 5.0
_LARGEST_SHARE = 4
"""An answer that takes more than this part of the whole file is not kept: it would push out all others."""

_USED_EVERY = 3600.0
"""Seconds; how exactly it is known when an answer was last used. Writing it each time would make reads writes."""

_LARGEST_LOG = 16 * 1024 * 1024
"""Bytes that the log keeps on the disk after its content has gone into the file."""

_TABLES = (
    """
    CREATE TABLE answers (
        key BLOB PRIMARY KEY,
        answer BLOB NOT NULL,
        checksum BLOB NOT NULL,
        made REAL NOT NULL,
        used REAL NOT NULL
    )
    """,
    "CREATE INDEX answers_by_use ON answers (used)",
    "CREATE INDEX answers_by_age ON answers (made)",
)

_abandoned: list[sqlite3.Connection] = []
"""Connections of a parent process: a child must neither use nor close them, so it keeps them as they are."""


class AnswerStore:
    """Answers by key, in a file that several threads and processes share.

    Nothing is opened before the first use. What goes wrong later with the file costs the answer its place in it and
    a warning, never the call.

    Args:
        path: of the file; made with its folders at first use.
        max_bytes: of the file, about; beyond that the answers that were not used for longest go.
        max_age: seconds after which an answer does not count any more; None for ever.
        clock: seconds since the epoch; for tests.
    """

    def __init__(
        self, path: Path, max_bytes: int, max_age: float | None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.max_age = max_age
        self._clock = clock
        self._lock = ForkSafeLock()
        self._held = _Held()
        self._problem = ""
        renew_in_child(self)
        # Also at the end of the interpreter, and when nobody needs the store any more.
        weakref.finalize(self, self._held.close)

    def get(self, key: bytes) -> bytes | None:
        """Return the answer, None where there is none.

        Raises:
            ConfigError: the file cannot be opened, or is none of ours.
        """
        return self._told("read", lambda: self._fresh(key))

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer, and let old ones go.

        Raises:
            ConfigError: the file cannot be opened, or is none of ours.
        """
        if len(answer) > self.max_bytes // _LARGEST_SHARE:
            return
        self._told("written", lambda: self._insert(key, answer))

    def clear(self) -> None:
        """Let all answers go."""
        self._told("emptied", lambda: self._open().execute("DELETE FROM answers"))

    def __len__(self) -> int:
        return self._told("read", lambda: int(self._open().execute("SELECT count(*) FROM answers").fetchone()[0])) or 0

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._held.close()

    def renew_in_child(self) -> None:
        """Leave the parent's connection alone; the child opens its own."""
        if self._held.connection is not None:
            _abandoned.append(self._held.connection)
            self._held.connection = None

    # --- the rows ----------------------------------------------------------------------------------------

    def _fresh(self, key: bytes) -> bytes | None:
        """Return the answer if it is neither too old nor damaged."""
        connection = self._open()
        row = connection.execute("SELECT answer, checksum, made, used FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        answer, checksum, made, used = row
        now = self._clock()
        if self.max_age is not None and now - made >= self.max_age:
            return None
        if not isinstance(answer, bytes) or checksum != _checksum(key, answer):
            push_warning(f"{self.path}: an answer in the cache is damaged, so it is asked for again.")
            connection.execute("DELETE FROM answers WHERE key = ?", (key,))
            return None
        if now - used > _USED_EVERY:
            with suppress(sqlite3.OperationalError):  # somebody else is writing: the answer is there all the same
                connection.execute("UPDATE answers SET used = ? WHERE key = ?", (now, key))
        return answer

    def _insert(self, key: bytes, answer: bytes) -> None:
        now = self._clock()
        connection = self._open()
        with _transaction(connection):
            connection.execute(
                "INSERT OR REPLACE INTO answers (key, answer, checksum, made, used) VALUES (?, ?, ?, ?, ?)",
                (key, answer, _checksum(key, answer), now, now),
            )
            if self.max_age is not None:
                connection.execute("DELETE FROM answers WHERE made <= ?", (now - self.max_age,))
            while self._bytes(connection) > self.max_bytes and self._let_go(connection, key):
                pass

    def _let_go(self, connection: sqlite3.Connection, newest: bytes) -> bool:
        """Delete the tenth of the answers that was not used for longest; return whether there was one."""
        (count,) = connection.execute("SELECT count(*) FROM answers").fetchone()
        deleted = connection.execute(
            "DELETE FROM answers WHERE key IN (SELECT key FROM answers WHERE key != ? ORDER BY used LIMIT ?)",
            (newest, count // 10 + 1),
        ).rowcount
        return bool(deleted > 0)

    @staticmethod
    def _bytes(connection: sqlite3.Connection) -> int:
        """Return what the answers take; pages that are free will be used again."""
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    # --- the file ----------------------------------------------------------------------------------------

    def _told(self, what: str, work: Callable[[], T]) -> T | None:
        """Return what `work` gives; None, and a warning (the same one not again and again), where SQLite fails."""
        with self._lock:
            try:
                return self._tried(work)
            except (sqlite3.Error, OSError) as error:
                problem = f"{type(error).__name__}: {error}"
        if problem != self._problem:
            self._problem = problem
            push_warning(f"{self.path}: the cache could not be {what}, so calls go on without it: {problem}")
        return None

    def _tried(self, work: Callable[[], T]) -> T:
        """Return what `work` gives; where the file is damaged, it is done once more on a new one."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            damage = error
        self._set_aside(damage)
        return work()

    def _open(self) -> sqlite3.Connection:
        """Return the connection; opened again where the file is another one by now.

        Raises:
            ConfigError: it cannot be opened, or is none of ours.
        """
        if self._held.connection is not None and self._held.file == _identity(self.path):
            return self._held.connection
        self.close()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Answers may be nobody else's business; SQLite gives its other files the same rights.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise self._unusable(f"{type(error).__name__}: {error.strerror or error}") from error
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
        )
        try:
            self._set_up(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.DatabaseError) and _is_damage(error) and not self._is_ours():
                raise self._unusable("it is no file of a cache") from None
            raise
        self._held.connection, self._held.file = connection, _identity(self.path)
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # The mark and the tables stand in the file itself before the log begins: who reads the head sees whose it is.
        with _transaction(connection):
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if mark != _APPLICATION_ID and (mark or tables):
                raise self._unusable("it is the database of another program")
            if not tables:
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                for statement in _TABLES:
                    connection.execute(statement)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")

    def _is_ours(self) -> bool:
        """Whether the head of the file says that it is a cache."""
        try:
            with self.path.open("rb") as file:
                head = file.read(72)
        except OSError:
            return False
        return head.startswith(_HEADER) and head[68:72] == _APPLICATION_ID.to_bytes(4, "big")

    def _set_aside(self, damage: sqlite3.DatabaseError) -> None:
        """Rename a damaged file of ours, so that a new one can be begun.

        Raises:
            ConfigError: it is none of ours.
        """
        self.close()
        if not self._is_ours():
            raise self._unusable("it is no file of a cache") from damage
        name = f"{self.path.name}.damaged-{time.time_ns()}"
        # The log first: a new file must not meet the log of the old one.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + suffix).replace(self.path.with_name(name + suffix))
        push_warning(f"{self.path}: the cache is damaged ({damage}). It is now called {name}, and a new one is begun.")

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(f"the cache {str(self.path)!r} cannot be used: {why}. Give CachedLLM another path.")


@dataclass(slots=True)
class _Held:
    """An open connection, and the file that it leads to."""

    connection: sqlite3.Connection | None = None
    file: tuple[int, int] | None = None

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            with suppress(sqlite3.Error):  # a damaged file is closed all the same
                connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):  # some errors have rolled back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _checksum(key: bytes, answer: bytes) -> bytes:
    return hashlib.blake2b(answer, key=key, digest_size=8).digest()
