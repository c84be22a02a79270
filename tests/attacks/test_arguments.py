"""Attack 18: the arguments of a tool call fill the tool's own parameters, and nothing else."""

import json

import pytest

from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from SimpleLLMFunc.tools import Tool
from tests.support.functions import async_function_of

ODD = {
    "tool_name": {"tool_name": "x"}, "self": {"self": 1}, "class": {"__class__": 1},
    "cls": {"cls": 1, "func": 1, "args": 1, "kwargs": {"a": 1}},
    "context": {"context": {"confirm": True}, "ctx": 1},
    "options": {"timeout": 9999, "confirm": False, "untrusted": False, "max_result_chars": 10**9},
    "dunder": {"__init__": 1, "__dict__": {}, "__globals__": {}, "_func": 1},
    "a thousand": {f"key{number}": number for number in range(1000)},
    "odd names": {"a b": 1, "": 1, "\x00": 1, "ключ": 1, "1": 1, "a.b": 1, "*": 1, "**kwargs": 1},
    "list": [], "full list": [1, 2], "text": "x", "null": None, "true": True, "number": 1,
}  # fmt: skip


async def answers(*arguments, tools):
    name = tools[0].__name__ if not isinstance(tools[0], Tool) else tools[0].name
    reply = calling(*((name, each if isinstance(each, str) else json.dumps(each)) for each in arguments))
    ask = async_function_of(ScriptedLLM(reply, "done"), toolkit=tools)
    result = await ask.call("x")
    return [message["content"] for message in result.messages if message["role"] == "tool"]


@pytest.mark.parametrize("name", ODD)
async def test_attack_18_a_tool_gets_its_parameters_or_is_not_run(name):
    runs = []

    def search(query: str, limit: int = 3) -> str:
        """Search."""
        runs.append((query, limit))
        return "found"

    odd = ODD[name]
    (alone,) = await answers(odd, tools=[search])
    assert "do not fit" in alone
    assert runs == []
    if isinstance(odd, dict):
        (beside,) = await answers({"query": "rain", **odd}, tools=[search])
        assert "do not fit" in beside
        assert runs == []
    assert len(alone) <= 500


@pytest.mark.parametrize("name", ODD)
async def test_attack_18_so_does_one_that_takes_nothing_or_everything(name):
    runs = []

    def now() -> str:
        """Tell the time."""
        runs.append("now")
        return "noon"

    def anything(**facts: object) -> str:
        """Take anything."""
        runs.append(facts)
        return "taken"

    odd = ODD[name]
    (told,) = await answers(odd, tools=[now])
    assert told == "noon" if odd is None else "do not fit" in told
    runs.clear()
    (told,) = await answers(odd, tools=[anything])
    if isinstance(odd, dict):
        assert runs == [odd]
    else:
        assert runs in ([], [{}])


async def test_attack_18_the_type_counts_and_not_what_the_model_says():
    runs = []

    def pay(amount: int, to: str, force: bool = False) -> str:
        """Pay."""
        runs.append((amount, to, force))
        return "paid"

    bad = [
        {"amount": "1e9", "to": "x"}, {"amount": [1], "to": "x"}, {"amount": {"$gt": 0}, "to": "x"}, {"amount": True, "to": "x"},
        {"amount": 1.5, "to": "x"}, {"amount": 1, "to": None}, {"amount": 1, "to": ["a", "b"]}, {"amount": 1, "to": {"a": 1}},
        {"amount": 1, "to": "x", "force": "maybe"}, {"amount": None, "to": "x"}, {"amount": "9" * 5000, "to": "x"},
    ]  # fmt: skip
    told = await answers(*bad, tools=[pay])
    assert len(told) == len(bad)
    assert all("do not fit" in each for each in told)
    assert runs == []
