"""Tools for a model that cannot call them: the same events, history and limits as with native calls."""

from __future__ import annotations

import json
import threading
from contextlib import aclosing
from decimal import Decimal
from typing import Annotated

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from SimpleLLMFunc import tool
from SimpleLLMFunc.base.json_action import AnswerText, JsonActions
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.type import ChatCompletion, FunctionCall, ToolCall
from tests.support.functions import chat, function_of

LOCAL = Profile("local", native=True, tools="json", tool_choice=False)
PROMPT = Profile("words", native=False, tools="json")


class Point(BaseModel):
    x: int
    y: int


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def move(point: Point, by: Annotated[int, "how far, à pied"] = 1) -> Point:
    """Move a point."""
    return Point(x=point.x + by, y=point.y)


def call(name, **arguments):
    return json.dumps({"tool": name, "arguments": arguments})


def reply(text, **more):
    return ChatCompletion.from_dict({"choices": [{"message": {"content": text}, **more}]})


def asking(*replies, returns=str, profile=LOCAL, **options):
    llm = ScriptedLLM(*replies, profile=profile, chunk_size=3)
    return function_of(llm, returns, **{"toolkit": [add, move], **options}), llm


@pytest.mark.parametrize("profile", [LOCAL, PROMPT])
def test_a_round_and_an_answer(profile):
    ask, llm = asking(call("add", a=1, b=2), '{"answer": "It is 3."}', profile=profile)
    result = ask.call("1 + 2?")
    assert result.value == "It is 3."
    assert [c.function.name for c in result.tool_calls] == ["add"]
    assert [m["role"] for m in result.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert result.messages[2]["tool_calls"][0]["function"]["arguments"] == '{"a": 1, "b": 2}'
    assert result.messages[3]["content"] == "3"
    for request in llm.calls:
        assert request.tools is None
        assert all(told in request.messages[0]["content"] for told in ("Add two numbers.", "à pied", "(text)."))
        assert bool(request.response_format) is profile.native
    assert [m["role"] for m in llm.requests[1]] == ["system", "user", "assistant", "user"]
    assert llm.requests[1][2]["content"] == call("add", a=1, b=2)
    assert llm.requests[1][3]["content"] == "Result of add:\n3"


def test_the_schema_is_a_union_of_the_tools_and_the_answer():
    ask, llm = asking('{"answer": {"x": 1, "y": 2}}', returns=Point)
    assert ask("where?") == Point(x=1, y=2)
    schema = llm.calls[0].response_format["json_schema"]["schema"]
    add_action, move_action, answer = schema["anyOf"]
    assert llm.calls[0].response_format["json_schema"]["strict"] is False
    assert add_action["properties"]["tool"] == {"const": "add"}
    assert set(add_action["properties"]["arguments"]["properties"]) == {"a", "b"}
    assert (answer["required"], answer["additionalProperties"]) == (["answer"], False)
    reference = move_action["properties"]["arguments"]["properties"]["point"]["$ref"]
    assert reference.removeprefix("#/$defs/") in schema["$defs"]


def test_typed_answers_keep_their_digits():
    ask, _ = asking('{"answer": 1.50}', returns=Decimal)
    assert str(ask("x")) == "1.50"
    for returns, answer in ((list[str], '["a", "b"]'), (int | str, '"3"')):
        ask, _ = asking(f'{{"answer": {answer}}}', returns=returns)
        assert ask("x") == json.loads(answer)
    ask, _ = asking('{"answer": {"é": "è"}}')
    assert ask("x") == '{"é": "è"}'


def test_of_a_conversation_only_calls_and_results_are_told_otherwise():
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    told = {"role": "assistant", "content": "Result of it:", "tool_calls": tool_calls(("add", {"a": 1}))["tool_calls"]}
    messages = [{"role": "system", "content": "Be brief."}, *said, told, {"role": "tool", "content": "3"}]
    assert JsonActions([]).messages(said)[1:] == said
    first, *shown, result = JsonActions([add.to_openai_tool()]).messages(messages)
    assert first["content"].startswith("Be brief.\n\nReply with")
    assert shown == [*said, {"role": "assistant", "content": f"Result of it:\n{call('add', a=1)}"}]
    assert result == {"role": "user", "content": "Result of tool:\n3"}


def test_several_calls_in_one_reply_and_in_a_row():
    ask, llm = asking(
        f'First {call("add", a=1, b=2)[:-1]}, "answer": null}} and {call("add", a=3, b=4)}',
        "```json\n" + call("add", a=3, b=7) + "\n```",
        '<think>{"answer": "no"}</think>{"answer": "10"}',
    )
    result = ask.call("sum")
    assert result.value == "10"
    arguments = [(1, 2), (3, 4), (3, 7)]
    assert [c.function.arguments for c in result.tool_calls] == [f'{{"a": {a}, "b": {b}}}' for a, b in arguments]
    assert llm.requests[1][-1]["content"] == "Result of add:\n3\n\nResult of add:\n7"


def test_errors_are_told_to_the_model():
    ask, llm = asking(call("add", a="one"), call("subtract"), '{"answer": "sorry"}')
    assert ask("x") == "sorry"
    assert "a" in llm.requests[1][-1]["content"]
    assert "subtract" in llm.requests[2][-1]["content"]


@pytest.mark.parametrize("arguments", ['{"a": 1, "b": two}', '{"a": 1, "b": "say "hi" now"}'])
def test_no_tool_runs_with_arguments_that_were_guessed_at(arguments):
    ask, llm = asking(
        f'{{"tool": "add", "arguments": {arguments}}}', "{'tool': 'add', 'arguments': {'a': 1, 'b': 2,}}", "ok"
    )
    assert ask("x") == "ok"
    assert "expected a JSON object" in llm.requests[1][-1]["content"]
    assert llm.requests[2][-1]["content"] == "Result of add:\n3", "what leaves nothing open is mended"


def test_the_last_turn_offers_the_answer_alone():
    ask, llm = asking(call("add", a=1, b=2), '{"answer": "It is 3."}', max_tool_calls=1)
    assert ask("x") == "It is 3."
    (branch,) = llm.calls[1].response_format["json_schema"]["schema"]["anyOf"]
    assert list(branch["properties"]) == ["answer"]
    assert "Tools:" in llm.requests[0][0]["content"]
    assert "Tools:" not in llm.requests[1][0]["content"]
    assert llm.requests[1][-1]["content"] == "Result of add:\n3"


def test_a_value_with_a_field_answer_is_no_action_and_prose_is_an_answer():
    class Reply(BaseModel):
        answer: str

    ask, _ = asking('{"answer": "x"}', '{"answer": {"answer": "x"}}', returns=Reply)
    assert ask("x") == ask("x") == Reply(answer="x")
    ask, _ = asking("It is simply 3.")
    assert ask("x") == "It is simply 3."


async def chat_text(*replies, **options):
    talk = chat(ScriptedLLM(*replies, profile=LOCAL, chunk_size=3), toolkit=[add], stream=True, **options)
    async with aclosing(talk([], "hi")) as pairs:
        found = [pair async for pair in pairs]
    return [text for text, _ in found], found[-1][1]


async def test_a_chat_streams_the_text_of_the_answer_and_nothing_of_an_action():
    texts, history = await chat_text(call("add", a=1, b=2), '{"answer": "It is\\n\\u0033 \\"now\\"."}')
    assert len(texts) > 4
    assert "".join(texts) == 'It is\n3 "now".'
    assert [m["role"] for m in history] == ["system", "user", "assistant", "tool", "assistant"]
    assert history[-1]["content"] == 'It is\n3 "now".'
    # prose reaches a chat at its end
    texts, history = await chat_text("Plain words.")
    assert texts == ["Plain words.", ""]
    assert history[-1]["content"] == "Plain words."


def test_the_option_forces_either_way():
    ask, llm = asking('{"answer": "x"}', profile=Profile(), tools="json")
    assert ask("x") == "x"
    assert llm.calls[0].tools is None
    ask, llm = asking("x", tools="native")
    assert ask("x") == "x"
    assert len(llm.calls[0].tools) == 2


def test_a_cut_action_and_two_answers_are_no_action_and_of_a_cut_plain_answer_its_text_remains():
    cut, two = reply(call("add", a=1, b=2), finish_reason="length"), reply('{"answer": "a"} {"answer": "b"}')
    called = two.with_message(content='{"answer": "a"}', tool_calls=(ToolCall("c", FunctionCall("f", "")),))
    for none in (cut, two, called):
        assert JsonActions([add.to_openai_tool()]).read(none) is none
    ask, _ = asking({"role": "assistant", "content": '{"answer": "It is ver', "finish_reason": "length"})
    result = ask.call("x")
    assert (result.value, result.finish_reason) == ("It is ver", "length")


def test_tool_choice_narrows_the_actions():
    named = {"type": "function", "function": {"name": "move"}}
    for choice, tools, answers in (("required", ["add", "move"], 0), (named, ["move"], 0), ("none", [], 1)):
        ask, llm = asking(call("add", a=1, b=2), "3", tool_choice=choice, max_tool_calls=1)
        ask("x")
        branches = llm.calls[0].response_format["json_schema"]["schema"]["anyOf"]
        assert [b["properties"]["tool"]["const"] for b in branches if "tool" in b["properties"]] == tools
        assert sum("answer" in b["properties"] for b in branches) == answers
        assert "tool_choice" not in llm.calls[0].params
        assert ('{"answer"' in llm.requests[0][0]["content"]) == bool(answers)


@given(st.text(), st.lists(st.integers(1, 9), max_size=30))
@example("\xa0", [5, 9])
@example("two  \u3000 spaces", [20])
@example("  ", [15])
def test_the_streamed_answer_is_the_whole_answer_however_it_is_cut(text, sizes):
    for ascii_only in (False, True):
        source = ' {"answer": ' + json.dumps(text, ensure_ascii=ascii_only) + "}"
        reader = AnswerText()
        given_text, position = "", 0
        for size in [*sizes, len(source)]:
            given_text += reader.feed(source[position : position + size])
            position += size
        assert given_text == text
        assert reader.given == text


@pytest.mark.parametrize(
    "other", ['{"tool": "add"}', "Hello", ': {"answer": "x"}', '{"answer": 3}', '{"answers": "x"}', "[1]", ""]
)
def test_nothing_else_is_streamed(other):
    reader = AnswerText()
    assert [reader.feed(character) for character in other] == [""] * len(other)


def test_space_for_ever_before_an_answer_is_not_kept():
    reader = AnswerText()
    pieces = [
        "\n", *[" \t"] * 20_000, "{", *["\n  "] * 20_000, '"answer"', *["  "] * 1000, ":", " ", '"x', "\\u00", 'e9y"',
        "}",
    ]  # fmt: skip
    assert "".join(map(reader.feed, pieces)) == reader.given == "xéy"


def test_a_long_action_is_read_aside_and_says_the_same(monkeypatch):
    threads, plain = [], JsonActions.read

    def noted(actions, whole):
        threads.append(threading.current_thread())
        return plain(actions, whole)

    monkeypatch.setattr(JsonActions, "read", noted)
    for size in (10, 10, 100_000):
        ask, _ = asking(json.dumps({"answer": "x" * size})[:-1] + ",}")
        assert ask("x") == "x" * size
    on_the_loop, again, aside = threads
    assert on_the_loop is again is not aside
