"""Runs as tables: all that a filter shows, in its order, readable by what reads such files."""

from __future__ import annotations

import csv
import io
import json

import pytest

from SimpleLLMFunc import ConfigError, watching
from SimpleLLMFunc.observability.store import RunQuery, TraceStore, exported_runs
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import function_of

ROWS = 450
"""More than two pages."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    ask = function_of(ScriptedLLM(lambda request: f'{{"n": {len(request.text)}}}', repeat=True), dict[str, int])
    with TraceStore(tmp_path_factory.mktemp("store") / "r.sqlite", interval=0.01) as made:
        with watching(made):
            for number in range(ROWS):
                ask(f"={number}\ud800")
        made.mark(7, thumb="up", score=0.5, comment="=cmd()", tags=["a", "b"])
        with made._file.opened() as connection:
            connection.execute("UPDATE runs SET seconds = id % 50, cost = NULL")
        yield made


def test_each_form_holds_the_same_rows(store):
    arrow = pytest.importorskip("pyarrow.parquet")
    made = {form: b"".join(exported_runs(store.reader, form, sort="seconds")) for form in ("csv", "jsonl", "parquet")}
    lines = [json.loads(line) for line in made["jsonl"].splitlines()]
    table = arrow.read_table(io.BytesIO(made["parquet"])).to_pylist()
    cells = list(csv.DictReader(io.StringIO(made["csv"].decode("utf-8-sig"))))
    assert [row["id"] for row in lines] == [row["id"] for row in table] == [int(row["id"]) for row in cells]
    assert len({row["id"] for row in lines}) == ROWS
    assert [row["seconds"] for row in lines] == sorted((row["seconds"] for row in lines), reverse=True)
    plain, flat, cell = (next(row for row in rows if str(row["id"]) == "7") for rows in (lines, table, cells))
    assert plain["arguments"] == {"text": "=6\ud800"} == json.loads(flat["arguments"]) == json.loads(cell["arguments"])
    assert plain["value"] == json.loads(flat["value"]) == json.loads(cell["value"])
    assert (plain["thumb"], plain["score"], plain["tags"], flat["score"]) == ("up", 0.5, ["a", "b"], 0.5)
    assert (plain["comment"], cell["comment"]) == ("=cmd()", "'=cmd()"), "no formula for a spreadsheet"
    assert flat["cost"] is None


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_filter_narrows_it(store, form):
    all_of = len(b"".join(exported_runs(store.reader, form)))
    one = b"".join(exported_runs(store.reader, form, RunQuery(tag="a")))
    assert 0 < len(one) < all_of
    assert len(b"".join(exported_runs(store.reader, form, RunQuery(function="none")))) < len(one)


def test_a_form_or_a_status_that_is_unknown_is_refused(store):
    with pytest.raises(ConfigError, match=r"'xml'. Known: csv"):
        exported_runs(store.reader, "xml")
    with pytest.raises(ConfigError, match=r"'done'. Known: running, ok"):
        store.reader.runs(RunQuery(status="done"))
