"""What waits for an answer, over HTTP: for those who have a key, and answered once."""

from __future__ import annotations

import json

import pytest

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.serve import Callers
from SimpleLLMFunc.serve.http_callers import CallerEntry, hash_of
from SimpleLLMFunc.testing import ScriptedLLM
from tests.serve.test_http import serving
from tests.support.waiting import sell, waiting


@llm_function(llm_interface=ScriptedLLM())
def ask(thing: str) -> str:
    """Ask."""


KEY = {"authorization": "Bearer slf_key"}


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "orders.sqlite"


async def got(session, method, *, status=200, **options):
    async with session.request(method, "/waiting", **options) as response:
        assert response.status == status, await response.text()
        return json.loads(await response.read())


async def test_what_waits_is_answered_by_those_who_have_a_key(journal):
    callers = Callers([CallerEntry(name="ann", sha256=hash_of("slf_key"))])
    async with serving(ask, callers=callers, journal=journal) as session:
        for method in ("GET", "POST"):
            await got(session, method, status=401)
        assert await got(session, "GET", headers=KEY) == {"waiting": []}
        asks, lost = waiting(journal)
        assert await got(session, "GET", headers=KEY) == {"waiting": [asks, lost]}
        for each, said in ((asks, {"answer": True}), (lost, {"result": "receipt 7"})):
            body = {"key": each["key"], "call_id": each["call_id"]}
            problem = await got(session, "POST", status=409, headers=KEY, json=body)
            assert "give one of" in problem["detail"]
            assert await got(session, "POST", headers=KEY, json={**body, **said}) == {"answered": True}
            await got(session, "POST", status=409, headers=KEY, json={**body, **said})
        await got(session, "POST", status=400, headers={**KEY, "content-type": "application/json"}, data=b"{")
        await got(session, "POST", status=422, headers=KEY, json=[])
        async with session.get("/openapi.json", headers=KEY) as response:
            assert set((await response.json())["paths"]["/waiting"]) == {"get", "post"}
    assert sell(journal, "asks") == "paid 3"
    assert sell(journal, "lost", confirm=False) == "receipt 7"


async def test_without_a_journal_there_is_no_door():
    async with serving(ask) as session:
        await got(session, "GET", status=404)
