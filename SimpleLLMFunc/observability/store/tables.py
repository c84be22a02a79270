"""The tables of a trace store, and the migrations of files of earlier versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import redact, redacted_cause
from SimpleLLMFunc.storage import Schema, SqliteFile, check_schema, is_damage, schema_of, transaction

APPLICATION_ID = 0x534C5452
"""In the header of our files: "SLTR"."""

_FIRST = """
CREATE TABLE counter ( seq INTEGER NOT NULL );
INSERT INTO counter (seq) VALUES (0);
CREATE TABLE processes ( id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, seen REAL NOT NULL );
CREATE TABLE versions (
    function TEXT NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL, docstring TEXT NOT NULL,
    signature TEXT NOT NULL, place TEXT NOT NULL, schema, tools, first_seen REAL NOT NULL,
    PRIMARY KEY (function, version)
);
CREATE TABLE prompts (
    id INTEGER PRIMARY KEY, function TEXT NOT NULL, version TEXT NOT NULL, digest TEXT NOT NULL,
    message NOT NULL, first_seen REAL NOT NULL, UNIQUE (function, version, digest)
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL, process INTEGER NOT NULL, trace_id TEXT NOT NULL,
    parent TEXT NOT NULL, parent_call TEXT NOT NULL, function TEXT NOT NULL, version TEXT NOT NULL,
    kind TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL, session TEXT NOT NULL, user TEXT NOT NULL,
    status TEXT NOT NULL, error TEXT NOT NULL, error_text TEXT NOT NULL, started REAL NOT NULL, seconds REAL,
    first_chunk_seconds REAL, turns INTEGER NOT NULL, failed_tries INTEGER NOT NULL, reasks INTEGER NOT NULL,
    repairs INTEGER NOT NULL, tool_calls INTEGER NOT NULL, failed_tool_calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL, cost REAL, cached INTEGER NOT NULL, streamed INTEGER NOT NULL,
    finish_reason TEXT NOT NULL, output_mode TEXT NOT NULL, question TEXT NOT NULL, answer_head TEXT NOT NULL,
    arguments, answer, value, incomplete INTEGER NOT NULL
);
CREATE UNIQUE INDEX runs_by_seq ON runs (seq);
CREATE INDEX runs_by_time ON runs (started);
CREATE INDEX runs_by_function ON runs (function, started);
CREATE INDEX runs_by_function_version ON runs (function, version, started, status);
CREATE INDEX runs_by_version ON runs (version, started);
CREATE INDEX runs_by_model ON runs (model, started);
CREATE INDEX runs_by_status ON runs (status, started);
CREATE INDEX runs_by_parent ON runs (parent, started);
CREATE INDEX runs_by_session ON runs (session, started);
CREATE INDEX runs_by_trace ON runs (trace_id);
CREATE TABLE turns (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    started REAL NOT NULL, seconds REAL, first_chunk_seconds REAL, model TEXT NOT NULL, provider TEXT NOT NULL,
    url TEXT NOT NULL, request, reply, finish_reason TEXT NOT NULL, tries INTEGER NOT NULL,
    cached INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL, cost REAL, PRIMARY KEY (run, number)
);
CREATE TABLE tries (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    at REAL NOT NULL, error TEXT NOT NULL, text TEXT NOT NULL, status INTEGER, pause REAL, model TEXT NOT NULL,
    next_model TEXT NOT NULL, PRIMARY KEY (run, number)
);
CREATE TABLE reviews (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    at REAL NOT NULL, accepted INTEGER NOT NULL, violations, repairs, text, PRIMARY KEY (run, number)
);
CREATE TABLE tool_calls (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    call_id TEXT NOT NULL, name TEXT NOT NULL, started REAL NOT NULL, seconds REAL, arguments, content,
    failed INTEGER NOT NULL, PRIMARY KEY (run, number)
);
CREATE TABLE messages (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    message, prompt INTEGER, PRIMARY KEY (run, number)
)
"""


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


_FEWER_INDEXES = """
DROP INDEX runs_by_function_version;
DROP INDEX runs_by_version;
DROP INDEX runs_by_status;
DROP INDEX runs_by_parent;
DROP INDEX runs_by_session;
CREATE INDEX runs_by_function_version ON runs (function, version, started, id, status);
CREATE INDEX runs_by_status ON runs (status, started) WHERE status != 'ok';
CREATE INDEX runs_by_parent ON runs (parent, started) WHERE parent != '';
CREATE INDEX runs_by_session ON runs (session, started) WHERE session != ''
"""
"""Version 3: partial indexes, since each index costs every run a write; see `query.conditions` for their conditions."""

_HEADERS = "ALTER TABLE turns ADD COLUMN headers"
"""Version 4: a turn has request headers."""

_CACHE_WRITES = """
ALTER TABLE runs ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0
"""
"""Version 5: tokens written into the service's cache are counted; 0 in rows of earlier versions."""

_WIDE_INDEX = """
DROP INDEX runs_by_time;
DROP INDEX runs_by_function;
DROP INDEX runs_by_model;
DROP INDEX runs_by_status;
CREATE INDEX runs_by_time ON runs (started, id, function, version, model, provider, kind, status, error, seconds,
    first_chunk_seconds, cost, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cache_write_tokens, reasks,
    repairs, tool_calls, failed_tool_calls, failed_tries, cached, session, user);
CREATE TABLE marks (run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, thumb TEXT NOT NULL, score REAL,
    comment TEXT NOT NULL, tags TEXT NOT NULL, at REAL NOT NULL)
"""
"""Version 6: runs have marks; one index holds all columns that lists sort, filter and sum by: see `query.RUNS`."""

_RESTARTS = "ALTER TABLE runs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0"
"""Version 7: a run in a `durable` block stays one run when the block is restarted."""


def _step(script: str) -> Callable[[sqlite3.Connection], None]:
    """Return a step of statements, none of which holds a semicolon."""

    def step(connection: sqlite3.Connection) -> None:
        for statement in script.split(";"):
            connection.execute(statement)

    return step


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    *(_step(_FIRST), _add_text_index, _step(_FEWER_INDEXES), _step(_HEADERS), _step(_CACHE_WRITES)),
    *(_step(_WIDE_INDEX), _step(_RESTARTS)),
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

    def explained(self, error: sqlite3.Error) -> ConfigError:
        """Return our error for one of SQLite's."""
        is_damaged = isinstance(error, sqlite3.DatabaseError) and is_damage(error)
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
