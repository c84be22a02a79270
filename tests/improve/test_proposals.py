"""Other wordings: what a proposer is shown, what becomes of what it says."""

import json
import re
import sys
from typing import Literal
from unittest.mock import AsyncMock, Mock

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import ConfigError, UsageError, llm_function
from SimpleLLMFunc.improve import Gepa, Proposer, Wording
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import NATIVE

QUIET = {"progress": False}


class Kind(BaseModel):
    label: Literal["fizz", "plain"] = Field(description="which kind")


def kind(number):
    return "fizz" if number % 3 == 0 else "plain"


def cases(count):
    return [(number, {"label": kind(number)}) for number in range(count)]


def model():
    """Knows what fizz is only where the rule's words stand in the prompt."""

    def reply(request):
        number = int(re.search(r"number: (\d+)", request.text)[1])
        knows = "multiple of three" in str(request.messages[0]) + str(request.response_format)
        return json.dumps({"label": kind(number) if knows else "plain"})

    return ScriptedLLM(reply, repeat=True, profile=NATIVE)


def function(llm):
    @llm_function(llm)
    async def tell(number: int) -> Kind:
        """Say what kind of number it is."""

    return tell


def proposing(docstring="", label=""):
    said = {"mistake": "-", "docstring": docstring, "descriptions": [{"field": "label", "description": label}]}
    return ScriptedLLM(json.dumps(said), repeat=True, profile=NATIVE)


@pytest.mark.parametrize(
    ("docstring", "label", "what"),
    [
        ("Say fizz for a multiple of three.", "which kind", "docstring"),
        ("Say what kind of number it is.", "fizz for a multiple of three", "descriptions"),
    ],
)
async def test_words_that_help_are_found_and_kept(tmp_path, docstring, label, what):
    llm, proposer, path = model(), proposing(docstring, label), tmp_path / "f.json"
    tell = function(llm)
    found = await tell.improve(cases(60), budget=200, proposer=proposer, path=path, **QUIET)
    assert found.accepted
    assert [change.what for change in found.changes] == [what]
    assert found.spent.requests == len(llm.calls) + len(proposer.calls) <= 200
    again = tell.with_options(improvement=path)
    by_mode = [again.with_options(output_mode=mode) for mode in ("prompt", "tool")]
    for better in (found.function, again, *by_mode):
        assert "multiple of three" in better.preview(1).messages[0]["content"]
    assert ("multiple of three" in json.dumps(again.preview(1).response_format)) == (what == "descriptions")
    assert (await again(3)) == Kind(label="fizz")
    # It was shown wrong answers of the train part, with what was expected.
    told = "\n".join(call.text for call in proposer.calls)
    numbers = {int(number) for number in re.findall(r"arguments: number: (\d+)", told)}
    for expected in ("fizz", "plain"):
        assert f'expected: {{"label": "{expected}"}}\nanswered: {{"label": "plain"}}' in told
    assert len({call.text for call in proposer.calls}) == 4
    tested = {int(re.search(r"number: (\d+)", call.text)[1]) for call in llm.calls[18:]}
    assert not numbers & tested


async def test_a_proposer_that_says_nothing_usable_costs_its_requests_and_no_more():
    rubbish = ScriptedLLM("I cannot do that.", repeat=True, profile=NATIVE)
    found = await function(model()).improve(cases(60), budget=200, proposer=rubbish, **QUIET)
    assert not found.accepted
    assert len(rubbish.calls) == 12  # four proposals, each asked for again twice
    perfect = ScriptedLLM(
        lambda asked: json.dumps({"label": kind(int(re.search(r"r: (\d+)", asked.text)[1]))}), repeat=True
    )
    idle = proposing("x")
    await function(perfect).improve(cases(60), budget=200, proposer=idle, **QUIET)
    assert idle.calls == []  # nothing went wrong, so there is nothing to learn


async def test_a_proposer_of_ones_own_tries_wordings_within_the_budget():
    seen = []

    class Own:
        async def propose(self, task, *, seed, options):
            assert (task.signature, task.wording.descriptions) == ("tell(number: int) -> Kind", {"label": "which kind"})
            for words in ("Say something.", "Say fizz for a multiple of three."):
                tried = await task.tried(Wording(words, {}), range(task.cases))
                seen.append(sum(each.score for each in tried))
            return [Wording("Say fizz for a multiple of three.", {"nothing": "is called so"})]

    own = Own()
    assert isinstance(own, Proposer)
    llm = model()
    found = await function(llm).improve(cases(60), budget=200, proposer=own, **QUIET)
    assert found.accepted
    assert seen[0] < seen[1] == 18
    assert len(llm.calls) <= 200

    class Greedy:
        async def propose(self, task, *, seed, options):
            assert (task.cases, task.questions) == (14, 42)  # a third of what is not kept for the end
            for words in ("One.", "Two.", "Three.", "Four."):
                await task.tried(Wording(words, {}), range(task.cases))
                seen.append(task.questions)
            raise AssertionError("the budget is at its end")

    await function(model()).improve(cases(60), budget=90, proposer=Greedy(), **QUIET)
    assert seen[2:] == [28, 14, 0]
    keyless = ScriptedLLM(ConfigError("there is no key"), repeat=True, profile=NATIVE)
    with pytest.raises(ConfigError, match="there is no key"):
        await function(llm).improve(cases(60), proposer=keyless, **QUIET)
    with pytest.raises(UsageError, match="proposer is a model"):
        await function(llm).improve(cases(60), proposer="gpt", **QUIET)
    for said in (None, "abc", [None], [Wording(5, {})], [Wording("a", None)], [Wording("a", {"label": 5})]):
        with pytest.raises(UsageError, match=r"Mock\.propose returns a list of Wording"):
            await function(llm).improve(cases(60), proposer=Mock(propose=AsyncMock(return_value=said)), **QUIET)


async def test_gepa_is_one_proposer():
    pytest.importorskip("gepa", reason="the extra improve")
    shown = []

    def reflect(request):
        shown.append(request.text)
        return "```\nSay fizz for a multiple of three.\n```"

    llm, proposer = model(), ScriptedLLM(reflect, repeat=True)
    found = await function(llm).improve(cases(60), budget=300, proposer=Gepa(proposer), **QUIET)
    assert found.accepted
    assert found.changes[0].now == "Say fizz for a multiple of three."
    assert found.spent.requests == len(llm.calls) + len(proposer.calls) <= 300
    assert '"label": "fizz"' in shown[0]


async def test_without_the_package_gepa_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gepa", None)
    with pytest.raises(ConfigError, match=r"improve"):
        await function(model()).improve(cases(60), budget=300, proposer=Gepa(model()), **QUIET)
