"""Metrics of a trace store: tokens, cost, latency, errors and re-asks, by function, model, version and time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, TypeAlias, get_args

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.observability.store.query import conditions, source_of
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import RunQuery

Dimension: TypeAlias = Literal["function", "model", "version", "provider", "kind"]
"""A column to group runs by."""

_PERCENTS = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class MetricRow:
    """The runs of one group.

    Attributes:
        function, model, version, provider, kind: of all runs in the group; "" where runs are not grouped by it.
        bucket: start of the span of time, in seconds since the epoch; None without `bucket=`.
        runs: all, running and lost ones too.
        finished: runs that ended with an answer or an error; the rates are of these.
        error_rate: share of `finished` that ended with an error, 0 to 1; None where no run finished.
        reask_rate: share of `finished` with at least one rejected answer.
        reasks: rejected answers.
        cached: runs answered from a cache.
        cost: USD of the runs whose cost is known; None where no run's is.
        cost_unknown: finished runs that read or wrote tokens at an unknown price.
        seconds_mean, seconds_p50, seconds_p90, seconds_p99: of the finished runs; a percentile is the smallest value
            that this percentage of runs does not exceed. None where no run finished.
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
    """Return the metrics of runs, one row for each group, ordered by time, then by the names.

    Args:
        reader: of the store.
        by: columns to group by; none gives one row for all.
        bucket: seconds of a span of time; each span is a group. None does not group by time.
        query: the runs that count; None for all.
        limit: most rows; the latest spans of time are kept.

    Raises:
        ConfigError: `by` names no known column, `bucket` is not above 0, or the file cannot be read.
    """
    unknown = [name for name in by if name not in get_args(Dimension)]
    if unknown:
        raise ConfigError(f"runs cannot be told apart by {unknown[0]!r}. Known: {', '.join(get_args(Dimension))}.")
    if bucket is not None and bucket <= 0:
        raise ConfigError(f"bucket is {bucket!r}; it is a number of seconds above 0.")
    names = ", ".join(f"{name if name in by else repr('')} AS {name}" for name in get_args(Dimension))
    span = "NULL" if bucket is None else "CAST(started / :bucket AS INTEGER) * :bucket"
    with reader.connection() as connection:
        where, values = conditions(query, connection)
        rows = connection.execute(
            f"SELECT {names}, {span} AS span, {_SUMS} FROM {source_of(query)} WHERE {where} "  # noqa: S608
            "GROUP BY 1, 2, 3, 4, 5, span ORDER BY span DESC, 1 DESC, 3 DESC, 2 DESC, 4 DESC, 5 DESC LIMIT :limit",
            {**values, "bucket": bucket, "limit": limit},
        ).fetchall()
    return [_row(row) for row in reversed(rows)]


# The times come as lists and are sorted here: an order among the rows of each group takes SQLite ten times as long.
_SUMS = """
    count(*), sum(status IN ('ok', 'error')), sum(status = 'error'), sum(status = 'cancelled'), sum(reasks),
    sum(status IN ('ok', 'error') AND reasks > 0), sum(repairs), sum(tool_calls), sum(failed_tool_calls),
    sum(failed_tries), sum(cached), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(reasoning_tokens),
    sum(cache_write_tokens), sum(cost), sum(status IN ('ok', 'error') AND cost IS NULL AND input_tokens + output_tokens > 0),
    json_group_array(seconds) FILTER (WHERE status IN ('ok', 'error') AND seconds IS NOT NULL),
    json_group_array(first_chunk_seconds) FILTER (WHERE first_chunk_seconds IS NOT NULL)
"""


def _row(row: tuple[Any, ...]) -> MetricRow:
    *names, span = row[:6]
    runs, finished, errors, cancelled, reasks, asked_again, *others, seconds, first_chunk = row[6:]
    values = [*names, None if span is None else float(span), runs, finished, errors, cancelled]
    values += [errors / finished if finished else None, reasks, asked_again / finished if finished else None, *others]
    seconds, first_chunk = sorted(json.loads(seconds)), sorted(json.loads(first_chunk))
    values += [fmean(seconds) if seconds else None, *(_percentile(seconds, each) for each in _PERCENTS)]
    return MetricRow(*values, *(_percentile(first_chunk, each) for each in _PERCENTS[:2]))


def _percentile(ordered: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that `percent` of the values do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None
