"""Reading a trace store: pages of runs, one run, functions and their versions, changes."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar

from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.observability.store.content import unpack
from SimpleLLMFunc.observability.store.query import RUNS, alive, conditions, order_of, place_of, source_of, stored
from SimpleLLMFunc.observability.store.rows import (
    Changes,
    Conversation,
    FunctionSummary,
    FunctionVersion,
    Review,
    RunDetail,
    RunOrder,
    RunPage,
    RunQuery,
    RunSummary,
    StoredToolCall,
    StoredTry,
    StoredTurn,
)
from SimpleLLMFunc.observability.store.tables import TraceFile

R = TypeVar("R")


_MOST_RUNS = 500

_SAID = {
    "status": """CASE WHEN runs.status = 'running' AND NOT EXISTS (
        SELECT 1 FROM processes WHERE processes.id = runs.process AND processes.seen >= :alive
    ) THEN 'lost' ELSE runs.status END""",
    "error_text": "substr(runs.error_text, 1, 300)",
    "answer": "runs.answer_head",
    "thumb": "ifnull(marks.thumb, '')",
    "score": "marks.score",
    "comment": "ifnull(marks.comment, '')",
    "tags": "marks.tags",
}
_COLUMNS = ", ".join(_SAID.get(field.name, f"runs.{field.name}") for field in fields(RunSummary))
_MARKED = "runs LEFT JOIN marks ON marks.run = runs.id"
_LATER = "runs.seq > :since ORDER BY runs.seq LIMIT :most"
_CHILDREN = "runs.parent = :parent AND runs.parent != '' ORDER BY runs.started LIMIT :most"
_LATEST = "runs.trace_id = :trace_id AND :trace_id != '' ORDER BY runs.started DESC LIMIT 1"
_FLAGS = {"cached", "streamed", "accepted", "failed"}
_PACKED = {"request", "headers", "reply", "violations", "repairs", "text", "arguments", "content"}
"""Columns that hold 0 or 1, and columns that hold JSON data, in the tables of a run's parts."""


class TraceReader:
    """Reads a trace store, also while others write it; several threads may share a reader.

    The methods are synchronous and short; from an event loop, call them in a thread.

    Args:
        path: of the file.
        create: make an empty store if there is no file; else a missing file is an error at the first use.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = file_path(path)
        self._file = TraceFile(self.path, create=create)

    def __repr__(self) -> str:
        return f"TraceReader({str(self.path)!r})"

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.close()

    # --- the list ----------------------------------------------------------------------------------------

    def runs(
        self,
        query: RunQuery | None = None,
        *,
        limit: int = 50,
        after: str | None = None,
        sort: RunOrder = "started",
        ascending: bool = False,
    ) -> RunPage:
        """Return a page of runs, newest first unless another order is asked for.

        Args:
            query: a filter; None for all runs.
            limit: runs on the page, at most 500.
            after: `RunPage.next` of the previous page, of the same query and order.
            sort: "started", "seconds", "tokens" or "cost"; runs without a value come last.
            ascending: the smallest first.

        Raises:
            ConfigError: the file cannot be read, `after` is not a `RunPage.next`, or runs cannot be sorted by `sort`.
        """
        return self.runs_with_content(query, limit=limit, after=after, sort=sort, ascending=ascending, columns=())[0]

    def runs_with_content(
        self,
        query: RunQuery | None,
        *,
        limit: int,
        after: str | None,
        sort: RunOrder,
        ascending: bool,
        columns: Sequence[str] = ("arguments", "value", "answer"),
    ) -> tuple[RunPage, list[list[Any]]]:
        """Return a page as `runs` does, and the content of each run: arguments, value and text."""
        limit = min(max(limit, 1), _MOST_RUNS)
        key, order = order_of(sort, ascending=ascending)
        with self.connection() as connection:
            where, values = conditions(query, connection)
            if after is not None:
                values |= place_of(after)
                where += f" AND ({key}, runs.id) {'>' if ascending else '<'} (:key, :id)"
            found = connection.execute(
                f"WITH chosen AS (SELECT runs.id AS id, {key} AS key FROM {source_of(query)} WHERE {where} "  # noqa: S608
                f"ORDER BY {order} LIMIT :limit) SELECT {', '.join((_COLUMNS, 'chosen.key', *columns))} FROM chosen "
                f"CROSS JOIN runs ON runs.id = chosen.id LEFT JOIN marks ON marks.run = runs.id ORDER BY {order}",
                {**values, "limit": limit + 1},
            ).fetchall()
            seq = _seq(connection)
            width = len(fields(RunSummary))
            rows = [_summary(row[:width]) for row in found[:limit]]
            place = f"{float(found[limit - 1][width])!r}:{rows[-1].id}" if len(found) > limit else None
            return RunPage(rows, place, seq), [[unpack(cell) for cell in row[width + 1 :]] for row in found[:limit]]

    def count(self, query: RunQuery | None = None, *, most: int = 10_000) -> int:
        """Return how many runs there are; `most` where there are more."""
        with self.connection() as connection:
            where, values = conditions(query, connection)
            (count,) = connection.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {source_of(query)} WHERE {where} LIMIT :most)",  # noqa: S608
                {**values, "most": most},
            ).fetchone()
        return int(count)

    def changes(self, since: int, *, limit: int = 200) -> Changes:
        """Return the runs that are new or different since `RunPage.seq` or `Changes.seq`."""
        limit = min(max(limit, 1), _MOST_RUNS)
        with self.connection() as connection:
            found = _summaries(connection, _LATER, since=since, most=limit + 1)
        rows = found[:limit]
        return Changes(rows, rows[-1].seq if rows else since, len(found) > limit)

    def seq(self) -> int:
        """Return the number of the latest change."""
        with self.connection() as connection:
            return _seq(connection)

    # --- one run -----------------------------------------------------------------------------------------

    def run(self, run: int | str) -> RunDetail | None:
        """Return everything about one run; None if no run matches.

        Args:
            run: its id, also as text, its trace id, or a beginning that only one trace id has.
        """
        with self.connection() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS}, runs.error_text, runs.arguments, runs.answer, runs.value, "  # noqa: S608
                f"runs.output_mode, runs.incomplete, runs.restarts FROM {_MARKED} WHERE runs.id = :id",
                {"id": self.number_of(connection, run), "alive": alive()},
            ).fetchone()
            if row is None:
                return None
            *columns, error_text, arguments, answer, value, output_mode, incomplete, restarts = row
            summary = _summary(columns)
            return RunDetail(
                summary=summary,
                error_text=error_text,
                arguments=unpack(arguments),
                answer=unpack(answer),
                value=unpack(value),
                output_mode=output_mode,
                messages=_messages(connection, summary.id),
                turns=_rows(connection, summary.id, "turns", StoredTurn),
                tries=_rows(connection, summary.id, "tries", StoredTry),
                reviews=_rows(connection, summary.id, "reviews", Review),
                tool_calls=_rows(connection, summary.id, "tool_calls", StoredToolCall),
                children=_summaries(connection, _CHILDREN, parent=summary.trace_id, most=_MOST_RUNS),
                parent_run=next(iter(_summaries(connection, _LATEST, trace_id=summary.parent)), None),
                function_version=next(iter(_versions(connection, summary.function, summary.version)), None),
                incomplete=bool(incomplete),
                restarts=restarts,
            )

    @staticmethod
    def number_of(connection: sqlite3.Connection, run: int | str) -> int | None:
        """Return the id of the run that `run` names; None if no run matches."""
        text = str(run)
        if not (text.isascii() and text.isdecimal() and len(text) < 19):  # SQLite has no longer numbers
            return _found(connection, stored(text))
        return int(text) if connection.execute("SELECT 1 FROM runs WHERE id = ?", (int(text),)).fetchone() else None

    def tree(self, trace_id: str) -> list[RunSummary]:
        """Return the runs inside a run, at every depth, the oldest first; at most 500."""
        below = (
            "WITH RECURSIVE below (trace_id) AS (SELECT :root UNION SELECT runs.trace_id FROM below "
            "JOIN runs ON runs.parent = below.trace_id AND runs.parent != '') SELECT trace_id FROM below"
        )
        where = f"runs.trace_id IN ({below}) AND runs.trace_id != :root ORDER BY runs.started, runs.id LIMIT :most"
        with self.connection() as connection:
            return _summaries(connection, where, root=stored(trace_id), most=_MOST_RUNS)

    def same_arguments(self, function: str, before: str, after: str) -> list[tuple[RunSummary, RunSummary, bool]]:
        """Return pairs of runs in which two versions of a function had equal arguments, and whether the values are equal.

        Compares the latest 5,000 runs of each version; of several runs with equal arguments the latest counts. At most
        500 pairs.
        """
        one, two = (
            "SELECT max(id) AS id, arguments FROM (SELECT id, arguments FROM runs WHERE function = :function "  # noqa: S608
            f"AND version = :{name} AND status IN ('ok', 'error') ORDER BY started DESC LIMIT 5000) GROUP BY arguments"
            for name in ("before", "after")
        )
        with self.connection() as connection:
            pairs = connection.execute(
                f"WITH one AS ({one}), two AS ({two}) "  # noqa: S608 - both are ours
                "SELECT one.id, two.id, (SELECT value FROM runs WHERE id = one.id) IS (SELECT value FROM runs WHERE id = two.id) "
                "FROM one JOIN two ON one.arguments = two.arguments ORDER BY two.id DESC LIMIT :limit",
                {"function": stored(function), "before": before, "after": after, "limit": _MOST_RUNS},
            ).fetchall()
            ids = json.dumps([number for pair in pairs for number in pair[:2]])
            found = _summaries(connection, "runs.id IN (SELECT value FROM json_each(:ids))", ids=ids)
        by_id = {run.id: run for run in found}
        return [(by_id[one], by_id[two], bool(same)) for one, two, same in pairs]

    def conversations(self, *, limit: int = 50, before: float | None = None) -> list[Conversation]:
        """Return the sessions, the one with the latest run first.

        Args:
            limit: sessions, at most 500.
            before: sessions whose latest run began before; the last `Conversation.latest` gives the next page.
        """
        with self.connection() as connection:
            rows = connection.execute(
                "WITH chosen AS (SELECT session, group_concat(DISTINCT function) AS functions, count(*) AS runs, "  # noqa: S608
                "sum(status = 'error') AS errors, min(started) AS began, max(started) AS latest, "
                "sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(cost) AS cost "
                f"FROM {RUNS} WHERE session != '' GROUP BY session HAVING :before IS NULL OR max(started) < :before "
                "ORDER BY max(started) DESC LIMIT :limit) "
                "SELECT chosen.session, (SELECT user FROM runs WHERE runs.session = chosen.session AND runs.session != '' "
                "ORDER BY started DESC LIMIT 1), functions, runs, errors, began, latest, input_tokens, output_tokens, cost, "
                "(SELECT question FROM runs WHERE runs.session = chosen.session AND runs.session != '' "
                "ORDER BY started LIMIT 1) FROM chosen",
                {"before": before, "limit": min(max(limit, 1), _MOST_RUNS)},
            ).fetchall()
        return [Conversation(*row) for row in rows]

    # --- functions ---------------------------------------------------------------------------------------

    def functions(self) -> list[FunctionSummary]:
        """Return every function that ran, the latest first."""
        with self.connection() as connection:
            # With max(), SQLite takes the other columns from the row that holds the maximum: the latest run.
            rows = connection.execute(
                "SELECT function, kind, count(DISTINCT version), version, count(*), sum(status = 'error'), "  # noqa: S608
                f"max(started) FROM {RUNS} GROUP BY function ORDER BY max(started) DESC"
            ).fetchall()
        return [FunctionSummary(*row) for row in rows]

    def versions(self, function: str) -> list[FunctionVersion]:
        """Return the versions of a function, the latest first."""
        with self.connection() as connection:
            return _versions(connection, stored(function))

    def models(self) -> list[str]:
        """Return the names of all models."""
        return self._distinct("model")

    def sessions(self) -> list[str]:
        """Return the names of all sessions."""
        return self._distinct("session", "runs")

    def errors(self) -> list[str]:
        """Return the error types that runs ended with."""
        return self._distinct("error")

    def users(self) -> list[str]:
        """Return the names of all users."""
        return self._distinct("user")

    def tags(self) -> list[str]:
        """Return the tags of all marks."""
        return self._distinct("one.value", "marks, json_each(marks.tags) AS one")

    def _distinct(self, column: str, source: str = RUNS) -> list[str]:
        with self.connection() as connection:
            rows = connection.execute(f"SELECT DISTINCT {column} FROM {source} WHERE {column} != '' ORDER BY 1")  # noqa: S608
            return [name for (name,) in rows.fetchall()]

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; errors of SQLite become errors of ours.

        Raises:
            ConfigError: the file cannot be read.
        """
        try:
            with self._file.opened() as connection:
                yield connection
        except ConfigError:
            raise
        except (sqlite3.Error, ValueError) as error:  # of int() and float() too, for a damaged cell
            raise self._file.explained(error) from None


def _seq(connection: sqlite3.Connection) -> int:
    (seq,) = connection.execute("SELECT coalesce(max(seq), 0) FROM counter").fetchone()
    return int(seq)


def _found(connection: sqlite3.Connection, trace_id: str) -> int | None:
    """Return the id of the run with this trace id, or with the only trace id that begins so."""
    row = connection.execute("SELECT id FROM runs WHERE trace_id = ? ORDER BY id DESC LIMIT 1", (trace_id,)).fetchone()
    if row is not None:
        return int(row[0])
    if not trace_id:
        return None
    rows = connection.execute(
        "SELECT id FROM runs WHERE trace_id >= ? AND trace_id < ? LIMIT 2", (trace_id, f"{trace_id}\U0010ffff")
    ).fetchall()
    return int(rows[0][0]) if len(rows) == 1 else None


def _summary(row: Sequence[Any]) -> RunSummary:
    values = dict(zip((field.name for field in fields(RunSummary)), row, strict=True))
    values |= {name: bool(values[name]) for name in ("cached", "streamed")}
    values["tags"] = unpack(values["tags"]) or []
    return RunSummary(**values)


def _summaries(connection: sqlite3.Connection, where: str, **values: Any) -> list[RunSummary]:
    """Return the runs for which a condition of ours holds."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM {_MARKED} WHERE {where}", {**values, "alive": alive()})  # noqa: S608
    return [_summary(row) for row in rows.fetchall()]


def _messages(connection: sqlite3.Connection, run: int) -> list[Any]:
    rows = connection.execute(
        "SELECT messages.message, prompts.message FROM messages LEFT JOIN prompts ON prompts.id = messages.prompt "
        "WHERE run = ? ORDER BY number",
        (run,),
    ).fetchall()
    return [unpack(message if prompt is None else prompt) for message, prompt in rows]


def _rows(connection: sqlite3.Connection, run: int, table: str, kind: Callable[..., R]) -> list[R]:
    """Return the rows of a run in a table, in order; the columns have the names of `kind`'s fields."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type] # it is a dataclass
    found = connection.execute(f"SELECT {', '.join(names)} FROM {table} WHERE run = ? ORDER BY number", (run,))  # noqa: S608
    rows = (zip(names, row, strict=True) for row in found.fetchall())
    return [kind(*(_cell(table, name, cell) for name, cell in row)) for row in rows]


def _cell(table: str, name: str, cell: Any) -> Any:
    if name in _FLAGS:
        return bool(cell)
    if name not in _PACKED or (table, name) == ("tries", "text"):
        return cell
    return (unpack(cell) or []) if name in {"violations", "repairs"} else unpack(cell)


def _versions(connection: sqlite3.Connection, function: str, version: str | None = None) -> list[FunctionVersion]:
    only = "" if version is None else "AND versions.version = :version"
    rows = connection.execute(
        f"""
        SELECT versions.version, versions.kind, versions.docstring, versions.signature, versions.place,
               versions.schema, versions.tools, versions.first_seen,
               coalesce(max(runs.started), versions.first_seen) AS last_seen, count(runs.id) AS runs,
               coalesce(sum(runs.status = 'error'), 0) AS errors
        FROM versions LEFT JOIN runs ON runs.version = versions.version AND runs.function = versions.function
        WHERE versions.function = :function {only}
        GROUP BY versions.version ORDER BY last_seen DESC
        """,  # noqa: S608 - both texts are ours
        {"function": function, "version": version},
    )
    found = [dict(zip((name for name, *_ in rows.description), row, strict=True)) for row in rows]
    for each in found:
        each |= {"schema": unpack(each["schema"]), "tools": unpack(each["tools"]) or []}
        each["prompts"] = _prompts(connection, function, each["version"])
    return [FunctionVersion(function=function, **each) for each in found]


def _prompts(connection: sqlite3.Connection, function: str, version: str) -> list[Any]:
    rows = connection.execute(
        "SELECT message FROM prompts WHERE function = ? AND version = ? ORDER BY id DESC LIMIT 10", (function, version)
    ).fetchall()
    return [unpack(message) for (message,) in rows]
