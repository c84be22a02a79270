"""Files that the program names: maps, reports and journals on the page, and no other file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import threading
from dataclasses import dataclass
from typing import Literal

import pytest

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.evaluate import EvalReport, evaluate
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.waiting import sell, waiting
from tests.viewer import shop
from tests.viewer.served import Served, app_of, client_of


@pytest.mark.parametrize("option", ["checkpoints", "reports", "journals"])
def test_files_are_a_list(store, option):
    with pytest.raises(ConfigError, match=f"{option} is a list of paths"):
        app_of(store, **{option: "moods.sqlite"})


# --- maps: how far, what failed, which rows; also while they are written ---


@dataclass
class Mood:
    label: Literal["happy", "angry"]


def llm():
    def reply(request):
        number = int(request.text.split("row ")[1].split()[0])
        if number % 5 == 0:
            return "no idea"
        return '{"label": "happy"}' if number % 2 else '{"label": "angry"}'

    return ScriptedLLM(reply, repeat=True)


@llm_function(llm_interface=llm(), max_reasks=0)
def mood(text: str) -> Mood:
    """Say the mood."""


def rows(count):
    return [{"text": f"row {number} sk-abcdefghijklmnopqrstuv01234"} for number in range(1, count + 1)]


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "moods.sqlite"
    mood.map(rows(120), checkpoint=path)
    return path


def change(checkpoint, *statements):
    """Change a checkpoint as another program might."""
    with contextlib.closing(sqlite3.connect(checkpoint)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def client(store, checkpoint):
    return client_of(app_of(store, checkpoints=[checkpoint]))


def test_a_checkpoint_is_told_in_short(client, checkpoint):
    (found,) = client.get("/api/maps").json()["maps"]
    assert (found["name"], found["values"], found["errors"]) == ("moods.sqlite", 96, 24)
    assert (found["functions"], found["writer"], found["problem"]) == (["mood"], None, "")
    assert client.get("/api/info").json()["maps"] == 1


def test_how_far_the_latest_map_is_is_told_where_its_length_is_known(client, checkpoint):
    (found,) = client.get("/api/maps").json()["maps"]
    assert found["progress"] == {"done": 120, "total": 120, "share": 1.0, "seconds_left": None}
    mood.map(rows(160), checkpoint=checkpoint, budget={"requests": 20}, concurrency=1)
    assert client.get("/api/maps/0").json()["progress"]["share"] == 140 / 160
    tables = ("maps", "batches", "requests", "answers")
    change(checkpoint, *(f"DROP TABLE {table}" for table in tables), "PRAGMA user_version = 1")
    (older,) = client.get("/api/maps").json()["maps"]
    assert (older["progress"], older["values"] + older["errors"], older["problem"]) == (None, 140, "")


def test_failures_are_told_by_kind_and_versions_apart(client, checkpoint):
    changed = mood.with_options(llm_interface=ScriptedLLM('{"label": "happy"}', repeat=True, model_name="other"))
    with pytest.warns(UserWarning, match="with other model"):
        changed.map(rows(10), checkpoint=checkpoint)
    found = client.get("/api/maps/0").json()
    assert found["kinds"] == [{"kind": "ResponseParseError", "count": 24}]
    newest, oldest = found["versions"]
    assert (newest["model"], newest["values"], newest["errors"]) == ("other", 10, 0)
    assert (oldest["values"], oldest["errors"]) == (96, 24)


def test_rows_come_in_pages_with_what_was_given(client):
    first = client.get("/api/maps/0/rows").json()
    assert len(first["rows"]) == 50
    assert first["rows"][0]["value"] in ({"label": "happy"}, {"label": "angry"}, None)
    assert first["rows"][0]["given"]["text"].startswith("row ")
    seen, before = [], ""
    while before is not None:
        page = client.get("/api/maps/0/rows", params={"before": before}).json()
        seen += [row["id"] for row in page["rows"]]
        before = page["next"]
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == 120
    assert not any(row["damaged"] for row in first["rows"])


def test_rows_that_failed_say_why(client):
    failed = client.get("/api/maps/0/rows", params={"error": "*"}).json()["rows"]
    assert len(failed) == 24
    assert {row["error"] for row in failed} == {"ResponseParseError"}
    assert "no idea" in failed[0]["message"]
    assert client.get("/api/maps/0/rows", params={"error": "ResponseParseError"}).json()["rows"] == failed
    assert client.get("/api/maps/0/rows", params={"error": "Other"}).json()["rows"] == []
    assert client.get("/api/maps/0/rows", params={"error": "x' OR '1'='1"}).json()["rows"] == []
    assert client.get("/api/maps/0/rows", params={"error": "\x00\n"}).json()["rows"] == []


def test_no_secret_of_a_row_is_shown(client):
    for path in ("maps", "maps/0", "maps/0/rows"):
        assert "abcdefghijklmnopqrstuv" not in client.get(f"/api/{path}").text


def test_it_is_read_while_a_map_writes_it(store, tmp_path):
    path = tmp_path / "live.sqlite"
    half, go_on = threading.Event(), threading.Event()
    seen = []

    def reply(request):
        async def wait():
            seen.append(1)
            if len(seen) > 20:
                half.set()
                while not go_on.is_set():
                    await asyncio.sleep(0.01)
            return '{"label": "happy"}'

        return wait()

    running = mood.with_options(llm_interface=ScriptedLLM(reply, repeat=True))
    worker = threading.Thread(target=lambda: running.map(rows(40), checkpoint=path, concurrency=2))
    client = client_of(app_of(store, checkpoints=[path]))
    assert "nothing in it yet" in client.get("/api/maps").json()["maps"][0]["problem"]
    worker.start()
    assert half.wait(20)
    (found,) = client.get("/api/maps").json()["maps"]
    assert 0 < found["values"] <= 21
    assert "process" in found["writer"]
    assert len(client.get("/api/maps/0/rows").json()["rows"]) >= found["values"]
    go_on.set()
    worker.join(20)
    (found,) = client.get("/api/maps").json()["maps"]
    assert (found["values"], found["writer"]) == (40, None)


@pytest.mark.parametrize("number", ["1", "99", "-1", "x", "0x0", "..%2f..%2fetc%2fpasswd", "%00"])
def test_only_what_was_named_is_read(client, number):
    for path in (f"maps/{number}", f"maps/{number}/rows"):
        assert client.get(f"/api/{path}").status_code in {400, 404}


@pytest.mark.parametrize("query", [{"before": "x"}, {"before": "1; DROP TABLE rows"}, {"before": "9" * 30}])
def test_numbers_are_numbers(client, query):
    assert client.get("/api/maps/0/rows", params=query).status_code == 400


def test_a_damaged_row_is_shown_as_such(client, checkpoint):
    change(checkpoint, "UPDATE rows SET answer = x'7a7a' WHERE id = 120")
    assert client.get("/api/maps/0/rows").json()["rows"][0]["damaged"] is True


@pytest.mark.parametrize(
    "content", [b"", b"my notes", b"SQLite format 3\x00" + b"x" * 4000], ids=["empty", "notes", "cut"]
)
def test_what_is_no_checkpoint_is_said_and_left_alone(store, tmp_path, content):
    path = tmp_path / "odd.sqlite"
    path.write_bytes(content)
    client = client_of(app_of(store, checkpoints=[path, tmp_path / "missing.sqlite"]))
    for found in client.get("/api/maps").json()["maps"]:
        assert found["problem"]
        assert client.get(f"/api/maps/{found['number']}").json()["problem"]
        assert client.get(f"/api/maps/{found['number']}/rows").status_code == 409
    assert path.read_bytes() == content
    assert sorted(each.name for each in tmp_path.iterdir() if "runs" not in each.name) == ["odd.sqlite"]


def test_a_trace_store_is_no_checkpoint(store):
    store.reader.seq()
    (found,) = client_of(app_of(store, checkpoints=[store.path])).get("/api/maps").json()["maps"]
    assert "not a checkpoint" in found["problem"]


def test_a_format_of_another_version_is_said(client, checkpoint):
    change(checkpoint, "PRAGMA user_version = 99")
    assert "format 99" in client.get("/api/maps").json()["maps"][0]["problem"]


# --- reports of evaluate ---

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


# --- runs that wait: shown with what they ask, and answered once ---


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "orders.sqlite"


@pytest.fixture
def asking(store, journal):
    return client_of(app_of(store, journals=[journal]))


def test_what_waits_is_shown_and_answered(asking, journal):
    assert asking.get("/api/info").json()["journals"] == 1
    assert asking.get("/api/waiting").json()["journals"][0]["waiting"] == []
    asks, lost = waiting(journal)
    (shown,) = asking.get("/api/waiting").json()["journals"]
    assert (shown["name"], shown["problem"], shown["waiting"]) == ("orders.sqlite", "", [asks, lost])
    for each, said in ((asks, {"answer": "Give a voucher."}), (lost, {"run_again": True})):
        where = {"key": each["key"], "call_id": each["call_id"]}
        assert asking.post("/api/waiting/0", json={**where, **said, "result": 1}).status_code == 409
        assert asking.post("/api/waiting/0", json={**where, **said}).json() == {"answered": True}
        again = asking.post("/api/waiting/0", json={**where, **said})
        assert (again.status_code, "has been answered" in again.json()["error"]) == (409, True)
    assert asking.get("/api/waiting").json()["journals"][0]["waiting"] == []
    assert sell(journal, "asks") == "Give a voucher."
    assert sell(journal, "lost", confirm=False) == "paid 3"


def test_only_what_was_named_is_answered_and_only_to_the_page(store, asking, journal):
    (asks, _) = waiting(journal)
    said = {"key": "asks", "call_id": asks["call_id"], "answer": True}
    for number in ("1", "-1", "x", "9" * 20):
        assert asking.post(f"/api/waiting/{number}", json=said).status_code in {404, 405}
    broken = asking.post("/api/waiting/0", content=b"[", headers={"content-type": "application/json"})
    assert broken.status_code == 400
    stranger = client_of(app_of(store, journals=[journal]), **{"X-SimpleLLMFunc-Token": "wrong"})
    assert stranger.post("/api/waiting/0", json=said).status_code == 401
    assert asking.post("/api/waiting/0", json=said, headers={"origin": "http://evil"}).status_code == 403
    journal.write_bytes(b"no journal at all")
    assert "cannot be used" in asking.get("/api/waiting").json()["journals"][0]["problem"]


@pytest.mark.heavy
def test_the_view_in_a_browser(store, journal, browser):
    waiting(journal)
    with Served(app_of(store, journals=[journal])) as served:
        page = browser.new_page()
        page.goto(served.address)
        page.keyboard.press("w")
        page.get_by_role("heading", name="pay").first.wait_for()
        assert page.get_by_role("listitem").count() == 2
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("What has it done?").wait_for()
        page.get_by_role("listitem").nth(1).wait_for(state="detached")
        page.get_by_role("textbox").fill("receipt 7")
        page.get_by_role("button", name="Answer with the text").click()
        page.get_by_text("Nothing waits").wait_for()
    assert sell(journal, "asks") == "paid 3"
    assert json.dumps(sell(journal, "lost", confirm=False)) == '"receipt 7"'
