"""What the runs of a store took, by group."""

from __future__ import annotations

import math
import random
import time

import pytest

from SimpleLLMFunc import ConfigError
from SimpleLLMFunc.observability.store.metrics import metrics
from SimpleLLMFunc.observability.store.rows import RunQuery
from SimpleLLMFunc.observability.store.tables import TraceFile
from SimpleLLMFunc.observability.store.trace_store import TraceStore

DAY = 86_400.0
BASE = math.floor(time.time() / DAY) * DAY


def put(store, **columns):
    """Write one row as it stands."""
    with store._file.opened() as connection:
        names = {row[1]: row[2] for row in connection.execute("PRAGMA table_info(runs)")}
        del names["id"]
        row = {name: ("" if kind == "TEXT" else 0) for name, kind in names.items()}
        (seq,) = connection.execute("UPDATE counter SET seq = seq + 1 RETURNING seq").fetchone()
        row |= {"status": "ok", "started": BASE, "seconds": 1.0, "cost": None, "first_chunk_seconds": None, "seq": seq}
        row |= columns
        connection.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES (:{', :'.join(row)})", row)


@pytest.fixture
def store(tmp_path):
    with TraceStore(tmp_path / "r.sqlite", max_age=None) as made:
        assert isinstance(made._file, TraceFile)
        yield made


def test_sums_and_rates(store):
    put(store, function="f", status="ok", input_tokens=10, output_tokens=1, cost=0.5, reasks=2, repairs=1, cached=1)
    tokens = {"input_tokens": 20, "output_tokens": 2, "cached_tokens": 5, "cache_write_tokens": 4}
    put(store, function="f", status="error", failed_tries=3, **tokens)
    put(store, function="f", status="cancelled", input_tokens=1, output_tokens=1, cost=0.25, tool_calls=4)
    put(store, function="f", status="running", seconds=None, failed_tool_calls=1)
    put(store, function="f", status="ok", reasoning_tokens=7)
    (row,) = metrics(store.reader)
    assert (row.function, row.model, row.version, row.bucket) == ("f", "", "", None)
    assert (row.runs, row.finished, row.errors, row.cancelled) == (5, 3, 1, 1)
    assert row.error_rate == pytest.approx(1 / 3)
    assert (row.reasks, row.reask_rate) == (2, pytest.approx(1 / 3))
    assert (row.repairs, row.tool_calls, row.failed_tool_calls, row.failed_tries, row.cached) == (1, 4, 1, 3, 1)
    assert (row.input_tokens, row.output_tokens, row.cached_tokens, row.reasoning_tokens) == (31, 4, 5, 7)
    assert row.cache_write_tokens == 4
    assert (row.cost, row.cost_unknown) == (0.75, 1)


def test_nothing_known_is_none_and_not_zero(store):
    assert metrics(store.reader) == metrics(store.reader, by=(), bucket=60) == []
    put(store, function="f", status="running", seconds=None)
    (row,) = metrics(store.reader)
    assert (row.cost, row.error_rate, row.reask_rate) == (None, None, None)
    assert (row.seconds_mean, row.seconds_p50, row.seconds_p99, row.first_chunk_p50) == (None, None, None, None)


@pytest.mark.parametrize("count", [1, 2, 3, 9, 10, 11, 99, 100, 101, 250])
def test_a_percentile_is_the_smallest_value_that_so_many_percent_do_not_exceed(store, count):
    values = random.Random(count).sample([number + 0.5 for number in range(count)], count)
    for value in values:
        put(store, function="f", seconds=value, first_chunk_seconds=value / 2)
    put(store, function="f", status="cancelled", seconds=1000.0)
    put(store, function="g", seconds=2000.0)
    row = metrics(store.reader)[0]
    ordered = sorted(values)
    for percent, found in ((50, row.seconds_p50), (90, row.seconds_p90), (99, row.seconds_p99)):
        assert found == ordered[math.ceil(count * percent / 100) - 1]
    assert row.first_chunk_p90 == ordered[math.ceil(count * 0.9) - 1] / 2
    assert row.seconds_mean == pytest.approx(sum(values) / count)


def test_groups(store):
    for function, model, version in (("f", "a", "1"), ("f", "b", "1"), ("f", "b", "2"), ("g", "b", "3")):
        put(store, function=function, model=model, version=version, provider="p", kind="chat")

    def named(**how):
        return [(row.function, row.model, row.version, row.runs) for row in metrics(store.reader, **how)]

    assert named() == [("f", "", "", 3), ("g", "", "", 1)]
    assert named(by=("model",)) == [("", "a", "", 1), ("", "b", "", 3)]
    assert named(by=["function", "version"]) == [("f", "", "1", 2), ("f", "", "2", 1), ("g", "", "3", 1)]
    assert named(by=()) == [("", "", "", 4)]
    assert named(by=("function",), query=RunQuery(model="b")) == [("f", "", "", 2), ("g", "", "", 1)]
    (row,) = metrics(store.reader, by=("provider", "kind"))
    assert (row.provider, row.kind) == ("p", "chat")


def test_spans_of_time(store):
    for hours in (0, 1, 1.5, 25):
        put(store, function="f", started=BASE - hours * 3600)
    rows = metrics(store.reader, by=(), bucket=3600)
    assert [(row.bucket, row.runs) for row in rows] == [(BASE - hours * 3600, 1) for hours in (25, 2, 1, 0)]
    assert [row.runs for row in metrics(store.reader, bucket=DAY)] == [1, 2, 1]
    assert [row.bucket for row in metrics(store.reader, by=(), bucket=3600, limit=2)] == [BASE - 3600, BASE]


@pytest.mark.parametrize("wrong", [{"by": ("prompt",)}, {"bucket": 0}, {"bucket": -1.0}])
def test_what_makes_no_sense_is_refused(store, wrong):
    with pytest.raises(ConfigError):
        metrics(store.reader, **wrong)
