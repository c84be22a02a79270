"""The tables of a trace store, and the migrations of files of earlier versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import redact, redacted_cause
from SimpleLLMFunc.storage import Schema, SqliteFile, check_schema, is_damage, schema_of, transaction

APPLICATION_ID = 0x534C5452
"""In the header of our files: "SLTR"."""

_TEXT_INDEX = "CREATE VIRTUAL TABLE run_texts USING fts5 (text, tokenize = 'trigram')"
_TEXT_TABLE = "CREATE TABLE run_texts (text TEXT NOT NULL)"


def _add_text_index(connection: sqlite3.Connection) -> None:
    """Version 2: an index of three-character pieces for full-text search; it finds Chinese too."""
    try:
        connection.execute(_TEXT_INDEX)
    except sqlite3.OperationalError as error:
        # SQLite without FTS5, or older than 3.34: a table that is scanned.
        if "no such" not in str(error) and "tokenizer" not in str(error):
            raise
        connection.execute(_TEXT_TABLE)
    connection.execute(
        "INSERT INTO run_texts (rowid, text) "
        "SELECT id, function || char(10) || question || char(10) || answer_head || char(10) || error_text FROM runs"
    )


def _step(name: str) -> Callable[[sqlite3.Connection], None]:
    """Return the step whose statements are in a file; none of them holds a semicolon."""

    def step(connection: sqlite3.Connection) -> None:
        script = files("SimpleLLMFunc.observability.store").joinpath("migrations", f"{name}.sql").read_text("utf-8")
        for statement in script.split(";"):
            connection.execute(statement)

    return step


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    *(_step("1_first"), _add_text_index, _step("3_fewer_indexes"), _step("4_headers"), _step("5_cache_writes")),
    *(_step("6_marks_and_wide_index"), _step("7_restarts")),
)
"""The step to each version from the one before; the first starts with an empty file."""

SCHEMA_VERSION = len(MIGRATIONS)
"""Version of the files that this code writes; `PRAGMA user_version` in the file."""


class TraceFile:
    """A trace store's file, brought to this version when it is opened.

    Args:
        path: of the file.
        create: make the file if it does not exist.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self._create = create
        self._ready: sqlite3.Connection | None = None
        self._file = SqliteFile(path, application_id=APPLICATION_ID, tables=(), unusable=self.unusable)

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; no other thread has it meanwhile.

        Raises:
            ConfigError: there is no file, it cannot be opened, is not a trace store, or is of a later version.
            sqlite3.Error: it is damaged, locked, or the disk is full.
        """
        with self._file.lock:
            with suppress(OSError):  # one that cannot be looked for is told of when it cannot be opened
                if not self._create and not self.path.exists():
                    raise ConfigError(
                        f"there is no trace store at {redact(str(self.path))!r}. Runs are kept where "
                        "SIMPLELLMFUNC_TRACE=path or watching(TraceStore(path)) says so."
                    )
            connection = self._file.connection()
            if connection is not self._ready:
                self._bring_up_to_date(connection)
                self._ready = connection
            yield connection

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._file.lock:
            self._ready = None
            self._file.close()

    def unusable(self, reason: str) -> ConfigError:
        """Return the error for a file that cannot be used."""
        return ConfigError(
            f"{redact(str(self.path))!r} cannot be used as a trace store: {redact(reason)}. Give the path of another file."
        )

    def explained(self, error: sqlite3.Error | ValueError) -> ConfigError:
        """Return our error for one of SQLite's, or of Python's for a number that is damaged."""
        is_damaged = isinstance(error, ValueError) or is_damage(error)
        made = self.unusable(f"the file is damaged ({error})" if is_damaged else str(error))
        made.__cause__ = redacted_cause(error)
        return made

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        with transaction(connection):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                raise self.unusable(
                    f"it was made by a newer SimpleLLMFunc (schema {version}, this one knows up to {SCHEMA_VERSION}); "
                    "a SimpleLLMFunc as new as that reads it"
                )
            check_schema(connection, _schemas(version), self.unusable)
            for step in MIGRATIONS[version:]:
                step(connection)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("PRAGMA foreign_keys = ON")


@lru_cache
def _schemas(version: int) -> Sequence[Schema]:
    """Return the schemas that a file of a version may have: with full-text index, or without where SQLite has no FTS5."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for step in MIGRATIONS[:version]:
            step(connection)
        made = schema_of(connection)
    index = {row for row in made if row[1] == "run_texts"}
    others = {("table", "run_texts", "run_texts", statement) for statement in (_TEXT_INDEX, _TEXT_TABLE)}
    return [(made - index) | {other} for other in others] if index else [made]


def has_text_index(connection: sqlite3.Connection) -> bool:
    """Say whether the file has a full-text index."""
    (statement,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'run_texts'").fetchone()
    return "fts5" in statement
