"""Runs that wait, on the page: shown with what they ask, answered once, and no other file is named."""

from __future__ import annotations

import json

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.viewer import viewer_app
from tests.support.waiting import sell, waiting
from tests.viewer.served import TOKEN, Served, app_of, client_of


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "orders.sqlite"


@pytest.fixture
def client(store, journal):
    return client_of(app_of(store, journals=[journal]))


def test_what_waits_is_shown_and_answered(client, journal):
    assert client.get("/api/info").json()["journals"] == 1
    assert client.get("/api/waiting").json()["journals"][0]["waiting"] == []
    asks, lost = waiting(journal)
    (shown,) = client.get("/api/waiting").json()["journals"]
    assert (shown["name"], shown["problem"], shown["waiting"]) == ("orders.sqlite", "", [asks, lost])
    for each, said in ((asks, {"answer": "Give a voucher."}), (lost, {"run_again": True})):
        where = {"key": each["key"], "call_id": each["call_id"]}
        assert client.post("/api/waiting/0", json={**where, **said, "result": 1}).status_code == 409
        assert client.post("/api/waiting/0", json={**where, **said}).json() == {"answered": True}
        again = client.post("/api/waiting/0", json={**where, **said})
        assert (again.status_code, "has been answered" in again.json()["error"]) == (409, True)
    assert client.get("/api/waiting").json()["journals"][0]["waiting"] == []
    assert sell(journal, "asks") == "Give a voucher."
    assert sell(journal, "lost", confirm=False) == "paid 3"


def test_only_what_was_named_is_answered_and_only_to_the_page(store, client, journal):
    (asks, _) = waiting(journal)
    said = {"key": "asks", "call_id": asks["call_id"], "answer": True}
    for number in ("1", "-1", "x", "9" * 20):
        assert client.post(f"/api/waiting/{number}", json=said).status_code in {404, 405}
    broken = client.post("/api/waiting/0", content=b"[", headers={"content-type": "application/json"})
    assert broken.status_code == 400
    stranger = client_of(app_of(store, journals=[journal]), **{"X-SimpleLLMFunc-Token": "wrong"})
    assert stranger.post("/api/waiting/0", json=said).status_code == 401
    assert client.post("/api/waiting/0", json=said, headers={"origin": "http://evil"}).status_code == 403
    journal.write_bytes(b"no journal at all")
    assert "cannot be used" in client.get("/api/waiting").json()["journals"][0]["problem"]
    with pytest.raises(ConfigError):
        viewer_app(store, token=TOKEN, journals="orders.sqlite")


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
