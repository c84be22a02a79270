"""What is kept of answers names the wire: cache, cassette, lock, checkpoint; an answer of one is never given for another."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest

from SimpleLLMFunc import CachedLLM, OpenAICompatible
from SimpleLLMFunc.lock import check_lock, lock_of, read_lock, write_lock
from SimpleLLMFunc.testing import UnmatchedRequest, use_cassette
from tests.support.functions import async_function_of
from tests.support.server import LoopbackServer
from tests.support.wires import SERVICES, WIRES, has_results, made, said_by, wired


def counter(llm: Any, **options: Any) -> Any:
    return async_function_of(llm, dict[str, int], "count", **options)


def every_wire(request: Any) -> Any:
    """One address behind which each wire is spoken, and says which one it is."""
    name = next(name for name, part in PARTS.items() if part in request.path)
    return said_by(SERVICES[name](), lambda _: json.dumps({name: len(request.path)}))(request)


PARTS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages", "gemini": ":generateContent"}


async def test_a_cache_gives_no_answer_of_another_wire_or_model(tmp_path):
    async with LoopbackServer(every_wire) as server:
        models = [made(name, server, model="m") for name in WIRES] + [made("gemini", server, model="another")]
        answers = []
        for llm in [*models, *models]:
            result = await counter(CachedLLM(llm, tmp_path / "c.sqlite")).call("a b")
            answers.append((result.value, result.cached))
        assert len(server.requests) == 5
        assert [list(value) for value, _ in answers[:5]] == [[name] for name in [*WIRES, "gemini"]]
        assert answers[5:] == [(value, True) for value, _ in answers[:5]]


@pytest.mark.parametrize("name", WIRES)
async def test_a_cassette_plays_tools_and_thinking_of_the_wire_without_a_key(name, tmp_path):
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"rain in {city}"

    def answer(body: Any) -> Any:
        if has_results(body):
            return {"texts": ['{"rain": 1}'], "thinking": "so it rains"}
        return {"calls": [("weather", {"city": "Paris"})], "thinking": "hm", "opaque": True}

    path = tmp_path / "c.json"
    async with wired(name, answer=answer) as (llm, server):
        with use_cassette(path, record="all"):
            assert await counter(llm, toolkit=[weather])("umbrella?") == {"rain": 1}
        assert len(server.requests) == 2
    # Nothing listens there any more; then no model is named, as on a machine that has no key.
    for asked in (llm, None):
        with use_cassette(path, record="none") as cassette:
            assert await counter(asked, toolkit=[weather])("umbrella?") == {"rain": 1}
            assert cassette.replayed == 2
    wires = {each.get("wire") for each in json.loads(path.read_text())["exchanges"]}
    assert wires == {None if name == "chat" else name}


@pytest.mark.parametrize(("one", "other"), [("chat", "responses"), ("responses", "chat")])
async def test_a_cassette_of_one_wire_is_none_of_another(one, other, tmp_path):
    async with LoopbackServer(every_wire) as server:
        with use_cassette(tmp_path / "c.json", record="all"):
            assert one in await counter(made(one, server, model="m"))("a b")
        with use_cassette(tmp_path / "c.json", record="none"), pytest.raises(UnmatchedRequest, match="m by responses"):
            await counter(made(other, server, model="m"))("a b")
        assert len(server.requests) == 1


def test_a_lock_names_the_wire(tmp_path, monkeypatch):
    module: Any = ModuleType("locked_wires")
    monkeypatch.setitem(sys.modules, "locked_wires", module)
    locked = []
    for wire in ("chat", "responses"):
        module.count = counter(OpenAICompatible("m", api_key="k", base_url="https://h/v1", wire=wire))
        module.count._pipeline.definition.func.__module__ = "locked_wires"
        locked.append(lock_of(module))
    chat, responses = locked
    write_lock(tmp_path / "llm.lock", responses, ["locked_wires"])
    assert read_lock(tmp_path / "llm.lock")[0] == responses
    [difference] = check_lock(chat, responses).differences
    assert difference.changed == ("wire",)
    assert "wire" not in next(iter(chat.values())).to_dict()


async def test_a_checkpoint_of_chat_completions_says_how_its_rows_are_kept(tmp_path):
    async with LoopbackServer(every_wire) as server:
        await counter(made("chat", server, model="m")).map(["a"], checkpoint=tmp_path / "c.sqlite")
        with pytest.warns(UserWarning, match='wire="chat" of the model takes them'):
            await counter(made("responses", server, model="m")).map(["a"], checkpoint=tmp_path / "c.sqlite")


@pytest.mark.parametrize("name", WIRES)
async def test_a_checkpoint_names_wire_and_model(name, tmp_path):
    rows = [f"row {number}" for number in range(5)]
    async with wired(name, answer=lambda _: '{"n": 1}') as (llm, server):
        function = counter(llm, max_tokens=50)
        for _ in range(2):
            report = await function.map(rows, checkpoint=tmp_path / "c.sqlite")
            assert [row.value for row in report.rows] == [{"n": 1}] * 5
        assert len(server.requests) == 5
        with pytest.warns(UserWarning, match="with other model"):
            await counter(made(name, server, model="m-2"), max_tokens=50).map(rows, checkpoint=tmp_path / "c.sqlite")
        assert len(server.requests) == 10
