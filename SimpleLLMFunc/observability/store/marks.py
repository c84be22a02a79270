"""Marks: verdicts on a run by a person or a judging program."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from typing import Any, get_args

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.observability.store.content import storable
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import RunSummary, Thumb
from SimpleLLMFunc.observability.store.writer import next_seq
from SimpleLLMFunc.storage import transaction

_MOST_TAGS = 50
_LONGEST_TAG = 100
_LONGEST_COMMENT = 10_000


def mark_run(
    reader: TraceReader,
    run: Any,
    *,
    thumb: Thumb | None = None,
    score: float | None = None,
    comment: str | None = None,
    tags: Iterable[str] | None = None,
    forget: bool = False,
) -> RunSummary:
    """Mark a run of a store, and return it with its mark; see `TraceStore.mark`.

    Raises:
        UsageError: there is no such run, or a value cannot be in a mark.
        ConfigError: the file cannot be written.
    """
    given = _checked(thumb, score, comment, tags)
    if not given and not forget:
        raise UsageError("mark: give a thumb, a score, a comment or tags; or forget=True to take the mark away.")
    with reader.connection() as connection, transaction(connection):
        number = reader.number_of(connection, getattr(run, "trace_id", run))
        if number is None:
            raise UsageError(f"there is no run {redact(str(getattr(run, 'trace_id', run)))[:100]!r} in this store.")
        if forget:
            connection.execute("DELETE FROM marks WHERE run = ?", (number,))
        if given:
            connection.execute(
                "INSERT OR IGNORE INTO marks (run, thumb, score, comment, tags, at) VALUES (?, '', NULL, '', '[]', 0)",
                (number,),
            )
            names = ", ".join(f"{name} = ?" for name in given)
            connection.execute(
                f"UPDATE marks SET {names}, at = ? WHERE run = ?",  # noqa: S608 - the names are ours
                (*given.values(), time.time(), number),
            )
        connection.execute("UPDATE runs SET seq = ? WHERE id = ?", (next_seq(connection, 1), number))
    detail = reader.run(number)
    assert detail is not None, "it was marked just now"
    return detail.summary


def _checked(thumb: Any, score: Any, comment: Any, tags: Any) -> dict[str, Any]:
    """Return the columns of the given values."""
    given: dict[str, Any] = {}
    if thumb is not None:
        if thumb not in get_args(Thumb):
            raise UsageError(f'mark: thumb is "up" or "down", not {str(thumb)[:60]!r}.')
        given["thumb"] = thumb
    if score is not None:
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise UsageError(f"mark: score is a number, not {str(score)[:60]!r}.")
        given["score"] = float(score)
    if comment is not None:
        if not isinstance(comment, str) or len(comment) > _LONGEST_COMMENT:
            raise UsageError(f"mark: comment is a text of at most {_LONGEST_COMMENT:,} characters.")
        given["comment"] = storable(redact(comment))
    if tags is not None:
        kept = [tags] if isinstance(tags, str) or not isinstance(tags, Iterable) else list(tags)
        if isinstance(tags, str) or not all(isinstance(each, str) and 0 < len(each) <= _LONGEST_TAG for each in kept):
            raise UsageError(f"mark: tags is a list of texts of 1 to {_LONGEST_TAG} characters.")
        if len(kept) > _MOST_TAGS:
            raise UsageError(f"mark: a run has at most {_MOST_TAGS} tags.")
        given["tags"] = json.dumps(list(dict.fromkeys(storable(redact(each)) for each in kept)), ensure_ascii=False)
    return given
