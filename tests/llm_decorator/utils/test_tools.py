"""`process_tools`: a toolkit made ready."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.llm_decorator.utils.tools import process_tools
from SimpleLLMFunc.tools import Tool, tool


@tool
def search(query: str) -> str:
    """Search the web."""
    return query


def add(a: int, b: int) -> int:
    return a + b


def test_tools_and_callables_become_specs_and_a_map():
    specs, tools = process_tools([search, add], "f")
    assert specs == [search.to_openai_tool(), Tool(func=add).to_openai_tool()]
    assert list(tools) == ["search", "add"]
    assert tools["search"] is search
    assert isinstance(tools["add"], Tool)


def test_the_map_has_the_names_on_the_wire():
    dotted, plain = Tool(func=add, name="math.add"), Tool(func=add, name="math_add")
    specs, tools = process_tools([dotted, plain, Tool(func=add, name="加法")], "f")
    assert [spec["function"]["name"] for spec in specs or ()] == list(tools)
    assert tools["math_add"] is plain
    assert tools["math_add_2"] is dotted
    assert {made.name for made in tools.values()} == {"math.add", "math_add", "加法"}


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ToolDefinitionError, match="tool 'search': grade has two tools of this name"):
        process_tools([search, Tool(func=add, name="search")], "grade")


def test_what_cannot_be_a_tool_is_refused_with_the_function_s_name():
    with pytest.raises(ToolDefinitionError, match="cannot be a tool in the toolkit of grade"):
        process_tools([search, "add"], "grade")


def test_specs_are_copies_and_can_be_changed():
    first, _ = process_tools([search], "f")
    assert first
    first[0]["function"]["name"] = "changed"
    second, _ = process_tools([search], "f")
    assert second
    assert second[0]["function"]["name"] == "search"
