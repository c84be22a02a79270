"""Reading a trace store: pages, filters, changes, versions; by indexes, however many runs there are."""

from __future__ import annotations

import dataclasses
import time

import pytest

from SimpleLLMFunc import ConfigError
from SimpleLLMFunc.base.events import ReplyReceived, RunFinished, RunStarted, TurnStarted
from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata, SentRequest
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.observability.store.items import Ended
from SimpleLLMFunc.observability.store.metrics import metrics
from SimpleLLMFunc.observability.store.rows import RunQuery
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type.completion import ChatCompletion
from SimpleLLMFunc.type.usage import Usage

RUNS = 300
NOW = time.time()


def reply_of(text):
    return ChatCompletion.from_dict({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def fill(store, runs):
    """Write runs of three functions, four versions, two models; every tenth failed, the last three still go on."""
    models = [ScriptedLLM(model_name="small"), ScriptedLLM(model_name="large")]
    for number in range(runs):
        name = f"f{number % 3}"
        version = f"v{number % 3}{'b' if number > runs // 2 and number % 3 == 0 else 'a'}"
        trace_id = f"{name}_{number:05}"
        function = FunctionMetadata(name, docstring=f"Do {version}.", version=version, signature="(text: str) -> str")
        parent = f"f0_{number - number % 3:05}" if number % 3 == 1 and number < 30 else ""
        arguments = {"text": f"needle {number}" if number % 50 == 7 else f"hay {number}"}
        facts = RunMetadata(function, arguments, parent, session_id=f"s{number % 5}")
        store(trace_id, RunStarted(trace_id, [{"role": "user", "content": str(arguments)}], facts))
        sent = SentRequest(ModelRequest(models[number % 2], []), False, False)
        store(trace_id, TurnStarted(1, sent))
        usage = Usage(100 + number, 10, cost=0.01 if number % 2 else None)
        reply = reply_of(f"答案 {number}")
        store(trace_id, ReplyReceived(1, reply, usage, 0.1))
        if number % 10 == 3:
            store._queue.put((trace_id, time.monotonic(), Ended("error", "RateLimited", "too many 请求")))
        elif number < runs - 3:
            store(trace_id, RunFinished(reply, [], usage, 1, "x"))
    assert store.flush(30)
    with store._file.opened() as connection:
        # One a minute, the first in the past.
        connection.execute(f"UPDATE runs SET started = {NOW} + (id - {runs}) * 60, seconds = seconds * 0 + id / 100.0")


def named(value):
    """Return what a query asks for, the same in every process: worker processes have to agree on the names of tests."""
    if not isinstance(value, RunQuery):
        return None
    asked = [(name, each) for name, each in dataclasses.asdict(value).items() if each is not None]
    return ",".join(f"{name}={f'{each - NOW:.0f}' if name in {'since', 'until'} else each}" for name, each in asked)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with TraceStore(tmp_path_factory.mktemp("store") / "r.sqlite", max_age=None, queue_size=100_000) as made:
        fill(made, RUNS)
        yield made


@pytest.fixture
def reader(store):
    return store.reader


def numbers(runs):
    return [int(run.trace_id.partition("_")[2]) for run in runs]


def paged(reader, query=None, **how):
    """Return all runs, read page by page."""
    page = reader.runs(query, **how)
    found = page.runs
    while page.next is not None:
        page = reader.runs(query, after=page.next, **how)
        assert page.runs
        found += page.runs
    return found


def test_pages_follow_one_another(reader):
    assert numbers(paged(reader, limit=70)) == list(range(RUNS - 1, -1, -1))
    assert reader.count() == RUNS
    assert reader.count(most=10) == 10
    assert len(reader.runs(limit=10_000).runs) == RUNS
    assert len(reader.runs(limit=0).runs) == 1


KEYS = {
    "started": lambda run: run.started,
    "seconds": lambda run: run.seconds,
    "tokens": lambda run: run.input_tokens + run.output_tokens,
    "cost": lambda run: run.cost,
}


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("sort", KEYS)
def test_every_order_is_paged_without_a_gap_and_what_has_no_value_comes_last(reader, sort, ascending):
    found = paged(reader, RunQuery(session="s1"), limit=7, sort=sort, ascending=ascending)
    assert sorted(numbers(found)) == [n for n in range(RUNS) if n % 5 == 1]
    values = [KEYS[sort](run) for run in found]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=not ascending)
    assert values[len(known) :] == [None] * (len(values) - len(known))


def test_conversations_are_paged_by_their_latest_run(reader):
    first = reader.conversations(limit=3)
    rest = reader.conversations(before=first[-1].latest)
    assert [each.session for each in first + rest] == ["s4", "s3", "s2", "s1", "s0"]
    (one,) = (each for each in rest if each.session == "s1")
    mine = reader.runs(RunQuery(session="s1"), limit=500).runs
    assert (one.runs, one.errors) == (len(mine), sum(run.status == "error" for run in mine))
    assert one.cost == pytest.approx(sum(run.cost or 0 for run in mine))
    assert (one.question, sorted(one.functions.split(","))) == ("hay 1", ["f0", "f1", "f2"])
    assert (one.latest, one.began) == (mine[0].started, mine[-1].started)


def test_the_tree_of_a_run_holds_what_is_below(reader):
    assert numbers(reader.tree("f0_00012")) == [13]
    assert reader.tree("f1_00013") == reader.tree("none") == []


def test_runs_of_one_moment_are_on_one_page_each(tmp_path):
    with TraceStore(tmp_path / "r.sqlite", max_age=None) as store:
        fill(store, 20)
        with store._file.opened() as connection:
            connection.execute("UPDATE runs SET started = 1000")
        assert numbers(paged(store.reader, limit=7)) == list(range(19, -1, -1))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        *(
            ({"after": after}, "not a place in the list")
            for after in ("x", "1", "1:", ":1", "1:2:3", "'; DROP TABLE runs; --")
        ),
        ({"sort": "name"}, "not sorted by 'name'"),
    ],
    ids=str,
)
def test_a_place_or_an_order_that_is_none_is_refused(reader, asked, said):
    with pytest.raises(ConfigError, match=said):
        reader.runs(**asked)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (RunQuery(function="f1"), lambda n: n % 3 == 1), (RunQuery(model="large"), lambda n: n % 2 == 1),
        (RunQuery(version="v0b"), lambda n: n % 3 == 0 and n > RUNS // 2),
        (RunQuery(function="f0", version="v0a"), lambda n: n % 3 == 0 and n <= RUNS // 2),
        (RunQuery(status="error"), lambda n: n % 10 == 3), (RunQuery(status="running"), lambda n: n >= RUNS - 3),
        (RunQuery(status="ok", function="f2"), lambda n: n % 3 == 2 and n % 10 != 3 and n < RUNS - 3),
        (RunQuery(error="RateLimited", user=""), lambda n: n % 10 == 3), (RunQuery(user="nobody"), lambda n: False),
        (RunQuery(asked_again=True), lambda n: False), (RunQuery(repaired=False, failed_tries=False), lambda n: True),
        (RunQuery(min_seconds=1.01, max_seconds=1.1), lambda n: 100 <= n < 109),
        (RunQuery(min_cost=0.005), lambda n: n % 2 == 1), (RunQuery(max_cost=0.005), lambda n: False),
        (RunQuery(since=NOW - 60 * 9.5), lambda n: n >= RUNS - 10),
        (RunQuery(until=NOW - 60 * 9.5), lambda n: n < RUNS - 10), (RunQuery(text="NEEDLE"), lambda n: n % 50 == 7),
        (RunQuery(text="needle 57"), lambda n: n == 57),
        (RunQuery(text="答案 12"), lambda n: n == 12 or 120 <= n < 130), (RunQuery(text="请求"), lambda n: n % 10 == 3),
        (RunQuery(text='no "such" thing'), lambda n: False), (RunQuery(parent="f0_00003"), lambda n: n == 4),
        (RunQuery(parent=""), lambda n: not (n % 3 == 1 and n < 30)),
        (RunQuery(session="s2", function="f0"), lambda n: n % 5 == 2 and n % 3 == 0),
        (RunQuery(function="none such"), lambda n: False),
    ],
    ids=named,
)  # fmt: skip
def test_filters(reader, query, expected):
    wanted = [number for number in range(RUNS - 1, -1, -1) if expected(number)]
    assert numbers(reader.runs(query, limit=500).runs) == wanted
    assert reader.count(query) == len(wanted)
    row = metrics(reader, by=(), query=query)
    assert [each.runs for each in row] == ([len(wanted)] if wanted else [])


def test_one_run_is_found_by_id_trace_id_and_its_beginning(reader):
    detail = reader.run("f0_00012")
    assert detail.summary.trace_id == "f0_00012"
    assert reader.run(detail.summary.id) == detail
    assert reader.run("f0_0001") is None, "f0_00012, f0_00015 and f0_00018"
    assert reader.run("f0_00012"[:8]) == detail
    for nothing in ("", "f", "nothing", 10**9, 10**30, -1, "%", "f0_*"):
        assert reader.run(nothing) is None


def test_changes_are_told_in_order_and_once(tmp_path):
    with TraceStore(tmp_path / "r.sqlite", interval=0.01, max_age=None) as store:
        fill(store, 10)
        reader = store.reader
        seq = reader.seq()
        assert reader.runs().seq == seq
        assert reader.changes(seq).runs == []
        assert reader.changes(seq).seq == seq
        store("f1_00007", RunFinished(reply_of("late"), [], Usage(1, 1), 1, "late"))
        assert store.flush()
        changes = reader.changes(seq)
        assert [(run.trace_id, run.status, run.answer) for run in changes.runs] == [("f1_00007", "ok", "late")]
        assert changes.seq > seq
        first = reader.changes(0, limit=4)
        assert first.more
        rest = reader.changes(first.seq, limit=100)
        assert not rest.more
        assert len({run.id for run in [*first.runs, *rest.runs]}) == 10


def test_functions_and_versions(reader):
    functions = reader.functions()
    assert [each.name for each in functions] == ["f2", "f1", "f0"], "the latest first"
    last = functions[-1]
    assert (last.versions, last.latest, last.runs, last.errors) == (2, "v0b", 100, 10)
    new, old = reader.versions("f0")
    assert (new.version, old.version, new.docstring, old.docstring) == ("v0b", "v0a", "Do v0b.", "Do v0a.")
    assert new.runs + old.runs == 100
    assert new.errors + old.errors == 10
    assert old.last_seen < new.last_seen
    assert reader.versions("none such") == []
    assert reader.models() == ["large", "small"]
    assert reader.sessions() == ["s0", "s1", "s2", "s3", "s4"]


# --- by indexes -------------------------------------------------------------------------------------------


def plans(store, read):
    """Return what SQLite does for each statement of `read`, by statement."""
    statements = []
    with store.reader.connection() as connection:
        connection.set_trace_callback(statements.append)
        try:
            read(store.reader)
        finally:
            connection.set_trace_callback(None)
        return {
            statement: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
            for statement in statements
            if statement.lstrip().startswith(("SELECT", "WITH"))
        }


@pytest.mark.parametrize(
    "read",
    [
        lambda reader: reader.changes(5), lambda reader: reader.run(7), lambda reader: reader.run("f0_00012"),
        lambda reader: reader.run("f0_0001"), lambda reader: reader.runs(RunQuery(text="needle")),
        lambda reader: reader.versions("f0"), lambda reader: (reader.models(), reader.errors(), reader.users()),
        lambda reader: reader.runs(RunQuery(min_cost=0.001, asked_again=True), sort="cost"),
        lambda reader: reader.functions(), lambda reader: (reader.conversations(), reader.tree("f0_00012")),
        lambda reader: reader.count(RunQuery(function="f1")),
    ],
)  # fmt: skip
def test_nothing_reads_all_runs_from_end_to_end(store, read):
    found = plans(store, read)
    assert found
    for statement, steps in found.items():
        for step in steps:
            assert not step.startswith("SCAN runs") or "INDEX" in step, (statement, steps)
            for table in ("turns", "tries", "reviews", "tool_calls", "messages", "versions", "prompts"):
                assert not step.startswith(f"SCAN {table}"), (statement, steps)
