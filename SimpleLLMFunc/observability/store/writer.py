"""Writing a trace store: one transaction for each batch of rows; deleting old runs."""

from __future__ import annotations

import hashlib
import os
import platform
import sqlite3
import time
from collections.abc import Iterable
from typing import Any

from SimpleLLMFunc.observability.store.tables import TraceFile, has_text_index
from SimpleLLMFunc.observability.store.writer_runs import OpenRun, Row
from SimpleLLMFunc.storage import transaction, used_bytes

HEARTBEAT = 10.0
"""Seconds between updates of a process's row while it has open runs."""

_TIDY_EVERY = 60.0
"""Seconds between checks of the age and the size of the store."""

_STEP = 0.1
"""Share of all runs that is deleted beyond the limit, so that the next check deletes nothing."""


class TraceWriter:
    """Writes runs into the file; used by one thread at a time.

    Args:
        file: the store's.
        max_age: seconds that a run is kept; None for ever.
        max_bytes: about the largest size of the file; beyond it the oldest runs are deleted. None for no limit.
    """

    def __init__(self, file: TraceFile, *, max_age: float | None, max_bytes: int | None) -> None:
        self._file = file
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._process: int | None = None
        self._tidied = float("-inf")

    def write(self, runs: Iterable[OpenRun]) -> None:
        """Write the unwritten rows of these runs, all or none.

        Raises:
            ConfigError: the file cannot be used.
            sqlite3.Error: for example, the disk is full.
        """
        runs = [run for run in runs if run.is_dirty]
        with self._file.opened() as connection:
            with transaction(connection):
                process = self._present(connection)
                seq = next_seq(connection, len(runs))
                ids = [_put_run(connection, run, process, seq + number) for number, run in enumerate(runs)]
                for run, number in zip(runs, ids, strict=True):
                    _put_rows(connection, run, number)
                    _put_text(connection, run, number)
            # After the commit.
            self._process = process
            for run, number in zip(runs, ids, strict=True):
                run.id = number
                run.is_dirty = False
                run.rows.clear()
                run.version = None
            if time.monotonic() - self._tidied >= _TIDY_EVERY:
                self._tidied = time.monotonic()
                self.tidy(connection)

    def forget_process(self) -> None:
        """Register as another process at the next write, as after a fork."""
        self._process = None

    def tidy(self, connection: sqlite3.Connection) -> None:
        """Delete runs that are too old, and the oldest while the file is too large."""
        if self._max_age is not None:
            delete_runs(connection, "started < ?", (time.time() - self._max_age,))
        if self._max_bytes is not None:
            shrink(connection, self._max_bytes)

    # --- rows --------------------------------------------------------------------------------------------

    def _present(self, connection: sqlite3.Connection) -> int:
        """Update the row of this process, and return its number."""
        now = time.time()
        update = "UPDATE processes SET seen = ? WHERE id = ?"
        if self._process is not None and connection.execute(update, (now, self._process)).rowcount:
            return self._process
        return _insert(connection, "processes", {"name": f"{platform.node()}:{os.getpid()}", "seen": now})


def shrink(connection: sqlite3.Connection, max_bytes: int) -> int:
    """Delete the oldest runs until the file is below its limit; return how many."""
    gone = 0
    while (used := used_bytes(connection)) > max_bytes:
        (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        deleted = delete_runs(
            connection,
            "id IN (SELECT id FROM runs WHERE status != 'running' ORDER BY started LIMIT ?)",
            (max(int(count * (1 - max_bytes / used + _STEP)), 1),),
        )
        if not deleted:
            break
        gone += deleted
        if has_text_index(connection):
            # Deleted texts leave entries in the index until it is rebuilt.
            connection.execute("INSERT INTO run_texts (run_texts) VALUES ('optimize')")
    return gone


def delete_runs(connection: sqlite3.Connection, condition: str, values: tuple[Any, ...]) -> int:
    """Delete the runs for which `condition` holds, with their rows in all tables; return how many."""
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


def next_seq(connection: sqlite3.Connection, count: int) -> int:
    """Reserve `count` change numbers, and return the first."""
    found = connection.execute("UPDATE counter SET seq = seq + ? RETURNING seq", (count,)).fetchone()
    if found is None:
        raise sqlite3.DatabaseError("the file is damaged: its counter is gone")
    return int(found[0]) - count + 1


def _put_run(connection: sqlite3.Connection, run: OpenRun, process: int, seq: int) -> int:
    """Write the row of a run, and return its number; a run that continues after a crash has a row already."""
    if run.id is None and run.columns["restarts"]:
        before = connection.execute(
            "SELECT id, started FROM runs WHERE trace_id = ? ORDER BY id DESC", (run.columns["trace_id"],)
        ).fetchone()
        if before is not None:
            run.id, run.columns["started"] = before
    row = {**run.columns, "seq": seq, "process": process}
    changes = ", ".join(f"{name} = :{name}" for name in row)
    update = f"UPDATE runs SET {changes} WHERE id = :id"  # noqa: S608 - the names are ours
    if run.id is not None and connection.execute(update, {**row, "id": run.id}).rowcount:
        return run.id
    return _insert(connection, "runs", row)


def _put_rows(connection: sqlite3.Connection, run: OpenRun, number: int) -> None:
    """Write a run's rows of other tables."""
    if run.version is not None:
        _insert(connection, "versions", run.version, "OR IGNORE")
    for (table, _), row in run.rows.items():
        cells = {"run": number, **row}
        if (prompt := row.get("prompt")) is not None:
            cells["prompt"] = _prompt(connection, run.columns, prompt)
        _insert(connection, table, cells, "OR REPLACE")


def _put_text(connection: sqlite3.Connection, run: OpenRun, number: int) -> None:
    """Write the text for the full-text index, when a run is new and when it ends."""
    if run.id is not None and not run.has_ended:
        return
    if run.id == number:  # else it has no earlier text, since row numbers are never reused
        connection.execute("DELETE FROM run_texts WHERE rowid = ?", (number,))
    texts = "\n".join(text for text in run.texts.values() if text)
    connection.execute("INSERT INTO run_texts (rowid, text) VALUES (?, ?)", (number, texts))


def _insert(connection: sqlite3.Connection, table: str, row: Row, conflict: str = "") -> int:
    """Insert a row, and return its number."""
    places = ", ".join("?" * len(row))
    statement = f"INSERT {conflict} INTO {table} ({', '.join(row)}) VALUES ({places})"  # noqa: S608
    return connection.execute(statement, tuple(row.values())).lastrowid or 0


def _prompt(connection: sqlite3.Connection, run: Row, stored: str | bytes) -> int:
    """Return the number of a prompt, stored now if it is new."""
    digest = hashlib.sha256(stored if isinstance(stored, bytes) else stored.encode()).hexdigest()
    key = {"function": run["function"], "version": run["version"], "digest": digest}
    _insert(connection, "prompts", {**key, "message": stored, "first_seen": run["started"]}, "OR IGNORE")
    found = connection.execute(
        "SELECT id FROM prompts WHERE function = :function AND version = :version AND digest = :digest", key
    )
    return int(found.fetchone()[0])
