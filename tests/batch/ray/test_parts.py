"""What a map on a cluster is made of, without a cluster: what travels, and what is shared."""

from __future__ import annotations

import pickle
import re
import sys

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import ConfigError, OpenAICompatible, UsageError, llm_function, tool, use_llm
from SimpleLLMFunc.batch import RayEngine
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.batch.ray.ray_app import read


class Mood(BaseModel):
    mood: str


def pickled(function, **more):
    cluster = pytest.importorskip("SimpleLLMFunc.batch.ray.cluster")
    pytest.importorskip("ray.cloudpickle", exc_type=ImportError)
    mapped = MappedFunction(function._pipeline)
    data = cluster.shipped(mapped, mapped.reducers)
    return data, cluster.unpacked(data)


async def test_a_function_of_a_module_travels_by_its_name() -> None:
    llm = ScriptedLLM('{"number": 1, "words": []}')
    with use_llm(llm):
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
    with use_llm(llm):
        _, over_there = pickled(function)
        here = MappedFunction(function._pipeline)
        assert over_there.definition() == here.definition()
        asked_here = here.preview(("rain",), {"strict": True}).messages
    assert over_there.name == "tell"
    assert over_there.preview(("rain",), {"strict": True}).messages == asked_here
    answer = await over_there.ask(("rain",), {})
    assert [mood.mood for mood in answer.value] == ["good"]
    assert over_there.llm.requests[-1][-1]["content"] == "4"  # the tool ran


@pytest.mark.heavy
def test_no_key_travels(monkeypatch) -> None:
    canary = "sk-canary-0123456789abcdefghij"
    llm = OpenAICompatible("m", base_url="https://llm.invalid/v1", api_key=canary)

    @llm_function(llm_interface=llm)
    async def tell(text: str) -> str:
        """Tell."""
        raise RuntimeError(canary)  # what a body holds stays here

    data, _ = pickled(tell)
    assert canary.encode() not in data

    @tool
    def look(word: str) -> str:
        """Look it up."""
        return canary

    with pytest.raises(UsageError, match="keys are not sent to workers"):
        pickled(tell.with_options(toolkit=[look]))


def test_settings_that_cannot_be() -> None:
    for wrong in ({"workers": 0}, {"workers": True}, {"workers": 1.5}, {"cpus": -1}, {"cpus": "many"}):
        with pytest.raises(UsageError, match="is a"):
            RayEngine(**wrong)


async def test_without_ray_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with use_llm(ScriptedLLM("x", repeat=True)) as llm:
        with pytest.raises(ConfigError, match=re.escape(install_line("ray"))):
            await read.map(["rain"], engine="ray")
        with pytest.raises(ConfigError, match=re.escape(install_line("ray"))):
            read.as_ray_actor()
    assert not llm.calls


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"concurrency": True}, {"on_error": "ignore"}])
def test_an_actor_that_cannot_be(wrong) -> None:
    with use_llm(ScriptedLLM("x")), pytest.raises(UsageError, match="is"):
        read.as_ray_actor(**wrong)


async def test_an_engine_that_is_none() -> None:
    with use_llm(ScriptedLLM("x")), pytest.raises(UsageError, match="RayEngine"):
        await read.map(["rain"], engine="dask")


def test_plain_code_of_a_method_does_not_travel() -> None:
    class Shop:
        @llm_function(fallback=lambda self, text: "none")
        async def tell(self, text: str) -> str:
            """Tell."""

    with use_llm(ScriptedLLM("x")), pytest.raises(ConfigError, match="need the object"):
        pickle.dumps(Shop().tell._mapped())
