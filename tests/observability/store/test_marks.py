"""Marks: kept with a run, read from Python, found by them, gone with it."""

from __future__ import annotations

import pytest

from SimpleLLMFunc import UsageError, watching
from SimpleLLMFunc.observability.store import RunQuery, TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import function_of

ask = function_of(ScriptedLLM("yes", repeat=True))


@pytest.fixture
def store(tmp_path):
    with TraceStore(tmp_path / "r.sqlite", interval=60) as made:
        yield made


def mark_of(store, run):
    summary = store.reader.run(run).summary
    return summary.thumb, summary.score, summary.comment, summary.tags


def test_a_result_is_marked_before_its_run_was_written(store):
    with watching(store):
        first, second, _third = (ask.call(text) for text in "abc")
    store.mark(first, thumb="up", tags=["good", "good", "short"])
    store.mark(first.trace_id, score=0.5, comment="key sk-abcdefghijklmnopqrstuvwxyz012345")
    store.mark(2, thumb="down", tags=("long",))
    thumb, score, comment, tags = mark_of(store, 1)
    assert (thumb, score, tags) == ("up", 0.5, ["good", "short"])
    assert comment.startswith("key ")
    assert "abcdefghij" not in comment
    reader = store.reader
    queries = [RunQuery(thumb="up"), RunQuery(tag="short"), RunQuery(marked=True), RunQuery(marked=False)]
    assert [[run.id for run in reader.runs(query).runs] for query in queries] == [[1], [1], [2, 1], [3]]
    assert reader.tags() == ["good", "long", "short"]
    seq = reader.seq()
    store.mark(second, forget=True)
    assert mark_of(store, 2) == ("", None, "", [])
    assert [run.id for run in reader.changes(seq).runs] == [2], "a page that is open hears of it"
    store.mark(second, forget=True, score=0)
    assert mark_of(store, 2) == ("", 0.0, "", [])
    with reader.connection() as connection:
        connection.execute("DELETE FROM runs WHERE id = 1")
    assert reader.tags() == [], "a mark goes with its run"


@pytest.mark.parametrize(
    ("run", "given", "said"),
    [
        (99, {"thumb": "up"}, "no run '99'"), ("nobody_1", {"thumb": "up"}, "no run 'nobody_1'"),
        (1, {}, "give a thumb"), (1, {"thumb": "sideways"}, "thumb: Input should be 'up' or 'down'"),
        (1, {"score": float("nan")}, "score: Input should be a finite number"),
        (1, {"score": True}, "score: Input should be a valid number"),
        (1, {"comment": "x" * 10_001}, "comment: .* at most 10000 characters"),
        (1, {"tags": "good"}, "tags: .* list"), (1, {"tags": [""]}, "tags.0: .* at least 1"),
        (1, {"tags": [str(n) for n in range(51)]}, "at most 50"),
    ],
    ids=str,
)  # fmt: skip
def test_what_no_mark_can_hold_is_refused_and_changes_nothing(store, run, given, said):
    with watching(store):
        ask("a")
    store.mark(1, comment="before")
    with pytest.raises(UsageError, match=said):
        store.mark(run, **given)
    assert mark_of(store, 1) == ("", None, "before", [])
