"""What a map on a cluster is made of, without a cluster: what travels, and what is shared."""

from __future__ import annotations

import asyncio
import pickle
import re
import sys

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import BudgetExceeded, ConfigError, UsageError, budget, llm_function, tool, use_llm
from SimpleLLMFunc.batch import RayEngine
from SimpleLLMFunc.batch.ray.engine import Grants
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.interface.spending import scopes_around
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.batch.ray.ray_app import read


class Mood(BaseModel):
    mood: str


async def test_a_function_of_a_module_travels_by_its_name() -> None:
    with use_llm(ScriptedLLM('{"number": 1, "words": []}')):
        data = pickle.dumps(MappedFunction(read._pipeline))
    assert b"tests.batch.ray.ray_app:read" in data
    assert b"Read the text" not in data
    answer = await pickle.loads(data).ask(("rain",), {})
    assert answer.value.number == 1


@pytest.mark.heavy
async def test_a_function_of_no_module_is_the_same_over_there() -> None:
    @tool
    def count(word: str) -> int:
        """Count its letters."""
        return len(word)

    class Reader:
        @llm_function(toolkit=[count], temperature=0.3)
        async def tell(self, text: str, *, strict: bool = False) -> list[Mood]:
            """Tell the mood of a {kind} text."""

    llm = ScriptedLLM(tool_calls(("count", {"word": "rain"})), '[{"mood": "good"}]', repeat=True)
    function = Reader().tell.with_options(template_params={"kind": "short"})
    cluster = pytest.importorskip("SimpleLLMFunc.batch.ray.cluster")
    pytest.importorskip("ray.cloudpickle", exc_type=ImportError)
    with use_llm(llm):
        here = MappedFunction(function._pipeline)
        over_there = cluster.unpacked(cluster.shipped(here, here.reducers))
        assert over_there.definition() == here.definition()
        asked_here = here.preview(("rain",), {"strict": True}).messages
    assert over_there.name == "tell"
    assert over_there.preview(("rain",), {"strict": True}).messages == asked_here
    answer = await over_there.ask(("rain",), {})
    assert [mood.mood for mood in answer.value] == ["good"]
    assert over_there.llm.requests[-1][-1]["content"] == "4"  # the tool ran


def test_settings_and_actors_that_cannot_be() -> None:
    RayEngine(workers=1, cpus=0)  # the least
    for wrong in ({"workers": 0}, {"workers": True}, {"workers": 1.5}, {"cpus": -1}, {"cpus": "many"}):
        with pytest.raises(UsageError, match="is a"):
            RayEngine(**wrong)
    for wrong in ({"concurrency": 0}, {"concurrency": True}, {"on_error": "ignore"}):
        with use_llm(ScriptedLLM("x")), pytest.raises(UsageError, match="is"):
            read.as_ray_actor(**wrong)


async def test_without_ray_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with use_llm(ScriptedLLM("x", repeat=True)) as llm:
        with pytest.raises(ConfigError, match=re.escape(install_line("ray"))):
            await read.map(["rain"], engine="ray")
        with pytest.raises(ConfigError, match=re.escape(install_line("ray"))):
            read.as_ray_actor(concurrency=1)  # the least
    assert not llm.calls


def test_plain_code_of_a_method_does_not_travel() -> None:
    class Shop:
        @llm_function(fallback=lambda self, text: "none")
        async def tell(self, text: str) -> str:
            """Tell."""

    with use_llm(ScriptedLLM("x")), pytest.raises(ConfigError, match="need the object"):
        pickle.dumps(Shop().tell._mapped())


async def test_what_is_left_is_cut_for_the_places_and_comes_back() -> None:
    with budget(requests=10, usd=1.0) as spent:
        grants = Grants(scopes_around())
        given = [await grants.take(4) for _ in range(4)]
        assert [grant["requests"] for grant in given] == [2, 2, 3, 3]
        assert sum(grant["usd"] for grant in given) == pytest.approx(1.0)
        assert all(grant["tokens"] is None for grant in given)
        assert spent.left_of("requests") == 0
        grants.give_back(given[0], (1, 8, 0.1))
        grants.give_back(given[1], None)  # of a row that was cancelled
        assert spent.left_of("requests") == 2
        assert (spent.tokens, spent.usd) == (8, 0.1)
        for grant in given[2:]:
            grants.give_back(grant, (2, 0, 0.0))
    assert spent.requests == 6
    assert spent.left_of("usd") == pytest.approx(0.9)


async def test_a_row_waits_until_there_is_as_much_as_rows_need() -> None:
    with budget(requests=10):
        grants = Grants(scopes_around())
        first = await grants.take(1)
        grants.give_back(first, (2, 0, 0.0))
        second, third = await grants.take(2), await grants.take(2)  # a row may need four
        assert (second["requests"], third["requests"]) == (4, 4)
        waiting = asyncio.create_task(grants.take(2))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        grants.give_back(second, (2, 0, 0.0))
        grants.give_back(third, (4, 0, 0.0))
        last = await waiting
        assert last["requests"] == 2  # no other row will bring any back
        grants.give_back(last, (1, 0, 0.0))
        grants.give_back(await grants.take(2), (1, 0, 0.0))  # of the very last request
        with pytest.raises(BudgetExceeded, match="10 requests"):
            await grants.take(2)


async def test_a_part_that_was_too_small_is_made_larger_where_there_is_more() -> None:
    with budget(tokens=100) as spent:
        grants = Grants(scopes_around())
        first, second = await grants.take(2), await grants.take(2)
        assert first["tokens"] == second["tokens"] == 50
        assert (spent.requests, spent.usd) == (0, 0)
        error = BudgetExceeded("tokens", limit=50, spent=0, needed=90)
        grants.give_back(first, (0, 0, 0.0))
        assert grants.has_more(error, (0, 0, 0.0))
        grants.give_back(second, (1, 10, 0.0))
        assert grants.has_more(error, (0, 0, 0.0))
        assert not grants.has_more(BudgetExceeded("tokens", limit=50, spent=0, needed=91), (0, 0, 0.0))
        assert (await grants.take(2))["tokens"] == 90
        assert not grants.has_more(error, (1, 0, 0.0))  # it would be paid twice
        assert grants.exceeded(error).limit == 100
        assert spent.tokens == 10


async def test_the_strictest_scope_counts_and_all_are_settled() -> None:
    with budget(requests=9) as outer, budget(requests=4, tokens=1_000) as inner:
        grants = Grants(scopes_around())
        grant = await grants.take(1)
        assert (grant["requests"], grant["tokens"]) == (4, 1_000)
        grants.give_back(grant, (3, 30, 0.0))
        assert outer.requests == inner.requests == 3
        assert outer.tokens == inner.tokens == 30
        assert grants.exceeded(BudgetExceeded("requests", limit=1, spent=1)).limit == 4
        own = BudgetExceeded("usd", limit=1, spent=1)  # a budget that a tool keeps
        assert grants.exceeded(own) is own
