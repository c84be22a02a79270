"""Every door that note 002 names: in its place, by its name, with its signature."""

from __future__ import annotations

import importlib
import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Optional, Union

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc.base.run.review import violations_text
from SimpleLLMFunc.errors import EmptyResponseError, ResponseParseError
from SimpleLLMFunc.llm_decorator.steps.chat import message as chat_message
from SimpleLLMFunc.llm_decorator.steps.chat import react as chat_react
from SimpleLLMFunc.llm_decorator.steps.chat import response as chat_response
from SimpleLLMFunc.llm_decorator.steps.common import log_context, signature
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.llm_decorator.steps.function import prompt as function_prompt
from SimpleLLMFunc.llm_decorator.steps.function import react as function_react
from SimpleLLMFunc.llm_decorator.steps.function import response as function_response
from SimpleLLMFunc.logger import get_current_context
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.type import ChatCompletion
from tests.support.golden import as_text, golden

DOORS = [line.split() for line in Path(__file__).with_name("doors.txt").read_text("utf-8").splitlines()]
"""Module, name and parameters of each, as the note has them."""


@pytest.mark.parametrize(("module", "name", "parameters"), [(module, name, told) for module, name, *told in DOORS])
def test_the_doors_of_the_note_stand_where_it_says(module, name, parameters):
    function = getattr(importlib.import_module(f"SimpleLLMFunc.{module}"), name)
    found = list(inspect.signature(function).parameters)
    assert found[: len(parameters)] == parameters
    more = list(inspect.signature(function).parameters.values())[len(parameters) :]
    required = [p.name for p in more if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    assert required == [] or not parameters


class Grade(BaseModel):
    """A grade."""

    score: int = Field(description="from 1 to 5")
    tags: list[str] = []


def grade(essay: str, strict: bool = False) -> Grade:
    """Grade the essay for a {audience}."""


def signature_of(func, *args, **kwargs):
    return signature.parse_function_signature(func, args, kwargs)


# --- step 1 ---


def test_metadata():
    sig, hints, return_type, docstring, name = signature.extract_function_metadata(grade)
    assert list(sig.parameters) == ["essay", "strict"]
    assert hints == {"essay": str, "strict": bool, "return": Grade}
    assert (return_type, docstring, name) == (Grade, "Grade the essay for a {audience}.", "grade")


def test_metadata_keeps_annotated():
    def f(x: Annotated[int, Field(ge=1)]) -> Annotated[int, Field(ge=2)]: ...

    _, hints, return_type, docstring, _ = signature.extract_function_metadata(f)
    assert hints["x"] == Annotated[int, Field(ge=1)] or "ge=1" in str(hints["x"])
    assert "ge=2" in str(return_type)
    assert docstring == ""


def test_return_type_where_nothing_or_none_is_written():
    def nothing(): ...
    def none() -> None: ...

    assert signature.extract_function_metadata(nothing)[2] is str
    assert signature.extract_function_metadata(none)[2] is None


def test_the_whole_step():
    found, params = signature_of(grade, "x", _template_params={"audience": "judge"})
    assert isinstance(found, FunctionSignature)
    assert params == {"audience": "judge"}
    assert found.func_name == "grade"
    assert found.bound_args.arguments == {"essay": "x", "strict": False}
    assert found.trace_id.startswith("grade_")


# --- step 2 ---


async def test_the_log_context_holds_the_run():
    async with log_context.setup_log_context("grade", "grade_1", {}):
        context = get_current_context()
        assert (context.trace_id, context.function_name) == ("grade_1", "grade")
    assert get_current_context() is None


# --- step 3, function ---


def test_parameter_descriptions():
    lines = function_prompt.build_parameter_type_descriptions({"essay": str, "grade": Grade, "what": None})
    assert lines[0].startswith("  - essay: ")
    assert "score" in lines[1]
    assert lines[2] == "  - what: Unknown Type"


class Colour(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int


@pytest.mark.parametrize(
    "complex_type",
    [
        Grade, list[int], dict[str, int], Union[int, str], int | str, Optional[int], tuple[int, str], set[int],
        Literal["a"], Colour, Point, Annotated[int, Field(ge=1)],
    ],
)  # fmt: skip
def test_types_that_take_more_than_a_sentence(complex_type):
    assert function_prompt._is_complex_type(complex_type)
    text = function_prompt.build_return_type_description(complex_type)
    described, example = text.removeprefix("Type Description (JSON):\n").split("\n\nExample JSON:\n")
    json.loads(described)
    json.loads(example)


@pytest.mark.parametrize("simple", [str, int, float, bool, type(None)])
def test_types_that_take_a_sentence(simple):
    assert not function_prompt._is_complex_type(simple)
    assert "JSON" not in function_prompt.build_return_type_description(simple)


def test_no_type_is_unknown():
    assert function_prompt.build_return_type_description(None) == "未知类型"


def chinese(文章: str, 严格: bool) -> Grade:
    """请为{audience}给文章打分。"""


@pytest.mark.parametrize(
    ("name", "func", "arguments", "params"),
    [
        ("function_prompt_en.txt", grade, ("On rain.\nIt falls {down}.", True), {"audience": "teacher"}),
        ("function_prompt_zh.txt", chinese, ("论雨", False), {"audience": "老师"}),
    ],
)
def test_golden_function_prompts(name, func, arguments, params):
    found, _ = signature_of(func, *arguments)
    golden(name, as_text(function_prompt.build_initial_prompts(found, template_params=params)))


def test_golden_function_prompt_without_type():
    found, _ = signature_of(grade, "On rain")
    golden("function_prompt_native.txt", as_text(function_prompt.build_initial_prompts(found, output_mode="native")))


def test_golden_reask():
    violations = [("items[2].price", "float", "'cheap'"), ("", "object", "nothing")]
    golden("function_reask.txt", violations_text(violations, "an object"))
    assert "and 5 more" in violations_text(violations * 12 + violations[:1])


# --- step 4, function ---


def test_no_choice_is_empty():
    assert function_react.check_response_content_empty(ChatCompletion.from_dict({}), "f")


def test_openai_objects_are_read_too():
    from openai.types.chat import ChatCompletion as Theirs

    data = {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "7"}}],
    }  # fmt: skip
    reply = Theirs.model_validate(data)
    assert not function_react.check_response_content_empty(reply, "f")
    assert function_response.extract_response_content(reply, "f") == "7"
    assert function_response.parse_and_validate_response(reply, int, "f") == 7


async def test_execute_react_loop_retries_only_the_model():
    llm = ScriptedLLM(tool_calls(("look", {})), "", "done")
    runs = []

    def look() -> str:
        """Look."""
        runs.append(1)
        return "seen"

    messages = [{"role": "user", "content": "x"}]
    reply = await function_react.execute_react_loop(llm, messages, [look], 5, {"retry_times": 2, "seed": 1}, "f")
    assert reply.text == "done"
    assert runs == [1]
    assert messages == [{"role": "user", "content": "x"}]
    assert llm.calls[0].params == {"seed": 1}


async def test_retry_llm_call_gives_up():
    llm = ScriptedLLM("", "", "", "")
    with pytest.raises(EmptyResponseError):
        await function_react.retry_llm_call(llm, [{"role": "user", "content": "x"}], None, {}, 5, 2, "f")
    assert len(llm.calls) == 3


def test_tools_are_prepared():
    def look() -> str:
        """Look."""
        return ""

    specs, tool_map = function_react.prepare_tools_for_execution([look], "f")
    assert specs[0]["function"]["name"] == "look"
    assert list(tool_map) == ["look"]
    assert function_react.prepare_tools_for_execution(None, "f") == (None, {})


# --- step 5, function ---


def test_a_response_becomes_a_value():
    reply = ChatCompletion.from_dict({"choices": [{"message": {"content": '{"score": 2}'}}]})
    assert function_response.parse_response_to_type(reply, Grade) == Grade(score=2)
    with pytest.raises(ResponseParseError) as caught:
        function_response.parse_and_validate_response(reply, list[int], "grade")
    assert caught.value.func_name == "grade"
    assert isinstance(caught.value, ValueError)


# --- steps of the chat ---


def look(where: str) -> str:
    """Look around."""
    return where


def chat(history: list, message: str):
    """You are a guide."""


def test_golden_chat_messages():
    found, _ = signature_of(chat, [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}], "on?")
    golden("chat_messages.txt", as_text(chat_message.build_chat_messages(found, [look], ["history"])))


def test_the_system_prompt_of_a_chat():
    spec = {"function": {"name": "a", "description": "does a"}}
    assert chat_message.build_chat_system_prompt("", [spec]) is None
    assert chat_message.build_chat_system_prompt("Guide.", None) == "Guide."
    assert chat_message.build_chat_system_prompt(" Guide.\n", [spec]) == (
        "\n\nYou can use the following tools flexibly according to the real case and tool description:\n\t"
        "- a: does a\n\nGuide."
    )


def test_history_is_found_by_name(caplog):
    history = [{"role": "user", "content": "x"}]
    assert chat_message.extract_conversation_history({"chat_history": history}, "f") == history
    assert chat_message.extract_conversation_history({"turns": history}, "f", ["turns"]) == history
    assert not caplog.records
    assert chat_message.extract_conversation_history({"message": "x"}, "f") is None
    for unusable in ("x", [1, 2], {}):
        assert chat_message.extract_conversation_history({"history": unusable}, "f") is None
    assert chat_message.extract_conversation_history({"history": None}, "f") is None
    assert len(caplog.records) == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_streaming_loop_and_pairs(stream):
    llm = ScriptedLLM(tool_calls(("look", {"where": "here"})), "Seen it.")
    messages = [{"role": "user", "content": "x"}]
    responses = chat_react.execute_react_loop_streaming(llm, messages, [look], 5, stream, {}, "f")
    pairs = [
        pair async for pair in chat_response.process_chat_response_stream(responses, "text", messages, "f", stream)
    ]
    assert "".join(text for text, _ in pairs) == "Seen it."
    assert pairs[-1][0] == ""
    assert [m["role"] for m in pairs[-1][1]] == ["user", "assistant", "tool", "assistant"]


def test_single_responses():
    reply = ChatCompletion.from_dict({"choices": [{"message": {"content": None}}]})
    assert chat_response.process_single_chat_response(reply, "raw", False, "f") is reply
    assert chat_response.process_single_chat_response(reply, "text", False, "f") == ""
