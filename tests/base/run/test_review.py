"""Where an answer is read: a long one in a thread."""

from __future__ import annotations

import json
from threading import current_thread
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from SimpleLLMFunc.base.run import Run
from SimpleLLMFunc.base.run.review import AnyReview, read_answer, violations_text
from SimpleLLMFunc.base.schemas.output_mode import compile_output
from SimpleLLMFunc.errors import EmptyResponseError, OutputTruncated, ResponseParseError
from SimpleLLMFunc.runtime import LARGE
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, Usage
from tests.support.functions import function_of


class Line(BaseModel):
    name: str
    count: int


class Checked(Line):
    name: Annotated[str, AfterValidator(str.title)]  # code that may take its time, or ask a model


def lines(length: int) -> str:
    """Return JSON of about so many characters."""
    return json.dumps([{"name": "a name", "count": number} for number in range(length // 35)])


@pytest.mark.parametrize(
    ("text", "is_aside", "kind"),
    [
        (lines(1_000), False, Line), (lines(1_000)[:-1] + ",]", False, Line), (lines(40_000), True, Line),
        (lines(40_000)[:-1] + ",]", True, Line), ("Here they are: " + lines(40_000), True, Line),
        (lines(3 * LARGE), True, Line), (lines(1_000), True, Checked),
    ],
)  # fmt: skip
async def test_what_takes_its_time_is_read_in_a_thread(text: str, is_aside: bool, kind: Any, monkeypatch: Any) -> None:
    spec, threads = compile_output(list[kind]), set[Any]()
    parse = spec.parse
    monkeypatch.setattr(spec, "parse", lambda *args, **how: [parse(*args, **how), threads.add(current_thread())][0])
    parsed = await read_answer(spec, text)
    assert [line.count for line in parsed.value] == list(range(len(parsed.value)))
    assert threads
    assert (current_thread() not in threads) == is_aside


@pytest.mark.parametrize("size", [10, 10_000, 100_000])
async def test_what_does_not_fit_is_refused_wherever_it_is_read(size: int) -> None:
    with pytest.raises(ResponseParseError) as caught:
        await read_answer(compile_output(list[Line]), "[" + "x" * size)
    assert caught.value.violations


@pytest.mark.parametrize(("return_type", "value"), [(str, "a" * 10_000), (None, None), (Any, {"a": "a" * 10_000})])
async def test_all_kinds_of_answers_are_read(return_type: Any, value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    assert (await read_answer(compile_output(return_type), text)).value == value


def test_the_model_is_told_twenty_problems_and_how_many_more_there_are() -> None:
    told = [violations_text([("a", "int", "'b'")] * count).splitlines()[1:-2] for count in (20, 21)]
    assert (len(told[0]), told[1][20:]) == (20, ["- and 1 more"])
    told = [violations_text([("a", "int", "b" * length)]).splitlines()[1] for length in (200, 201)]
    assert told == [f"- a: expected int, got {'b' * 200}", f"- a: expected int, got {'b' * 199}…"]


async def test_a_long_text_that_is_only_reasoning_is_no_answer() -> None:
    with pytest.raises(ResponseParseError, match="nothing but reasoning"):
        await read_answer(compile_output(str), "<think>" + "a" * 10_000)


def test_a_cut_text_is_an_answer_where_it_was_asked_for_as_text_alone() -> None:
    cut = {"role": "assistant", "content": '{"value": "a"', "finish_reason": "length"}
    assert function_of(ScriptedLLM(cut))("?") == cut["content"]
    with pytest.raises(OutputTruncated):
        function_of(ScriptedLLM(cut), output_mode="native")("?")


def test_an_empty_answer_is_asked_for_again_so_many_times() -> None:
    llm = ScriptedLLM("", repeat=True)
    with pytest.raises(EmptyResponseError) as caught:
        function_of(llm, retry_times=2)("?")
    assert len(llm.calls) == len(caught.value.attempts) == 3
    assert "3" in str(caught.value)


@pytest.mark.parametrize(("sent", "usage"), [({"prompt_tokens": 3, "total_tokens": 3}, Usage(3)), (None, NO_USAGE)])
async def test_an_attempt_tells_what_was_thought_and_taken(sent: Any, usage: Usage) -> None:
    message = {"role": "assistant", "content": "b", "reasoning_content": "a or b"}
    reply = ChatCompletion.from_dict({"choices": [{"index": 0, "message": message}], "usage": sent, "model": "m"})
    run = Run()
    assert await AnyReview(run)(reply, []) is None
    told = [(each.text, each.thinking, each.usage, each.seconds) for each in run.attempts]
    assert told == [("b", "a or b", usage, 0.0)]
