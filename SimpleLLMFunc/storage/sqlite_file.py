"""One SQLite file of ours: opened at first use, marked, shared by threads and processes, safe under fork."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.logger import redacted_cause
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child

_HEADER = b"SQLite format 3\x00"
BUSY_SECONDS = 5.0
"""How long a writer waits for another one."""

_PAUSE_SECONDS = 0.005

_LARGEST_LOG = 16 * 1024 * 1024
"""Bytes that the log keeps on the disk after its content has gone into the file."""

_abandoned: list[sqlite3.Connection] = []
"""Connections of a parent process: a child must neither use nor close them, so it keeps them as they are."""


Schema: TypeAlias = frozenset[tuple[str, str, str, str]]
"""Type, name, table and statement of all that is defined in a file."""


class SqliteFile:
    """A database in WAL mode; nothing is opened before the first use.

    Args:
        path: of the file, made with its folders; None for one in memory, which ends with this object.
        application_id: 32 bits in the header by which our files of this kind are known.
        tables: statements that make a new file; with none of them, the caller makes and checks what is in it.
        older: statements that made the files of earlier versions.
        unusable: makes the error for a file that cannot be used, from the reason.

    Attributes:
        lock: every user of the connection holds it.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        application_id: int,
        tables: Sequence[str],
        older: Sequence[Sequence[str]] = (),
        unusable: Callable[[str], SimpleLLMFuncError],
    ) -> None:
        self.path = path
        self.lock = ForkSafeLock(forks_wait=True)  # SQLite locks more, which a child would find locked
        self._application_id = application_id
        self._tables = tables
        self._layouts = (tables, *older)
        self._unusable = unusable
        self._held = _Held()
        renew_in_child(self)
        # Also at the end of the interpreter, and with the last reference to this object.
        weakref.finalize(self, self._held.close)

    def connection(self) -> sqlite3.Connection:
        """Return the connection; opened again where the file is another one by now. Hold `lock` around its use.

        Raises:
            SimpleLLMFuncError: what `unusable` makes of it: it cannot be opened, or another program wrote it.
            sqlite3.Error: it is damaged, locked, or the disk is full.
        """
        path = self.path
        if self._held.connection is not None and (path is None or self._held.file == _identity_of(path)):
            return self._held.connection
        self.close()
        if path is None:
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            if self._make(path) == 1:
                # SQLite takes it for an empty one, and would overwrite the user's byte.
                raise self._unusable("it is not an SQLite database")
            connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
            )
        try:
            self._set_up(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, UnicodeDecodeError):  # SQLite quotes what stands there instead of a statement
                error = sqlite3.DatabaseError("its schema cannot be read")
                error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            if isinstance(error, sqlite3.DatabaseError) and is_damage(error) and not self.is_ours():
                raise self._unusable("it is not an SQLite database") from None
            raise error from None
        self._held.connection, self._held.file = connection, _identity_of(path) if path else None
        return connection

    def _make(self, path: Path) -> int:
        """Make the file and its folders where they are not there; return its size, or raise what `unusable` makes."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The content may be private; SQLite gives its other files the same rights.
            # One that is there is not opened: closing it again would give up the locks that SQLite has on it for other
            # connections of this process.
            if not path.exists():
                with suppress(FileExistsError):
                    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            elif path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            elif not os.access(path, os.R_OK | os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return path.stat().st_size
        except (OSError, ValueError) as error:
            failure = self._unusable(f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}")
            cause = redacted_cause(error)
        # Not inside the block above: the original would stay as the context, and its path may hold a secret.
        raise failure from cause

    def close(self) -> None:
        """Close the file; the next use opens it again. One in memory is gone."""
        with self.lock:
            self._held.close()

    @property
    def is_replaced(self) -> bool:
        """Whether the file that was opened is gone, or is another one by now."""
        held = self._held.file
        return held is not None and self.path is not None and _identity_of(self.path) != held

    def is_ours(self) -> bool:
        """Whether the head of the file says that it is of this kind."""
        if self.path is None:
            return True
        try:
            with self.path.open("rb") as file:
                head = file.read(72)
        except OSError:
            return False
        return head.startswith(_HEADER) and head[68:72] == self._application_id.to_bytes(4, "big")

    def renew_in_child(self) -> None:
        """Leave the parent's connection alone; the child opens its own."""
        if self._held.connection is not None:
            _abandoned.append(self._held.connection)
            self._held.connection = None

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # Written to the file itself before the log begins: a reader of the head sees that the file is ours.
        with transaction(connection):
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if mark != self._application_id and (mark or tables):
                raise self._unusable("it is the database of another program")
            if not tables:
                connection.execute(f"PRAGMA application_id = {self._application_id}")
                for statement in self._tables:
                    connection.execute(statement)
            elif self._tables:
                check_schema(connection, [_made_by(statements) for statements in self._layouts], self._unusable)
        _begin_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")


def check_schema(
    connection: sqlite3.Connection, known: Sequence[Schema], unusable: Callable[[str], SimpleLLMFuncError]
) -> None:
    """Return if a file holds what we made, and nothing that would run by itself, such as a trigger or a view.

    Raises:
        SimpleLLMFuncError: what `unusable` makes of it.
    """
    found = schema_of(connection)
    if found in known:
        return
    other = min((found ^ each for each in known), key=len)
    names = sorted({f"{kind} {name}" for kind, name, *_ in other})
    raise unusable(f"its tables, indexes, triggers or views are not those that we made ({', '.join(names[:5])})")


def _made_by(statements: Sequence[str]) -> Schema:
    """Return the schema that some statements make."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        return schema_of(connection)


def schema_of(connection: sqlite3.Connection) -> Schema:
    """Return what is defined in a file, less what SQLite itself adds to it."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    added = {
        f"{name}_{part}"
        for _, name, _, sql in rows
        if str(sql).startswith("CREATE VIRTUAL TABLE")
        for part in ("data", "idx", "content", "docsize", "config")
    }
    return frozenset(
        (str(kind), str(name), str(table), " ".join(str(sql).split()))
        for kind, name, table, sql in rows
        if not (kind in {"table", "index"} and (name in added or str(name).startswith("sqlite_")))
    )


def _begin_log(connection: sqlite3.Connection) -> None:
    """Have changes go into a log; who opens a new file at the same moment is waited for.

    SQLite refuses this step at once if another connection holds a lock; `timeout` does not apply to it.
    """
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


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
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write everything inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):  # some errors have rolled back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the used bytes of the file; pages that are free will be used again."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def is_damage(error: Exception) -> bool:
    """Say whether SQLite found the file itself broken, or no database at all."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from one that replaces it; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
