"""Tool search: one tool that finds the others, which are offered from the next turn on."""

import logging

import pytest

from SimpleLLMFunc import llm_chat, llm_function
from SimpleLLMFunc.errors import ConfigError, ToolDefinitionError
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import Tool


def made(name, description, **parameters):
    schema = {"type": "object", "properties": parameters}
    return Tool(lambda **_: "done", name, description, schema)


TOOLS = [
    made("get.weather", "Tell the weather of a city.", city={"type": "string"}),
    made("bookTable", "Reserve a restaurant.", at={"type": "string", "description": "seven in the evening"}),
    made("天气", "查询一个城市的天气"),
    *(made(f"sum_{number}", f"Add {number} to a number.") for number in range(30)),
]


def function(llm, **options):
    async def ask(question: str) -> str:
        """Answer."""

    return llm_function(llm_interface=llm, **{"toolkit": TOOLS, "toolkit_search": True} | options)(ask)


def offered(llm):
    return [[tool["function"]["name"] for tool in call.tools or ()] for call in llm.calls]


async def found(query, **options):
    llm = ScriptedLLM(tool_calls(("find_tools", {"query": query})), "done")
    result = await function(llm, **options).call("?")
    names = [line.partition(":")[0] for line in result.messages[3]["content"].splitlines()]
    assert offered(llm) == [["find_tools"], ["find_tools", *sorted(names, key=list(WIRE).index)]]
    return names


WIRE = {"get_weather": 0, "bookTable": 1} | {Tool(lambda: 1, "天气").to_openai_tool()["function"]["name"]: 2}
WIRE |= {f"sum_{number}": number for number in range(30)}


@pytest.mark.parametrize(
    ("query", "first"),
    [("what is the weather in Oslo", "get_weather"), ("reserve a table", "bookTable"), ("evening", "bookTable")],
)
async def test_a_tool_is_found_by_name_description_and_parameters(query, first):
    assert (await found(query))[0] == first


async def test_a_chinese_question_finds_a_chinese_tool():
    assert (await found("奥斯陆今天天气如何"))[0] == list(WIRE)[2]


async def test_what_was_found_stays_and_is_called():
    llm = ScriptedLLM(
        tool_calls(("find_tools", {"query": "get_weather"})),
        tool_calls(("get_weather", {"city": "Oslo"}), ("find_tools", {"query": "bookTable"})),
        tool_calls(("find_tools", {"query": ""})),
        "done",
    )
    result = await function(llm, toolkit_search=lambda query, tools: query.split()).call("?")
    assert [set(names) & {"get_weather", "bookTable"} for names in offered(llm)] == [
        set(), {"get_weather"}, {"get_weather", "bookTable"}, {"get_weather", "bookTable"},
    ]  # fmt: skip
    assert result.messages[5]["content"] == "done"
    assert "No tool fits" in result.messages[-2]["content"]


async def test_a_function_of_the_user_s_own_searches():
    async def last(query, tools):
        return [tools[-1], "bookTable", "get.weather"]

    assert await found("anything", toolkit_search=last) == ["sum_29", "bookTable", "get_weather"]
    for wrong in ("bookTable", ["nothing"], 3):
        llm = ScriptedLLM(tool_calls(("find_tools", {"query": "x"})), "done")
        result = await function(llm, toolkit_search=lambda query, tools, wrong=wrong: wrong).call("?")
        assert "toolkit_search returned" in result.messages[3]["content"]


async def test_models_without_tool_calls_read_of_found_tools_too():
    llm = ScriptedLLM(tool_calls(("find_tools", {"query": "weather"})), "done")
    await function(llm, tools="json")("?")
    first, second = ["\n".join(str(each["content"]) for each in messages[:1]) for messages in llm.requests]
    assert "get_weather" not in first
    assert "- get_weather: Tell the weather" in second


async def test_a_chat_offers_what_its_history_found():
    llm = ScriptedLLM(tool_calls(("find_tools", {"query": "weather"})), "it is …", "sunny")

    @llm_chat(llm_interface=llm, toolkit=TOOLS, toolkit_search=True)
    async def chat(history: list, message: str):
        """Talk."""

    async for _, history in chat([], "weather?"):
        pass
    assert "get_weather" in str(chat.preview(history, "and?").tools)
    async for _ in chat(history, "and?"):
        pass
    assert offered(llm)[0] == ["find_tools"]
    assert "sum_3" not in llm.requests[0][0]["content"]
    assert "get_weather" in offered(llm)[2]


async def test_all_tools_are_part_of_what_the_function_is():
    versions = {function(None, toolkit=tools)._pipeline.metadata.version for tools in (TOOLS, TOOLS[:-1])}
    assert len(versions) == 2


def test_a_large_toolkit_is_told_of_once(caplog):
    tools = [made(f"tool_{number}", "Do.") for number in range(41)]
    with caplog.at_level(logging.WARNING):
        for options in ({"toolkit_search": None}, {"toolkit_search": None}, {"toolkit_search": False}, {}):
            function(None, toolkit=tools, **options)
    assert [record.message.count("has 41 tools") for record in caplog.records] == [1]


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="toolkit_search is True or a function"):
        function(None, toolkit_search="bm25")
    for tools in ([made("find_tools", "Mine.")], [made("find tools", "Mine."), made("other", "x")]):
        with pytest.raises(ToolDefinitionError, match="toolkit_search= adds a tool of this name to"):
            function(None, toolkit=tools)
