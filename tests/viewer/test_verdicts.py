"""Marks and cases that come from the page."""

from __future__ import annotations

import json

import pytest

from SimpleLLMFunc.errors import ResponseParseError
from SimpleLLMFunc.evaluate import evaluate
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.viewer.exports import as_html
from tests.viewer import shop
from tests.viewer.served import LOOPBACK, app_of, client_of, keep

JSON = {"origin": LOOPBACK, "content-type": "application/json"}


@pytest.fixture
def client(store, tmp_path):
    keep(store, lambda: shop.mood("Thank you!"))
    keep(store, lambda: shop.mood("Hm."))
    broken = shop.mood.with_options(llm_interface=ScriptedLLM("no idea", repeat=True), max_reasks=0, retry_times=0)
    with pytest.raises(ResponseParseError):
        keep(store, lambda: broken("Is it you?"))
    keep(store, lambda: shop.describe("pot"))
    return client_of(app_of(store, allow_run=[shop], cases=tmp_path / "cases"), **JSON)


def post(client, path, code=200, **body):
    reply = client.post(f"/api/{path}", json=body)
    assert reply.status_code == code, reply.text
    return reply.json()


def test_a_mark_is_kept_whole_and_filters_and_exports_show_it(client, store):
    post(client, "runs/1/mark", thumb="down", score=0, tags=["a"], comment="why")
    post(client, "runs/1/mark", thumb="", score=0, tags=["a", "b"], comment="")
    run = store.reader.run(1).summary
    assert (run.thumb, run.score, run.comment, run.tags) == ("", 0.0, "", ["a", "b"])
    (row,) = client.get("/api/runs", params={"tag": "b"}).json()["runs"]
    assert row["tags"] == ["a", "b"]
    assert json.loads(client.get("/api/export/jsonl", params={"marked": "1"}).text)["tags"] == ["a", "b"]
    assert client.get("/api/export/exe").status_code == 404
    assert client.get("/api/filters").json()["tags"] == ["a", "b"]
    for run_, body in (("1", {"thumb": "x"}), ("99", {"thumb": "up"})):
        assert "mark" in post(client, f"runs/{run_}/mark", 400, **body)["error"] or run_ == "99"
    post(client, "runs/x/mark", 400, thumb="up")


def test_runs_become_cases_that_evaluate_reads(client, store, tmp_path):
    edited = {"label": "angry", "confidence": 0.5}
    runs = [{"run": 1}, {"run": 2, "expected": edited}, {"run": 3}, {"run": 4}, {"run": 99}]
    added = post(client, "cases", runs=runs)
    assert [each["count"] for each in added["written"]] == [2, 1]
    skipped = {each["run"]: each["why"][:26] for each in added["skipped"]}
    assert skipped == {3: "The run has no answer: wri", 99: "There is no such run."}
    path = tmp_path / "cases" / "mood.jsonl"
    assert str(path) == added["written"][0]["path"]
    report = evaluate(shop.mood, path, ["exact"], progress=False)
    assert [result.score("exact") for result in report.results] == [1.0, 0.0]
    # Again, edited: the line takes the place of the earlier one.
    post(client, "cases", runs=[{"run": 2, "expected": {"label": "happy", "confidence": 0.92}}])
    assert evaluate(shop.mood, path, ["exact"], progress=False).scores["exact"].mean == 1.0
    assert len(client.get("/api/cases/mood").json()["cases"]) == 2
    assert client.get("/api/cases/..%2Fmood").status_code in {404, 409}
    post(client, "cases", 400, runs=[])


def test_a_damaged_file_of_cases_is_said_and_stays(client, tmp_path):
    path = tmp_path / "cases" / "mood.jsonl"
    path.parent.mkdir()
    path.write_text("no json\n")
    assert "cannot be read" in post(client, "cases", 409, runs=[{"run": 1}])["error"]
    assert path.read_text() == "no json\n"


def test_texts_that_were_masked_are_no_case_and_without_a_folder_nothing_is_written(store, tmp_path):
    keep(store, lambda: shop.mood("my key is sk-abcdefghijklmnopqrstuvwxyz012345"))
    client = client_of(app_of(store, cases=tmp_path / "cases"), **JSON)
    (skipped,) = post(client, "cases", runs=[{"run": 1}])["skipped"]
    assert "masked" in skipped["why"]
    assert not (tmp_path / "cases").exists()
    client = client_of(app_of(store), **JSON)
    post(client, "cases", 404, runs=[{"run": 1}])
    assert client.get("/api/info").json()["cases"] is False


def test_one_run_as_a_page_to_send(client, store, order_run):
    detail = store.reader.run(order_run.trace_id)
    page = client.get(f"/api/runs/{order_run.trace_id}/html").json()["text"]
    assert page == as_html(detail)
    violation = "<pre>float</pre></td><td><pre>&#x27;a lot&#x27;</pre>"
    for part in (shop.LETTER.replace("'", "&#x27;"), violation, "7 on the shelf", "number taken from"):
        assert part in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_page_to_send_holds_no_markup_of_the_model_and_no_secret(store):
    evil = '<img src=x onerror=alert(1)></pre><script>alert("sk-abcdefghijklmnopqrstuvwxyz012345")</script>'
    keep(store, lambda: shop.describe.with_options(llm_interface=ScriptedLLM(evil))("pot"))
    store.mark(1, comment="token sk-abcdefghijklmnopqrstuvwxyz012345")
    page = as_html(store.reader.run(1))
    for evil in ("<img", "<script", "sk-abcdef"):
        assert evil not in page
