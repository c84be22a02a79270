"""Writing a trace store: batches of rows in one transaction each, and old runs let go."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from SimpleLLMFunc.observability.store.open_runs import OpenRun, Prompt
from SimpleLLMFunc.observability.store.tables import TraceFile, has_text_index
from SimpleLLMFunc.storage import transaction

HEARTBEAT = 10.0
"""Seconds; how often a process with runs under way says that it is there."""

_TIDY_EVERY = 60.0
"""Seconds between looks at the age and the size of what is kept."""

_STEP = 0.1
"""The part of all runs that goes beyond what is too much, so that it is not too much again at once."""

_ROUNDS = 5


class TraceWriter:
    """Puts runs into the file; used by one thread at a time.

    Args:
        file: the store's.
        max_age: seconds that a run is kept; None for ever.
        max_bytes: of the file, about; beyond that the oldest runs go. None for no limit.
    """

    def __init__(self, file: TraceFile, *, max_age: float | None, max_bytes: int | None) -> None:
        self._file = file
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._process: int | None = None
        self._tidied = float("-inf")

    def write(self, runs: Iterable[OpenRun]) -> None:
        """Write what is new of these runs; all of it, or nothing.

        Raises:
            ConfigError: the file cannot be used.
            sqlite3.Error: the disk is full, say.
        """
        runs = [run for run in runs if run.is_dirty]
        with self._file.opened() as connection:
            with transaction(connection):
                process = self._present(connection)
                seq = next_seq(connection, len(runs))
                ids = [_put_run(connection, run, process, seq + number) for number, run in enumerate(runs)]
                _put_versions(connection, runs)
                _put_rows(connection, runs, ids)
                _put_texts(connection, runs, ids)
            # Only now is it certain.
            self._process = process
            for run, number in zip(runs, ids, strict=True):
                run.id = number
                run.is_dirty = False
                run.rows.clear()
                run.version = None
            if time.monotonic() - self._tidied >= _TIDY_EVERY:
                self._tidied = time.monotonic()
                self.tidy(connection)

    def begin_anew(self) -> None:
        """Be another process, as after a fork."""
        self._process = None

    def tidy(self, connection: sqlite3.Connection) -> int:
        """Let go of runs that are too old, and of the oldest while the file is too large; return how many went."""
        gone = 0
        if self._max_age is not None:
            gone += delete_runs(connection, "started < ?", (time.time() - self._max_age,))
        if self._max_bytes is not None:
            gone += shrink(connection, self._max_bytes)
        return gone

    # --- rows --------------------------------------------------------------------------------------------

    def _present(self, connection: sqlite3.Connection) -> int:
        """Say that this process is there, and return its number."""
        now = time.time()
        if self._process is not None:
            changed = connection.execute("UPDATE processes SET seen = ? WHERE id = ?", (now, self._process)).rowcount
            if changed:
                return self._process
        name = f"{platform.node()}:{os.getpid()}"
        added = connection.execute("INSERT INTO processes (name, seen) VALUES (?, ?)", (name, now)).lastrowid
        assert added is not None, "a row was inserted"
        return added


def shrink(connection: sqlite3.Connection, max_bytes: int) -> int:
    """Let the oldest runs go until the file has some room again; return how many went."""
    gone = 0
    for _ in range(_ROUNDS):
        used = used_bytes(connection)
        if used <= max_bytes:
            break
        (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        part = max(1 - max_bytes / used, 0.0) + _STEP
        deleted = delete_runs(
            connection,
            "id IN (SELECT id FROM runs WHERE status != 'running' ORDER BY started LIMIT ?)",
            (max(int(count * part), 1),),
        )
        if has_text_index(connection):
            # What was deleted leaves marks in the index, which go when it is put together anew.
            connection.execute("INSERT INTO run_texts (run_texts) VALUES ('optimize')")
        gone += deleted
        if not deleted:
            break
    return gone


def delete_runs(connection: sqlite3.Connection, condition: str, values: tuple[Any, ...]) -> int:
    """Delete the runs for which `condition` holds, with all that belongs to them; return how many there were."""
    with transaction(connection):
        connection.execute(
            f"DELETE FROM run_texts WHERE rowid IN (SELECT id FROM runs WHERE {condition})",  # noqa: S608
            values,
        )
        deleted = connection.execute(f"DELETE FROM runs WHERE {condition}", values).rowcount  # noqa: S608
        if deleted:
            connection.execute(
                "DELETE FROM versions WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.function = versions.function "
                "AND runs.version = versions.version)"
            )
            connection.execute(
                "DELETE FROM prompts WHERE NOT EXISTS (SELECT 1 FROM versions WHERE "
                "versions.function = prompts.function AND versions.version = prompts.version)"
            )
    return deleted


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return how much of the file is in use."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def next_seq(connection: sqlite3.Connection, count: int) -> int:
    """Take `count` numbers of changes, and return the first."""
    (last,) = connection.execute("UPDATE counter SET seq = seq + ? RETURNING seq", (count,)).fetchone()
    return int(last) - count + 1


def _put_run(connection: sqlite3.Connection, run: OpenRun, process: int, seq: int) -> int:
    """Write the row of a run, and return its number; a run that goes on after a crash has one already."""
    if run.id is None and run.columns["restarts"]:
        before = connection.execute(
            "SELECT id, started FROM runs WHERE trace_id = ? ORDER BY id DESC", (run.columns["trace_id"],)
        ).fetchone()
        if before is not None:
            run.id, run.columns["started"] = before
    names = (*run.columns, "seq", "process")
    values = (*run.columns.values(), seq, process)
    if run.id is not None and connection.execute(_update(names), (*values, run.id)).rowcount:
        return run.id
    added = connection.execute(_insert("runs", names), values).lastrowid
    assert added is not None, "a row was inserted"
    return added


def _put_versions(connection: sqlite3.Connection, runs: list[OpenRun]) -> None:
    versions: dict[tuple[str, str], dict[str, Any]] = {}
    for run in runs:
        if run.version is not None:
            versions.setdefault((run.version["function"], run.version["version"]), run.version)
    for row in versions.values():
        connection.execute(_insert("versions", tuple(row), "OR IGNORE"), tuple(row.values()))


def _put_rows(connection: sqlite3.Connection, runs: list[OpenRun], ids: list[int]) -> None:
    """Write what belongs to the runs, all rows of one table at once."""
    tables: dict[tuple[str, tuple[str, ...]], list[tuple[Any, ...]]] = {}
    prompts: dict[tuple[str, str, str], int] = {}
    for run, number in zip(runs, ids, strict=True):
        for (table, _), row in run.rows.items():
            prompt = row.get("prompt")
            cells = row | {"prompt": _prompt(connection, run.columns, prompt, prompts)} if prompt is not None else row
            tables.setdefault((table, tuple(row)), []).append((number, *cells.values()))
    for (table, names), rows in tables.items():
        connection.executemany(_insert(table, ("run", *names), "OR REPLACE"), rows)


def _put_texts(connection: sqlite3.Connection, runs: list[OpenRun], ids: list[int]) -> None:
    """Write what can be searched for: when a run is new, and when it ends."""
    told = [(number, run) for run, number in zip(runs, ids, strict=True) if run.id is None or run.has_ended]
    # The number of a new row was never used before: only a run that was written before has a text to lose.
    connection.executemany("DELETE FROM run_texts WHERE rowid = ?", [(each,) for each, run in told if run.id == each])
    connection.executemany(
        "INSERT INTO run_texts (rowid, text) VALUES (?, ?)", [(number, run.text) for number, run in told]
    )


@lru_cache(maxsize=64)
def _update(names: tuple[str, ...]) -> str:
    return f"UPDATE runs SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?"  # noqa: S608


@lru_cache(maxsize=64)
def _insert(table: str, names: tuple[str, ...], conflict: str = "") -> str:
    places = ", ".join("?" * len(names))
    return f"INSERT {conflict} INTO {table} ({', '.join(names)}) VALUES ({places})"  # noqa: S608


def _prompt(
    connection: sqlite3.Connection, run: dict[str, Any], prompt: Prompt, known: dict[tuple[str, str, str], int]
) -> int:
    """Return the number of a prompt, kept now if it is new; `known` are those of this batch."""
    key = (run["function"], run["version"], prompt.digest)
    if key not in known:
        found = "SELECT id FROM prompts WHERE function = ? AND version = ? AND digest = ?"
        row = connection.execute(found, key).fetchone()
        if row is None:
            connection.execute(
                "INSERT INTO prompts (function, version, digest, message, first_seen) VALUES (?, ?, ?, ?, ?)",
                (*key, prompt.stored, run["started"]),
            )
            row = connection.execute(found, key).fetchone()
        known[key] = int(row[0])
    return known[key]
