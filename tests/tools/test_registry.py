"""`ToolRegistry`: tools by name."""

import traceback

import pytest

from SimpleLLMFunc.errors import ToolDefinitionError, ToolFailed, UsageError
from SimpleLLMFunc.tools import ArgumentsError, Tool, ToolRegistry, tool


@tool
def double(n: int) -> int:
    """Double it."""
    return 2 * n


async def shout(text: str) -> str:
    return text.upper()


def test_definitions_in_the_order_of_registration():
    registry = ToolRegistry(double)
    assert registry.register(shout).name == "shout"
    assert registry.names() == ["double", "shout"]
    assert [d["function"]["name"] for d in registry.get_tool_definitions()] == ["double", "shout"]
    assert registry.get_tool_definitions()[0] == double.to_openai_tool()


async def test_invoke_validates_converts_and_runs():
    registry = ToolRegistry(double, shout)
    assert await registry.invoke("double", n="4") == 8
    assert await registry.invoke("shout", text="hi") == "HI"
    with pytest.raises(ArgumentsError, match="n: expected a valid integer"):
        await registry.invoke("double", n="four")


async def test_a_name_on_the_wire_leads_to_its_tool():
    registry = ToolRegistry(Tool(func=shout, name="web.shout"), Tool(func=shout, name="web_shout"))
    names = [definition["function"]["name"] for definition in registry.get_tool_definitions()]
    assert names == ["web_shout_2", "web_shout"]
    assert await registry.invoke("web_shout_2", text="a") == "A"


async def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UsageError, match=r"no tool is named 'no'\. There are: double\."):
        await ToolRegistry(double).invoke("no")
    with pytest.raises(UsageError, match="There are: none"):
        await ToolRegistry().invoke("no")


async def test_what_a_tool_raises_is_told_without_secrets():
    def pay() -> None:
        raise RuntimeError("postgres://u:hunter2@host/db")

    with pytest.raises(ToolFailed, match="RuntimeError") as caught:
        await ToolRegistry(pay).invoke("pay")
    assert "hunter2" not in str(caught.value)
    assert "RuntimeError" in str(caught.value.__cause__)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_name_is_taken_once():
    with pytest.raises(ToolDefinitionError, match="registered already"):
        ToolRegistry(double, double)
    with pytest.raises(ToolDefinitionError, match="cannot be a tool in the registry"):
        ToolRegistry(3)
