"""What the page is told of runs and functions."""

from __future__ import annotations

import json

import pytest

from SimpleLLMFunc import use_llm
from SimpleLLMFunc.errors import ConfigError, ResponseParseError
from SimpleLLMFunc.observability.store import RunQuery
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.viewer import viewer_app
from tests.viewer import shop
from tests.viewer.served import TOKEN, app_of, client_of, keep


@pytest.fixture
def three(store):
    """A run of each of three functions, the last one failed."""
    keep(store, lambda: shop.mood("Thank you so much!"))
    keep(store, lambda: shop.describe("teapot"))
    broken = shop.mood.with_options(llm_interface=ScriptedLLM("no idea", repeat=True, model_name="other"), max_reasks=1)
    with pytest.raises(ResponseParseError):
        keep(store, lambda: broken("Is it you?"))
    return store


def names(reply):
    assert reply.status_code == 200, reply.text
    return [run["function"] for run in reply.json()["runs"]]


def test_the_list_is_newest_first_and_counted(client, three):
    page = client.get("/api/runs").json()
    newest, _, oldest = page["runs"]
    assert [run["function"] for run in page["runs"]] == ["mood", "describe", "mood"]
    assert (page["total"], page["next"]) == (3, None)
    assert (newest["status"], newest["error"], newest["reasks"]) == ("error", "ResponseParseError", 1)
    assert oldest["cost"] > 0


def test_pages_go_on_where_the_last_one_ended(client, three):
    first = client.get("/api/runs", params={"limit": 2}).json()
    second = client.get("/api/runs", params={"limit": 2, "after": first["next"]}).json()
    assert [run["id"] for run in first["runs"] + second["runs"]] == [3, 2, 1]
    assert second["next"] is None
    assert second["total"] is None, "counted once"


@pytest.mark.parametrize(("query", "found"), [
    ({"status": "ok"}, ["describe", "mood"]), ({"text": "so much"}, ["mood"]), ({"text": '" OR 1 -- %_*'}, []),
    ({"since": "1000"}, ["mood", "describe", "mood"]), ({"function": "mood", "status": "ok"}, ["mood"]),
    ({"function": "x' OR '1'='1"}, []),
], ids=str)  # fmt: skip
def test_it_is_searched_and_filtered(client, three, query, found):
    assert names(client.get("/api/runs", params=query)) == found


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "501"}, {"limit": "x"}, {"limit": "-1"}, {"limit": "٣"}, {"status": "nice"}, {"since": "soon"}, {"since": "nan"}, {"since": "inf"}, {"after": "x"}, {"after": "1:"}, {"after": "nan:1"}]
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused(client, query):
    reply = client.get("/api/runs", params=query)
    assert reply.status_code == 400
    assert reply.json()["error"]


def test_a_place_in_a_conversation_that_makes_no_sense_is_refused(client):
    assert client.get("/api/sessions/s", params={"after": "x"}).status_code == 400


def test_what_is_new_is_told_since_a_number(client, three, store):
    seq = client.get("/api/runs").json()["seq"]
    assert client.get("/api/changes", params={"since": seq}).json()["runs"] == []
    keep(store, lambda: shop.describe("tray"))
    fresh = client.get("/api/changes", params={"since": seq}).json()
    assert [run["function"] for run in fresh["runs"]] == ["describe"]
    assert fresh["seq"] > seq
    assert client.get("/api/changes", params={"since": fresh["seq"]}).json()["runs"] == []


def test_filters_offer_what_there_is(client, three):
    offered = client.get("/api/filters", params={"function": "mood"}).json()
    assert set(offered["functions"]) == {"mood", "describe"}
    assert {"gpt-5-nano", "other"} <= set(offered["models"])
    assert len(offered["versions"]) == 1
    assert offered["statuses"] == ["running", "ok", "error", "cancelled", "lost"]
    assert client.get("/api/filters").json()["versions"] == []


def test_one_run_is_told_whole(client, order_run):
    run = client.get(f"/api/runs/{order_run.trace_id}").json()
    assert run["arguments"] == {"letter": shop.LETTER, "language": "English"}
    assert run["value"]["lines"][0]["price"] == 24.5
    assert [turn["turn"] for turn in run["turns"]] == [1, 2, 3]
    assert run["turns"][0]["request"]["messages"][0]["role"] == "system"
    assert run["turns"][0]["reply"]["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "stock"
    assert [call["content"] for call in run["tool_calls"]] == ["7 on the shelf, 12 on the way", "31 on the shelf"]
    assert [review["accepted"] for review in run["reviews"]] == [False, True]
    assert run["reviews"][0]["violations"] == [["lines[0].price", "float", "'a lot'"]]
    repairs = [["", "JSON found in the text"], ["lines[0].price", "number taken from '24.50 EUR'"]]
    assert run["reviews"][1]["repairs"] == repairs
    assert run["summary"]["id"] == client.get("/api/runs/1").json()["summary"]["id"]


@pytest.mark.parametrize(
    "run", ["2", "0", "-1", "nothing", "%00", "9" * 30, "'; DROP TABLE runs --", "..%2f..%2fetc%2fpasswd"]
)
def test_a_run_that_is_not_there(client, order_run, run):
    assert client.get(f"/api/runs/{run}").status_code == 404
    assert names(client.get("/api/runs")) == ["read_order"]


def test_functions_are_told_with_what_they_took(client, three):
    by_name = {each["name"]: each for each in client.get("/api/functions").json()["functions"]}
    assert (by_name["mood"]["runs"], by_name["mood"]["metrics"]["error_rate"]) == (2, 0.5)
    assert by_name["describe"]["metrics"]["errors"] == 0 <= by_name["describe"]["metrics"]["seconds_p50"]
    assert client.get("/api/functions/nothing").status_code == 404, "it never ran"


def test_versions_of_a_function_are_told_apart(client, store):
    for function in (*shop.OLDER_READ_ORDER, shop.read_order):
        with use_llm(shop.order_llm()):
            keep(store, lambda function=function: function(shop.LETTER))
    found = client.get("/api/functions/read_order").json()
    newest, middle, oldest = found["versions"]
    assert "Look up every item" in newest["docstring"]
    assert middle["docstring"].startswith("Read the order out of a customer's letter.\n\nPrices are in euros.")
    assert oldest["signature"] == "(letter: str) -> Order"
    assert [tool["function"]["name"] for tool in newest["tools"]] == ["stock"]
    assert oldest["tools"] == []
    assert "price" in json.dumps(middle["schema"])
    assert "price" not in json.dumps(oldest["schema"])
    assert len({version["version"] for version in found["versions"]}) == 3
    assert {row["version"] for row in found["series"]} == {version["version"] for version in found["versions"]}
    assert all(row["bucket"] is not None and row["runs"] == 1 for row in found["series"])
    assert {row["runs"] for row in found["metrics"]} == {1}


def test_a_store_that_keeps_no_content_shows_sizes(tmp_path):
    with TraceStore(tmp_path / "r.sqlite", content=False, interval=0.01) as store:
        keep(store, lambda: shop.describe("teapot"))
        client = client_of(app_of(store))
        text = client.get("/api/runs/1").text
        assert "omitted" in text
        assert "litre" not in text
        for what in ("curl", "test"):
            reply = client.get(f"/api/runs/1/{what}")
            assert reply.status_code == 409
            assert "no content" in reply.json()["error"]


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


# --- the store ---


def test_a_path_or_a_reader_will_do(store, order_run):
    for given in (str(store.path), store.path, TraceReader(store.path), store.reader):
        assert names(client_of(viewer_app(given, token=TOKEN)).get("/api/runs")) == ["read_order"]


def test_a_file_that_is_not_there_is_said(tmp_path):
    reply = client_of(viewer_app(tmp_path / "none.sqlite", token=TOKEN)).get("/api/runs")
    assert reply.status_code == 500
    assert "there is no trace store" in reply.json()["error"]
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize("given", [None, 3, "", ...], ids=repr)
def test_something_else_is_no_store(given):
    with pytest.raises(ConfigError, match="store is a TraceStore"):
        viewer_app(given, token=TOKEN)


def test_nothing_can_be_written(client, order_run):
    headers = {"origin": "http://127.0.0.1:8000", "content-type": "application/json"}
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/api/runs", "/api/runs/1", "/api/functions", "/", "/app.js", "/api/play/mood"):
            reply = client.request(method, path, content=b"{}", headers=headers)
            assert reply.status_code in {404, 405}, (method, path)
    assert names(client.get("/api/runs")) == ["read_order"]
