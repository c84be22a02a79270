"""One SQLite file of answers: what `CachedLLM` writes and reads; synchronous, for worker threads.

A file that cannot be read any more is set aside and a new one begun, but only a file that was ours: anything else
at that path belongs to the user.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.storage import SqliteFile, checksum_of, is_damage, transaction, used_bytes

T = TypeVar("T")

_APPLICATION_ID = 0x534C4346
"""In the header of our files: "SLCF"."""

_USED_EVERY = 3600.0
"""Seconds; how exactly it is known when an answer was last used. Writing it each time would make reads writes."""

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
        self._file = SqliteFile(path, application_id=_APPLICATION_ID, tables=_TABLES, unusable=self._unusable)
        self._problem = ""

    def get(self, key: bytes) -> bytes | None:
        """Return the answer, None for an unknown key.

        Raises:
            ConfigError: the file cannot be opened, or is not a cache of ours.
        """
        return self._told("read", lambda: self._fresh(key))

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer, and let old ones go.

        Raises:
            ConfigError: the file cannot be opened, or is not a cache of ours.
        """
        self._told("written", lambda: self._insert(key, answer))

    def put_all(self, answers: Mapping[bytes, bytes]) -> None:
        """Keep several answers; raises what `put` does."""
        for key, answer in answers.items():
            self.put(key, answer)

    def clear(self) -> None:
        """Let all answers go."""
        self._told("emptied", lambda: self._file.connection().execute("DELETE FROM answers"))

    def __len__(self) -> int:
        return self._told("read", lambda: _count(self._file.connection())) or 0

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.close()

    # --- the rows ----------------------------------------------------------------------------------------

    def _fresh(self, key: bytes) -> bytes | None:
        """Return the answer if it is neither too old nor damaged."""
        connection = self._file.connection()
        row = connection.execute("SELECT answer, checksum, made, used FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        answer, checksum, made, used = row
        now = self._clock()
        if self.max_age is not None and now - made >= self.max_age:
            return None
        if not isinstance(answer, bytes) or checksum != checksum_of(key, answer):
            push_warning(f"{self.path}: an answer in the cache is damaged, so it is asked for again.")
            connection.execute("DELETE FROM answers WHERE key = ?", (key,))
            return None
        if now - used > _USED_EVERY:
            with suppress(sqlite3.OperationalError):  # another process is writing: the answer is good all the same
                connection.execute("UPDATE answers SET used = ? WHERE key = ?", (now, key))
        return answer

    def _insert(self, key: bytes, answer: bytes) -> None:
        now = self._clock()
        connection = self._file.connection()
        with transaction(connection):
            connection.execute(
                "INSERT OR REPLACE INTO answers (key, answer, checksum, made, used) VALUES (?, ?, ?, ?, ?)",
                (key, answer, checksum_of(key, answer), now, now),
            )
            if self.max_age is not None:
                connection.execute("DELETE FROM answers WHERE made <= ?", (now - self.max_age,))
            while used_bytes(connection) > self.max_bytes and self._let_go(connection, key):
                pass

    def _let_go(self, connection: sqlite3.Connection, newest: bytes) -> bool:
        """Delete the tenth of the answers that was not used for longest; return whether there was one."""
        deleted = connection.execute(
            "DELETE FROM answers WHERE key IN (SELECT key FROM answers WHERE key != ? ORDER BY used LIMIT ?)",
            (newest, _count(connection) // 10 + 1),
        ).rowcount
        return bool(deleted > 0)

    # --- the file ----------------------------------------------------------------------------------------

    def _told(self, what: str, work: Callable[[], T]) -> T | None:
        """Return what `work` gives, done once more on a new file where this one is damaged.

        Where SQLite fails otherwise: None, and a warning (the same one not again and again).
        """
        with self._file.lock:
            try:
                try:
                    return work()
                except sqlite3.DatabaseError as error:
                    if not is_damage(error):
                        raise
                    self._set_aside(error)
                    return work()
            except (sqlite3.Error, OSError) as error:
                problem = f"{type(error).__name__}: {error}"
        if problem != self._problem:
            self._problem = problem
            push_warning(f"{self.path}: the cache could not be {what}, so calls go on without it: {problem}")
        return None

    def _set_aside(self, damage: sqlite3.DatabaseError) -> None:
        """Rename a damaged file of ours, so that a new one can be begun.

        Raises:
            ConfigError: it is not a cache of ours.
        """
        self.close()
        if not self._file.is_ours():
            raise self._unusable("it is not an SQLite database") from damage
        name = f"{self.path.name}.damaged-{time.time_ns()}"
        # The log first: a new file must not meet the log of the old one.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + suffix).replace(self.path.with_name(name + suffix))
        push_warning(f"{self.path}: the cache is damaged ({damage}). It is now called {name}, and a new one is begun.")

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(f"the cache {str(self.path)!r} cannot be used: {why}. Give CachedLLM another path.")


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])
