"""Where an answer is read: a long one in a thread."""

from __future__ import annotations

import json
import threading
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from SimpleLLMFunc.base.run.review import read_answer
from SimpleLLMFunc.base.schemas.output_mode import compile_output
from SimpleLLMFunc.errors import ResponseParseError
from SimpleLLMFunc.runtime import LARGE

threads: set[str] = set()


def noted(text: str) -> str:
    threads.add(threading.current_thread().name)
    return text


class Line(BaseModel):
    name: Annotated[str, AfterValidator(noted)]
    count: int


def lines(length: int) -> str:
    """Return JSON of about so many characters."""
    return json.dumps([{"name": "a name", "count": number} for number in range(length // 35)])


@pytest.mark.parametrize(
    ("text", "is_aside"),
    [
        (lines(1_000), False), (lines(1_000)[:-1] + ",]", False), (lines(40_000), True),
        (lines(40_000)[:-1] + ",]", True), ("Here they are: " + lines(40_000), True), (lines(3 * LARGE), True),
    ],
)  # fmt: skip
async def test_what_takes_its_time_is_read_in_a_thread(text: str, is_aside: bool) -> None:
    threads.clear()
    spec = compile_output(list[Line])
    here = threading.current_thread().name
    parsed = await read_answer(spec, text)
    assert [line.count for line in parsed.value] == list(range(len(parsed.value)))
    assert (here not in threads) == is_aside
    assert threads


@pytest.mark.parametrize("size", [10, 10_000, 100_000])
async def test_what_does_not_fit_is_refused_wherever_it_is_read(size: int) -> None:
    with pytest.raises(ResponseParseError) as caught:
        await read_answer(compile_output(list[Line]), "[" + "x" * size)
    assert caught.value.violations


@pytest.mark.parametrize(("return_type", "value"), [(str, "a" * 10_000), (None, None), (Any, {"a": "a" * 10_000})])
async def test_all_kinds_of_answers_are_read(return_type: Any, value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    assert (await read_answer(compile_output(return_type), text)).value == value


async def test_a_long_text_that_is_only_reasoning_is_no_answer() -> None:
    with pytest.raises(ResponseParseError, match="nothing but reasoning"):
        await read_answer(compile_output(str), "<think>" + "a" * 10_000)
