"""A model that makes the same calls again and again: when it is stopped, and when it is not."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from SimpleLLMFunc import ToolCallLimitExceeded
from SimpleLLMFunc.assistant import ToolInvoker
from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallStarted
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ModelRequest, ToolPolicy, Toolset
from SimpleLLMFunc.base.run import Run
from SimpleLLMFunc.llm_decorator.utils.tools import process_tools
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import ModelRetry, tool
from tests.support.functions import async_function_of, chat

MESSAGES = [{"role": "user", "content": "Hello?"}]


class Tools:
    """Two tools that count how often they ran."""

    def __init__(self, *results):
        self.ran = []
        left = list(results)

        @tool
        def look(where: str = "here") -> object:
            """Look."""
            self.ran.append(where)
            return left.pop(0) if left else "nothing"

        @tool
        def wait(seconds: int) -> str:
            """Wait."""
            self.ran.append(seconds)
            return "waited"

        self.both = [look, wait]


async def run(llm, tools, *, stream=False, max_rounds=10, policy=None):
    specs, tool_map = process_tools(tools, "f")
    toolset = Toolset(tool_map, specs, max_rounds=max_rounds, policy=policy or ToolPolicy())
    async with Run("f", stream=stream) as state:
        async with aclosing(react_events(ModelRequest(llm, MESSAGES, specs), toolset, None, state)) as events:
            return [event async for event in events]


def finished(events):
    return [event for event in events if isinstance(event, ToolCallFinished)]


LOOK = ("look", {"where": "here"})


@pytest.mark.parametrize("stream", [False, True])
async def test_the_third_turn_in_a_row_is_not_run_and_after_the_fourth_no_tool_is_offered(stream):
    tools = Tools()
    llm = ScriptedLLM(*[tool_calls(LOOK)] * 4, "There is nothing.")
    events = await run(llm, tools.both, stream=stream)
    assert tools.ran == ["here", "here"]
    assert [bool(call.tools) for call in llm.calls] == [True, True, True, True, False]
    assert [event.failed for event in finished(events)] == [False, False, True, True]
    third = finished(events)[2]
    assert (third.error_type, third.seconds) == ("repeated_call", 0.0)
    assert "was not run" in third.content
    assert "answer now" in third.content
    assert llm.requests[3][-1].items() >= {"tool_call_id": third.call.id, "content": third.content}.items()
    assert len([event for event in events if isinstance(event, ToolCallStarted)]) == 4
    assert events[-1].reply.text == "There is nothing."


async def test_a_model_that_is_told_may_go_on_with_another_call():
    tools = Tools()
    llm = ScriptedLLM(*[tool_calls(LOOK)] * 3, tool_calls(("look", {"where": "there"})), "Nothing there either.")
    events = await run(llm, tools.both)
    assert tools.ran == ["here", "here", "there"]
    assert all(call.tools for call in llm.calls)
    assert events[-1].reply.text == "Nothing there either."


async def test_another_call_in_between_begins_the_count_again():
    tools = Tools()
    other = tool_calls(("wait", {"seconds": 1}))
    llm = ScriptedLLM(*[tool_calls(LOOK), tool_calls(LOOK), other] * 2, tool_calls(LOOK), "Done.")
    events = await run(llm, tools.both)
    assert len(tools.ran) == 7
    assert not any(event.failed for event in finished(events))


async def test_a_tool_that_is_polled_runs_as_long_as_its_results_differ():
    tools = Tools("10 %", "20 %", "20 %", "90 %", "done")
    llm = ScriptedLLM(*[tool_calls(LOOK)] * 3, "It takes long.")
    await run(llm, tools.both)
    assert len(tools.ran) == 3
    # Two that are the same in a row: the third would be the third of them.
    llm = ScriptedLLM(*[tool_calls(LOOK)] * 5, "It takes long.")
    tools = Tools("10 %", "20 %", "20 %", "90 %", "done")
    events = await run(llm, tools.both)
    assert len(tools.ran) == 3
    assert [event.error_type for event in finished(events)] == ["", "", "", "repeated_call", "repeated_call"]


@pytest.mark.parametrize(
    "arguments", [['{"a": 1, "b": 2}', '{"b":2,"a":1}', '{ "a": 1,\n"b": 2 }'], ["{", "{", " { "]], ids=["json", "none"]
)
async def test_arguments_are_the_same_in_any_order_and_with_any_spaces(arguments):
    runs = []

    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        runs.append(a)
        return a + b

    events = await run(ScriptedLLM(*[tool_calls(("add", text)) for text in arguments], "3"), [add])
    assert [event.error_type for event in finished(events)][-1] == "repeated_call"
    assert len(runs) in {0, 2}


async def test_a_turn_of_several_calls_repeats_where_each_of_them_does():
    both = [LOOK, ("wait", {"seconds": 1})]
    tools = Tools()
    llm = ScriptedLLM(tool_calls(*both), tool_calls(*reversed(both)), tool_calls(*both), "Done.")
    events = await run(llm, tools.both)
    assert len(tools.ran) == 4
    assert [event.error_type for event in finished(events)[4:]] == ["repeated_call"] * 2
    # One new call among them, and all of them run.
    tools = Tools()
    llm = ScriptedLLM(tool_calls(*both), tool_calls(*both), tool_calls(*both, ("wait", {"seconds": 2})), "Done.")
    events = await run(llm, tools.both)
    assert len(tools.ran) == 7
    assert not any(event.failed for event in finished(events))


async def test_the_same_call_twice_in_one_reply_is_one_turn():
    tools = Tools()
    await run(ScriptedLLM(*[tool_calls(LOOK, LOOK)] * 2, "Done."), tools.both)
    assert len(tools.ran) == 4


async def test_a_failure_that_repeats_is_a_result_like_any_other():
    tries = []

    @tool
    def find(what: str) -> str:
        """Find."""
        tries.append(what)
        raise ModelRetry("Say it otherwise.")

    events = await run(ScriptedLLM(*[tool_calls(("find", {"what": "x"}))] * 3, "I cannot."), [find])
    assert len(tries) == 2
    assert [event.error_type for event in finished(events)] == ["ModelRetry", "ModelRetry", "repeated_call"]


async def test_results_from_outside_are_compared_without_the_ids_of_their_blocks():
    asked = []

    @tool(untrusted=True)
    def search(query: str) -> str:
        """Search."""
        asked.append(query)
        return "nothing found"

    events = await run(ScriptedLLM(*[tool_calls(("search", {"query": "tea"}))] * 3, "Nothing."), [search])
    assert finished(events)[0].content != finished(events)[1].content
    assert len(asked) == 2


async def test_a_model_that_cannot_stop_gets_an_error_that_says_so():
    tools = Tools()
    with pytest.raises(ToolCallLimitExceeded) as caught:
        await run(ScriptedLLM(tool_calls(LOOK), repeat=True), tools.both)
    assert (caught.value.limit, caught.value.repeated) == (10, 4)
    assert "4 turns in a row with the same tool calls" in str(caught.value)
    assert len(tools.ran) == 2


async def test_json_actions_follow_the_same_rule():
    tools = Tools()
    action = '{"tool": "look", "arguments": {"where": "here"}}'
    llm = ScriptedLLM(*[action] * 4, '{"answer": "Nothing."}')
    result = await async_function_of(llm, toolkit=tools.both, tools="json", max_tool_calls=10).call("What is there?")
    assert result.value == "Nothing."
    assert tools.ran == ["here", "here"]
    assert len(result.tool_calls) == 4
    assert "was not run" in str(llm.requests[3])
    assert "to use a tool" in str(llm.requests[3])
    assert "to use a tool" not in str(llm.requests[4])


async def test_a_chat_keeps_what_was_told_in_its_history():
    tools = Tools()
    talk = chat(ScriptedLLM(*[tool_calls(LOOK)] * 4, "Nothing."), toolkit=tools.both, max_tool_calls=10)
    history = [history async for _, history in talk([], "?")][-1]
    told = [message["content"] for message in history if message["role"] == "tool"]
    assert told[:2] == ["nothing", "nothing"]
    assert all("was not run" in text for text in told[2:])
    assert len(told) == 4


async def test_the_assistant_says_it_in_its_own_language():
    tools = Tools()
    llm = ScriptedLLM(*[tool_calls(LOOK)] * 3, "没有。")
    events = await run(llm, tools.both, policy=ToolPolicy(words=ToolInvoker().words))
    assert finished(events)[2].content.startswith("工具 look 没有执行")
    assert ToolInvoker(language="en").words["repeated"] == ToolPolicy().words["repeated"]
