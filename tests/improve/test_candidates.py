"""What is tried: for which function which candidates, all of them such that the function can be given them."""

import datetime as dt
import re
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import ImgPath, OpenAICompatible, UsageError, llm_function
from SimpleLLMFunc.evaluate.cases import checked_cases
from SimpleLLMFunc.evaluate.run import Variants
from SimpleLLMFunc.improve.candidates import candidates_of, example_lines
from SimpleLLMFunc.interface.profile import GENERIC
from SimpleLLMFunc.llm_decorator.decorated import pipeline_of
from SimpleLLMFunc.llm_decorator.steps.function.improvement import Improvement
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import decorated

REMOTE = OpenAICompatible("gpt-5-mini", api_key="k", wire="chat")
PLAIN = ScriptedLLM("x")


class Order(BaseModel):
    day: dt.date
    price: Decimal


def tried(function, cases):
    lines = example_lines(checked_cases(cases, Variants(function).reader), Variants(function).reader)
    return candidates_of(pipeline_of(function), lines, 0), lines


def whats(candidates):
    return {change.what for each in candidates for change in each.changes}


def test_every_candidate_is_a_request_of_its_own_and_the_first_are_of_all_kinds():
    label = decorated(Literal["a", "b"], REMOTE)
    candidates, _ = tried(label, [(f"text {number}", "ab"[number % 2]) for number in range(20)])
    assert whats(candidates[:4]) == whats(candidates) == {"examples", "output mode", "prompt", "think first"}
    bodies = {
        str(label.with_options(improvement=Improvement(each.options, is_checked=True)).preview("q").body)
        for each in candidates
    }
    assert len(bodies) == len(candidates) > 8
    assert len({each.name for each in candidates}) == len(candidates)
    for each in candidates:
        if most := re.search(r"the (\d+) most like", each.name):
            assert (each.options["max_examples"], len(each.options["examples"])) == (int(most[1]), 20)
    drawn = [len(each.options["examples"]) for each in candidates if "drawn at random" in each.name]
    assert sorted(drawn) == [4, 4, 8, 8, 16]
    balanced = next(each for each in candidates if "same number" in each.name).options["examples"]
    assert sorted(line["value"] for line in balanced) == ["a"] * 4 + ["b"] * 4
    thirds, _ = tried(
        decorated(Literal["a", "b", "c"], REMOTE), [(f"text {number}", "abc"[number % 3]) for number in range(20)]
    )
    assert "examples: 6, the same number of each answer" in {each.name for each in thirds}
    first, second = candidates[0], next(each for each in candidates if each.changes[0].what == "output mode")
    both = first.joined(second)
    assert both.options == {**first.options, **second.options}
    assert first.joined(candidates[3]) is None or candidates[3].changes[0].what != "examples"
    assert both.joined(second) is None


def test_as_many_examples_are_drawn_as_there_are():
    candidates, lines = tried(decorated(str, REMOTE), [(f"text {number}", "a") for number in range(4)])
    drawn = [each.options["examples"] for each in candidates if "4 drawn at random" in each.name]
    assert drawn
    for each in drawn:
        assert sorted(map(str, each)) == sorted(map(str, lines))


def test_examples_survive_json_and_what_does_not_is_left_out(tmp_path):
    @llm_function(REMOTE)
    def order(day: dt.date, *, items: list[Decimal]) -> Order:
        """Order."""

    day, price = dt.date(2026, 1, 2), Decimal("0.10")
    cases = [
        ({"day": day, "items": [price]}, Order(day=day, price=price)),
        ({"day": day, "items": []}, {"day": "2026-01-03", "price": 3}),
    ]
    _, lines = tried(order, cases)
    assert lines[0] == {"args": {"day": "2026-01-02", "items": ["0.10"]}, "value": {"day": "2026-01-02", "price": 0.1}}
    candidates, _ = tried(order, cases)
    shown = order.with_options(improvement=Improvement(candidates[0].options, is_checked=True))
    assert len(shown.preview(day, items=[]).messages) == 6

    @llm_function(PLAIN)
    def look(picture: ImgPath) -> str:
        """Look."""

    path = tmp_path / "a.png"
    path.write_bytes(bytes.fromhex("89504e470d0a1a0a") + b"x")
    assert tried(look, [({"picture": ImgPath(path)}, "cat")])[1] == []


@pytest.mark.parametrize(
    ("mode", "is_short", "named"),
    [("prompt", True, "prompt: short"), ("tool", True, "prompt: long"), ("tool", False, "prompt: short")],
)
def test_a_prompt_of_another_length_that_says_what_to_return_where_nothing_else_does(mode, is_short, named):
    llm = ScriptedLLM("x", profile=replace(GENERIC, native=True, short_prompt=is_short))
    label = decorated(Literal["a", "b"], llm, output_mode=mode)
    candidate = next(each for each in candidates_of(pipeline_of(label), [], 0) if each.name == named)
    message = label.with_options(improvement=Improvement(candidate.options, is_checked=True)).preview("q").messages[0]
    assert ("Return value:" in message["content"]) == (mode == "prompt")


def test_functions_with_their_own_examples_prompt_and_text():
    text = decorated(str, PLAIN, examples=[("a", "b")])
    candidates, _ = tried(text, [(f"t{number}", "u") for number in range(10)])
    assert whats(candidates) == {"examples", "prompt"}
    assert any(each.options == {"examples": None} for each in candidates)
    assert not any("same number" in each.name for each in candidates)

    @llm_function(PLAIN, system_prompt_template="{function_description}")
    def own(text: str) -> str:
        """Text."""

    assert candidates_of(pipeline_of(own), [], 0) == []
    with pytest.raises(UsageError, match="nothing to vary in own"):
        own.improve([{"args": str(number)} for number in range(40)], scorer=lambda value, wanted: 1, progress=False)
