"""Filters and orders of runs, as SQL."""

from __future__ import annotations

import re
import sqlite3
import time
from typing import Any, Final, get_args

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.observability.store.rows import RunOrder, RunQuery, RunStatus
from SimpleLLMFunc.observability.store.tables import has_text_index

LOST_SECONDS: Final = 60.0
"""Seconds; a process with open runs updates its row more often, so an older row is of a process that died."""

RUNS: Final = "runs INDEXED BY runs_by_time"
"""The source of lists and sums: the index that holds all columns they need.

Without the hint SQLite takes a narrower index and reads whole rows.
"""

_KEYS: Final[dict[RunOrder, str]] = {
    "started": "runs.started",
    "seconds": "runs.seconds",
    "tokens": "runs.input_tokens + runs.output_tokens",
    "cost": "runs.cost",
}
_PLACE: Final = re.compile(r"(-?[0-9.e+-]{1,40}|-?inf):([0-9]{1,18})")
_COMPARED: Final = {
    **{
        name: f"runs.{name} = :{name}"
        for name in ("function", "model", "version", "parent", "session", "user", "error")
    },
    "since": "runs.started >= :since",
    "until": "runs.started < :until",
    "min_seconds": "runs.seconds >= :min_seconds",
    "max_seconds": "runs.seconds < :max_seconds",
    "min_cost": "runs.cost >= :min_cost",
    "max_cost": "runs.cost < :max_cost",
    "thumb": "runs.id IN (SELECT run FROM marks WHERE thumb = :thumb)",
    "tag": "runs.id IN (SELECT run FROM marks, json_each(marks.tags) AS one WHERE one.value = :tag)",
}
"""Conditions with the value of a field of `RunQuery`."""

_HAPPENED: Final = {
    "asked_again": "runs.reasks > 0",
    "repaired": "runs.repairs > 0",
    "failed_tries": "runs.failed_tries > 0",
    "marked": "runs.id IN (SELECT run FROM marks)",
}
"""Conditions that a field of `RunQuery` asks for, or for their opposite."""


def order_of(sort: RunOrder, *, ascending: bool) -> tuple[str, str]:
    """Return the sort key and the ORDER BY clause; runs without a value come last.

    Raises:
        ConfigError: runs cannot be sorted by it.
    """
    if sort not in _KEYS:
        raise ConfigError(f"runs are not sorted by {sort!r}. Known: {', '.join(_KEYS)}.")
    key = (
        _KEYS[sort] if sort in {"started", "tokens"} else f"ifnull({_KEYS[sort]}, {'9e999' if ascending else '-9e999'})"
    )
    way = "" if ascending else " DESC"
    return key, f"{key}{way}, runs.id{way}"


def place_of(after: str) -> dict[str, Any]:
    """Return the key and the id of the last run of the previous page.

    Raises:
        ConfigError: it is not a `RunPage.next`.
    """
    found = _PLACE.fullmatch(after)
    try:
        assert found is not None
        return {"key": float(found[1]), "id": int(found[2])}
    except (AssertionError, ValueError):
        raise ConfigError(f"{after[:100]!r} is not a place in the list of runs. Give `RunPage.next`.") from None


def conditions(query: RunQuery | None, connection: sqlite3.Connection) -> tuple[str, dict[str, Any]]:
    """Return the SQL condition of a query, and its values."""
    query = query or RunQuery()
    values: dict[str, Any] = {"alive": alive()}
    parts = ["1"]
    for name, condition in _COMPARED.items():
        if (wanted := getattr(query, name)) is not None:
            values[name] = stored(wanted) if isinstance(wanted, str) else wanted
            parts.append(condition)
    # The conditions of two small indexes.
    parts += [f"runs.{name} != ''" for name in ("parent", "session") if values.get(name)]
    for name, condition in _HAPPENED.items():
        if (wanted := getattr(query, name)) is not None:
            parts.append(condition if wanted else f"NOT ({condition})")
    if query.status in {"running", "lost"}:
        seen = "SELECT 1 FROM processes WHERE processes.id = runs.process AND processes.seen >= :alive"
        parts.append(f"runs.status = 'running' AND {'NOT ' if query.status == 'lost' else ''}EXISTS ({seen})")
    elif query.status is not None:
        if query.status not in get_args(RunStatus):
            raise ConfigError(f"no run has the status {query.status!r}. Known: {', '.join(get_args(RunStatus))}.")
        values["status"] = query.status
        parts.append("runs.status = :status")
    if query.text:
        parts.append(_text_condition(query.text, connection, values))
    return " AND ".join(parts), values


def source_of(query: RunQuery | None) -> str:
    """Return the table or index that a query reads: runs of a conversation, or of a parent run, have a small index."""
    return "runs" if query is not None and (query.session or query.parent) else RUNS


def _text_condition(text: str, connection: sqlite3.Connection, values: dict[str, Any]) -> str:
    text = stored(text.replace("\0", " "))
    if len(text) >= 3 and has_text_index(connection):
        values["text"] = '"' + text.replace('"', '""') + '"'
        return "runs.id IN (SELECT rowid FROM run_texts WHERE run_texts MATCH :text)"
    values["text"] = text.lower()
    return "runs.id IN (SELECT rowid FROM run_texts WHERE instr(lower(run_texts.text), :text))"


def stored(text: str) -> str:
    """Return a text in the form that the file has: SQLite stores no lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def alive() -> float:
    """Return the time since which a live process must have updated its row."""
    return time.time() - LOST_SECONDS
