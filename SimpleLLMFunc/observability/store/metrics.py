"""What the runs of a trace store took: tokens, cost, latency, errors and re-asks, by function, model, version and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.observability.store.reader import TraceReader, conditions
from SimpleLLMFunc.observability.store.rows import RunQuery

Dimension: TypeAlias = Literal["function", "model", "version", "provider", "kind"]
"""By what runs can be told apart."""

_PERCENTS = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class MetricRow:
    """The runs of one group.

    Attributes:
        function, model, version, provider, kind: of all of them; "" where they were not told apart by it.
        bucket: when the span of time begins, in seconds since the epoch; None without `bucket=`.
        runs: all, those that go on or were lost too.
        finished: those that came to an answer or to an error; the rates are of these.
        error_rate: the part of `finished` that ended with an error; None where none finished.
        reask_rate: the part of `finished` in which an answer was sent back at least once.
        reasks: answers that were sent back.
        cached: runs answered from a cache.
        cost: USD of the runs whose cost is known; None where that is none.
        cost_unknown: finished runs that read or wrote tokens at an unknown price.
        seconds_mean, seconds_p50, seconds_p90, seconds_p99: of the finished runs; a percentile is the smallest value
            that so many percent do not exceed. None where none finished.
        first_chunk_p50, first_chunk_p90: seconds to the first piece of streamed replies.
    """

    function: str
    model: str
    version: str
    provider: str
    kind: str
    bucket: float | None
    runs: int
    finished: int
    errors: int
    cancelled: int
    error_rate: float | None
    reasks: int
    reask_rate: float | None
    repairs: int
    tool_calls: int
    failed_tool_calls: int
    failed_tries: int
    cached: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cache_write_tokens: int
    cost: float | None
    cost_unknown: int
    seconds_mean: float | None
    seconds_p50: float | None
    seconds_p90: float | None
    seconds_p99: float | None
    first_chunk_p50: float | None
    first_chunk_p90: float | None


def metrics(
    reader: TraceReader,
    *,
    by: Sequence[Dimension] = ("function",),
    bucket: float | None = None,
    query: RunQuery | None = None,
    limit: int = 10_000,
) -> list[MetricRow]:
    """Return what the runs took, a row for each group, ordered by time, then by the names.

    Args:
        reader: of the store.
        by: what the runs are told apart by; nothing gives one row for all.
        bucket: seconds of a span of time, each a group of its own; None does not look at time.
        query: which runs count.
        limit: of rows; the latest spans of time are the ones left.

    Raises:
        ConfigError: nothing that runs can be told apart by, `bucket` is not above 0, or the file cannot be read.
    """
    unknown = [name for name in by if name not in get_args(Dimension)]
    if unknown:
        raise ConfigError(f"runs cannot be told apart by {unknown[0]!r}. Known: {', '.join(get_args(Dimension))}.")
    if bucket is not None and bucket <= 0:
        raise ConfigError(f"bucket is {bucket!r}; it is a number of seconds above 0.")
    names = [f"{name if name in by else repr('')} AS {name}" for name in get_args(Dimension)]
    span = "NULL" if bucket is None else "CAST(started / :bucket AS INTEGER) * :bucket"
    with reader.connection() as connection:
        where, values = conditions(query, connection)
        rows = connection.execute(
            _statement(", ".join(names), span, where), {**values, "bucket": bucket, "limit": limit}
        ).fetchall()
    return [_row(row) for row in reversed(rows)]


def _statement(names: str, span: str, where: str) -> str:
    groups = "function, model, version, provider, kind, span"
    ranks = ", ".join(f"min(CASE WHEN place * 100 >= known * {percent} THEN seconds END)" for percent in _PERCENTS)
    chunk_ranks = ", ".join(
        f"min(CASE WHEN chunk_place * 100 >= chunk_known * {percent} THEN first_chunk_seconds END)"
        for percent in _PERCENTS[:2]
    )
    return f"""
        WITH chosen AS (
            SELECT {names}, {span} AS span, status IN ('ok', 'error') AS is_finished,
                   CASE WHEN status IN ('ok', 'error') THEN seconds END AS seconds, first_chunk_seconds,
                   status, reasks, repairs, tool_calls, failed_tool_calls, failed_tries, cached, input_tokens,
                   output_tokens, cached_tokens, reasoning_tokens, cache_write_tokens, cost
            FROM runs WHERE {where}
        ), ranked AS (
            SELECT *,
                   row_number() OVER (PARTITION BY {groups}, seconds IS NULL ORDER BY seconds) AS place,
                   count(seconds) OVER (PARTITION BY {groups}) AS known,
                   row_number() OVER (
                       PARTITION BY {groups}, first_chunk_seconds IS NULL ORDER BY first_chunk_seconds
                   ) AS chunk_place,
                   count(first_chunk_seconds) OVER (PARTITION BY {groups}) AS chunk_known
            FROM chosen
        )
        SELECT {groups}, count(*), sum(is_finished), sum(status = 'error'), sum(status = 'cancelled'), sum(reasks),
               sum(is_finished AND reasks > 0), sum(repairs), sum(tool_calls), sum(failed_tool_calls),
               sum(failed_tries), sum(cached), sum(input_tokens), sum(output_tokens), sum(cached_tokens),
               sum(reasoning_tokens), sum(cache_write_tokens), sum(cost), sum(is_finished AND cost IS NULL AND input_tokens + output_tokens > 0),
               avg(seconds), {ranks}, {chunk_ranks}
        FROM ranked GROUP BY {groups} ORDER BY span DESC, function DESC, model DESC, version DESC, provider DESC, kind DESC
        LIMIT :limit
    """  # noqa: S608 - all parts are ours


def _row(row: Sequence[Any]) -> MetricRow:
    *names, span, runs, finished, errors, cancelled, reasks, asked_again = row[:12]
    values = [*names, None if span is None else float(span), runs, finished, errors, cancelled]
    values += [errors / finished if finished else None, reasks, asked_again / finished if finished else None]
    return MetricRow(*[*values, *row[12:]])
