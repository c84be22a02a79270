"""`ToolInvoker`: registered by name, told to the model, run; `LLMCaller`: test_context.py has it at work."""

import asyncio

import pytest

from SimpleLLMFunc.assistant.caller import ToolInvoker
from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.tools import ToolContext, tool


def weather(city: str, date: str = "today") -> str:
    """Tell the weather."""
    return f"{city} {date}: sunny"


PARAMETERS = {
    "city": {"type": "string", "description": "城市名称"},
    "date": {"type": "string", "description": "日期", "optional": True},
}


def test_the_parameters_of_the_note_become_a_definition():
    invoker = ToolInvoker()
    invoker.register_tool("get_weather", weather, "获取天气", PARAMETERS)
    properties = {
        name: {"type": "string", "description": said} for name, said in (("city", "城市名称"), ("date", "日期"))
    }
    parameters = {"type": "object", "properties": properties, "required": ["city"]}
    told = {"name": "get_weather", "description": "获取天气", "parameters": parameters}
    assert invoker.get_tool_definitions() == [{"type": "function", "function": told}]
    assert PARAMETERS["date"]["optional"] is True


def test_a_parameter_called_type_and_a_whole_schema():
    invoker = ToolInvoker()
    invoker.register_tool("look", lambda **given: given, "Look.", {"type": {"type": "string", "required": False}})
    whole = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    invoker.register_tool("count", lambda a: a, "Count.", whole)
    look, count = (each["function"]["parameters"] for each in invoker.get_tool_definitions())
    assert look == {"type": "object", "properties": {"type": {"type": "string"}}, "required": []}
    assert count == whole
    assert invoker.invoke_tool("look", type="x") == '{"type": "x"}'


def test_registering_again_replaces():
    invoker = ToolInvoker([weather])
    invoker.register_tool("weather", lambda: "other", "Other.", {})
    assert invoker.names() == ["weather"]
    assert invoker.invoke_tool("weather") == "other"


def test_the_two_texts_of_the_note_and_their_english():
    def broken():
        raise ValueError("key sk-abcdefghijklmnopqrstuvwxyz123456 refused")

    invoker = ToolInvoker()
    invoker.register_tool("broken", broken, "Break.", {})
    assert invoker.invoke_tool("nobody") == "工具 nobody 不存在"
    told = invoker.invoke_tool("broken")
    assert told.startswith("工具调用失败: ValueError: key ")
    assert "sk-abcdefghijklmnop" not in told
    for language in ("en", "fr"):
        english = ToolInvoker(language=language)
        assert english.invoke_tool("nobody") == "The tool nobody does not exist. The tools are: -."


def test_arguments_that_do_not_fit_are_told_too():
    invoker = ToolInvoker()
    invoker.register_tool("get_weather", weather, "获取天气", PARAMETERS)
    assert invoker.invoke_tool("get_weather").startswith("工具调用失败: ")
    assert invoker.invoke_tool("get_weather", city=3).startswith("工具调用失败: ")
    assert invoker.invoke_tool("get_weather", town="x", city="y").startswith("工具调用失败: ")


async def test_async_tools_are_awaited_and_results_become_text():
    async def slow(n: int) -> dict[str, int]:
        """Count."""
        await asyncio.sleep(0)
        return {"n": n}

    @tool
    def with_context(context: ToolContext) -> str:
        """Look."""
        return context.tool_name

    invoker = ToolInvoker([slow, with_context])
    assert await invoker.invoke("slow", n=2) == '{"n": 2}'
    assert invoker.invoke_tool("slow", n=3) == '{"n": 3}'  # inside a running loop too
    assert await invoker.invoke("with_context") == "with_context"


@pytest.mark.parametrize("parameters", [{"city": "string"}, {"city": {"type": "nonsense"}}])
def test_parameters_that_cannot_be_used(parameters):
    with pytest.raises(ToolDefinitionError):
        ToolInvoker().register_tool("t", weather, "T.", parameters)
