"""Marks: verdicts on a run by a person or a judging program."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.observability.store.content import storable
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import RunSummary, Thumb
from SimpleLLMFunc.observability.store.writer import next_seq
from SimpleLLMFunc.storage import transaction


class _Mark(BaseModel, extra="forbid"):
    thumb: Thumb | None = None
    score: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    comment: Annotated[str, Field(max_length=10_000)] | None = None
    tags: Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=50)] | None = None


def mark_run(reader: TraceReader, run: Any, *, forget: bool = False, **given: Any) -> RunSummary:
    """Mark a run of a store, and return it with its mark; see `TraceStore.mark`.

    Raises:
        UsageError: there is no such run, or a value cannot be in a mark.
        ConfigError: the file cannot be written.
    """
    columns = _checked(given)
    if not columns and not forget:
        raise UsageError(
            "mark: give a thumb, a score, a comment or tags; or forget=True (--forget) to take the mark away."
        )
    with reader.connection() as connection, transaction(connection):
        number = reader.number_of(connection, getattr(run, "trace_id", run))
        if number is None:
            raise UsageError(f"there is no run {redact(str(getattr(run, 'trace_id', run)))[:100]!r} in this store.")
        if forget:
            connection.execute("DELETE FROM marks WHERE run = ?", (number,))
        if columns:
            connection.execute(
                "INSERT OR IGNORE INTO marks (run, thumb, score, comment, tags, at) VALUES (?, '', NULL, '', '[]', 0)",
                (number,),
            )
            names = ", ".join(f"{name} = ?" for name in columns)
            connection.execute(
                f"UPDATE marks SET {names}, at = ? WHERE run = ?",  # noqa: S608 - the names are ours
                (*columns.values(), time.time(), number),
            )
        connection.execute("UPDATE runs SET seq = ? WHERE id = ?", (next_seq(connection, 1), number))
    detail = reader.run(number)
    assert detail is not None, "it was marked just now"
    return detail.summary


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the given values."""
    try:
        mark = _Mark(**given)
    except ValidationError as error:
        (problem, *_) = error.errors()
        raise UsageError(f"mark: {'.'.join(map(str, problem['loc']))}: {problem['msg']}.") from None
    found = {name: value for name, value in mark if value is not None}
    if mark.comment is not None:
        found["comment"] = storable(redact(mark.comment))
    if mark.tags is not None:
        found["tags"] = json.dumps(list(dict.fromkeys(storable(redact(tag)) for tag in mark.tags)), ensure_ascii=False)
    return found
