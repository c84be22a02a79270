"""Reports of evaluate on the page."""

from __future__ import annotations

import json

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.evaluate import EvalReport, evaluate
from SimpleLLMFunc.observability.store import RunQuery
from tests.viewer import shop
from tests.viewer.served import app_of, client_of, keep

CASES = [({"text": f"letter {number}"}, {"label": "happy", "confidence": 0.5}) for number in range(20)]


def label(value, expected):
    return float(value.label == expected.label)


def report_of(good):
    """An evaluation in which the first `good` cases are right."""

    def reply(request):
        number = int(request.text.split("letter ")[1].split()[0].strip('",'))
        return json.dumps({"label": "happy" if number < good else "angry", "confidence": 0.5})

    llm = shop.PricedLLM(reply, repeat=True)
    return evaluate(shop.mood.with_options(llm_interface=llm), CASES, [label], progress=False)


@pytest.fixture
def paths(tmp_path):
    report_of(8).save(tmp_path / "old.json")
    report_of(16).save(tmp_path / "new.json")
    (tmp_path / "none.json").write_text("{}")
    return [tmp_path / name for name in ("old.json", "new.json", "none.json")]


def test_reports_are_listed_read_and_compared(store, paths):
    client = client_of(app_of(store, reports=paths))
    old, new, none = client.get("/api/reports").json()["reports"]
    assert (old["file"], old["scores"]["label"]["mean"], new["scores"]["label"]["mean"]) == ("old.json", 0.4, 0.8)
    assert "not a report" in none["problem"]
    compared = client.get("/api/reports/0", params={"with": "1"}).json()
    difference = EvalReport.load(paths[0]).compare(EvalReport.load(paths[1])).differences["label"]
    assert compared["differences"]["label"]["p"] == difference.p < 0.05
    assert [case["change"] for case in compared["cases"]] == [1.0] * 8 + [0.0] * 12
    first = compared["cases"][0]
    assert [outcome[0]["value"]["label"] for outcome in first["outcomes"]] == ["angry", "happy"]
    assert client.get("/api/reports/0").json()["second"] is None
    for number in ("3", "-1", "x"):
        assert client.get(f"/api/reports/{number}").status_code == 404
    assert client.get("/api/reports/2").status_code == 409
    with pytest.raises(ConfigError, match="list of paths"):
        app_of(store, reports=str(paths[0]))


def test_two_versions_are_found_on_the_same_arguments(store):
    older, newer = shop.OLDER_READ_ORDER
    for function in (older, newer):
        for letter in ("one", "two", "two"):
            answer = shop.order_json(1.0) if function is newer or letter == "one" else shop.order_json(2.0)
            asked = function.with_options(llm_interface=shop.PricedLLM(answer, repeat=True))
            keep(store, lambda asked=asked, letter=letter: asked(letter))
    keep(store, lambda: older.with_options(llm_interface=shop.PricedLLM(shop.order_json(1.0)))("three"))
    versions = [each.version for each in store.reader.versions("read_order")]
    after, before = (store.reader.runs(RunQuery(version=v)).runs[0].version for v in versions)
    client = client_of(app_of(store))
    pairs = client.get("/api/functions/read_order/same", params={"before": after, "after": before}).json()["pairs"]
    found = {(one["question"], two["question"]): same for one, two, same in pairs}
    assert set(found) == {("one", "one"), ("two", "two")}, "of several with the same arguments the latest"
    assert client.get("/api/functions/read_order/same", params={"before": "x", "after": "y"}).json() == {"pairs": []}
