"""Tools of other packages: objects of the shapes that they have, and what is missing."""

import asyncio
import functools
import inspect
from types import SimpleNamespace
from typing import get_type_hints

import pytest
from pydantic import BaseModel, TypeAdapter

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import Tool, as_tool

_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Arguments(BaseModel):
    """A class of arguments, as LangChain's tools have."""

    a: int


class LangChainTool:
    name, description, args_schema = "double", "Twice.", Arguments

    async def ainvoke(self, given: dict[str, int]) -> int:
        return given["a"] * 2

    def as_tool(self, arg_types: object) -> object:
        raise AssertionError("every Runnable has one; it makes no tool of ours")


class LlamaIndexTool:
    metadata = SimpleNamespace(name="double", description="Twice.", get_parameters_dict=lambda: _SCHEMA)

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise AssertionError("the async door is the one to take")

    async def acall(self, a: int) -> object:
        failed = a == 0
        error = ValueError("no zero") if failed else None
        return SimpleNamespace(content=str(a * 2), raw_output=a * 2, is_error=failed, exception=error)


class PydanticAITool:
    name, description, takes_ctx = "double", "Twice.", False

    class function_schema:
        json_schema = _SCHEMA
        validator = TypeAdapter(dict[str, float]).validator

        @staticmethod
        async def call(given: dict[str, float], ctx: None) -> int:
            assert isinstance(given["a"], float), "it reads the arguments as its own agent would"
            return round(given["a"] * 2)


class SmolagentsTool:
    name, description, output_type = "double", "Twice.", "integer"
    inputs = {"a": {"type": "integer", "description": "a number"}, "b": {"type": "any", "nullable": True}}

    def __call__(self, *args: object, **kwargs: int) -> int:
        return kwargs["a"] * 2


class DSPyTool:
    name, desc, args = "double", "Twice.", {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}}

    def __init__(self) -> None:
        self.func = lambda a: a * 2

    def __call__(self, **kwargs: int) -> int:
        return self.func(**kwargs)

    async def acall(self, **kwargs: int) -> int:
        raise AssertionError("it would hold up the event loop with a sync function")


def _double(a: int) -> int:
    return a * 2


_SPEC = {"name": "double", "description": "Twice.", "parameters": _SCHEMA}
_TOOLS = {
    "langchain": LangChainTool(), "llamaindex": LlamaIndexTool(), "pydantic-ai": PydanticAITool(),
    "smolagents": SmolagentsTool(), "dspy": DSPyTool(),
    "chat completions": ({"type": "function", "function": _SPEC}, _double),
    "responses": ({"type": "function", **_SPEC}, _double),
}  # fmt: skip


@pytest.mark.parametrize("theirs", _TOOLS.values(), ids=_TOOLS)
async def test_a_tool_of_another_package_is_offered_and_runs(theirs):
    llm = ScriptedLLM(tool_calls(("double", {"a": 4}), ("double", {})), "done")

    @llm_function(llm_interface=llm, toolkit=[theirs])
    async def ask(question: str) -> str:
        """Answer."""

    result = await ask.call("?")
    (offered,) = llm.calls[0].tools
    assert (offered["function"]["name"], offered["function"]["description"]) == ("double", "Twice.")
    assert offered["function"]["parameters"]["properties"]["a"]["type"] == "integer"
    assert offered["function"]["parameters"]["required"] == ["a"]
    ran, refused = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert ran == "8"
    assert "do not fit" in refused


async def test_an_input_that_may_be_anything_or_null_is_no_type_of_json():
    assert as_tool(SmolagentsTool()).parameters["properties"]["b"] == {}
    nullable = SimpleNamespace(name="n", inputs={"a": {"type": "string", "nullable": True}}, __call__=print)
    nullable.function = print
    assert as_tool(nullable).parameters["properties"]["a"] == {"type": ["string", "null"]}


async def test_a_tool_output_that_says_it_failed_is_a_failure():
    with pytest.raises(ValueError, match="no zero"):
        await as_tool(LlamaIndexTool())(a=0)


def test_options_of_ours_go_around_a_tool_of_others():
    made = Tool(LangChainTool(), name="twice", confirm=True)
    assert (made.name, made.description, made.confirm) == ("twice", "Twice.", True)
    assert made.parameters["required"] == ["a"]


class Unreadable:
    name = "unreadable"
    metadata = SimpleNamespace(get_parameters_dict=lambda: 1 / 0)


@pytest.mark.parametrize(
    ("candidate", "missing"),
    [
        ({"type": "function", "function": _SPEC}, "'double': it is a dictionary without something to call"),
        (({"type": "function"}, _double), "with a name"), ((_SPEC, "double"), "'double': a tuple is taken as a pair"),
        (SimpleNamespace(name="x"), "'x': it carries no JSON Schema"),
        (SimpleNamespace(args_schema=_SCHEMA), "a schema and no name"),
        (SimpleNamespace(name="x", inputSchema=_SCHEMA), "'x': it carries nothing to call"),
        (Unreadable(), "'unreadable': its schema cannot be read .ZeroDivisionError"),
        (SimpleNamespace(name="x", takes_ctx=True, function_schema=PydanticAITool.function_schema), "RunContext"),
        (3, "a int cannot be a tool in the toolkit: it carries no name and no JSON Schema"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(candidate, missing):
    with pytest.raises(ToolDefinitionError, match=missing):
        as_tool(candidate)


def test_plain_callables_stay_what_they_are():
    class Named:
        name = "not a tool of others"

        def __call__(self, a: int) -> int:
            return a

    assert as_tool(Named()).name == "Named"
    assert list(as_tool(functools.partial(_double, 3)).parameters["properties"]) == []


# --- ours in theirs ---


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_as_tool_looks_like_a_function_to_others(is_async):
    if is_async:

        @llm_function(llm_interface=ScriptedLLM("loud"))
        async def shout(text: str, times: int = 2) -> str:
            """Shout the text."""

    else:

        @llm_function(llm_interface=ScriptedLLM("loud"))
        def shout(text: str, times: int = 2) -> str:
            """Shout the text."""

    ours = shout.as_tool("shout it")
    assert (ours.__name__, ours.__doc__) == ("shout_it", "Shout the text.")
    for looked_at in (ours, ours.__call__):  # LangChain, LlamaIndex; DSPy
        assert list(inspect.signature(looked_at).parameters) == ["text", "times"]
        assert get_type_hints(looked_at) == {"text": str, "times": int, "return": str}
        assert inspect.iscoroutinefunction(looked_at) is is_async
    answer = ours(text="a")
    assert (asyncio.run(answer) if is_async else answer) == "loud"
