"""Values one after the other, as the items of a list; what is told of an answer that does not fit, and in which order."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from SimpleLLMFunc.base.post_process import parse_text
from SimpleLLMFunc.errors import ResponseParseError


@pytest.mark.parametrize(
    ("text", "wanted", "items"),
    [
        ("1. 5\n2. 6", list[int], [5, 6]), ('"a", "b, c"', list[str], ["a", "b, c"]),
        ("red, Blue", list[Literal["red", "blue"]], ["red", "blue"]),
        ("red、blue", list[Literal["red", "blue"]], ["red", "blue"]), ("true\nfalse", list[bool], [True, False]),
        ("1, 2", list[str], ["1", "2"]), ("yes, no", list[Literal["yes", "no"]], ["yes", "no"]),
        ("[1]\n[2]", list[list[int]], [[1], [2]]),
        ('{"a": 1}\n{"a": 2}', list[dict[str, int]], [{"a": 1}, {"a": 2}]),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', list[dict[str, int]], [{"a": 1}, {"a": 2}]),
        ('1. {"a": 1}\n2. {"a": 1}', list[dict[str, int]], [{"a": 1}, {"a": 1}]),
        *((f'{{"a": 1}}{between}{{"a": 2}}', list[dict[str, int]], [{"a": 1}, {"a": 2}]) for between in
          ("\n- ", "\n  - \n", "- \n  * ", "```\n```json\n", ",\n", "\n\n 2) ")),
    ],
)  # fmt: skip
def test_items(text: str, wanted: Any, items: list[Any]) -> None:
    parsed = parse_text(text, wanted)
    assert parsed.value == items
    assert ("", f"{len(items)} values taken as the items of the list") in parsed.repairs


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("red, not blue", list[Literal["red", "blue"]]), ("[red] is nice", list[Literal["red"]]),
        ('{"a": 1} but {"a": 2}', list[dict[str, int]]), ('{"a": 1}\n{"a": ', list[dict[str, int]]),
        ("[1]\n[2]", list[int]), ("[1]\n[2]", list[Any]), ("**5**", list[int]), ("red", list[Literal["red"]]), ("about 5\nabout 6", list[int]),
        *(("I am sorry,\nbut no.", list[item]) for item in (str, str | None, str | int, Any)),
        # A pattern that can read each bullet in two ways would never come to the end of this.
        ('{"a": 1}\n' + "-  \n" * 200 + 'x {"a": 2}', list[dict[str, int]]),
    ],
)  # fmt: skip
def test_no_items(text: str, wanted: Any) -> None:
    with pytest.raises(ResponseParseError):
        parse_text(text, wanted)


class Person(BaseModel):
    name: str
    age: int


def test_what_does_not_fit_does_not_hide_what_was_cut_off():
    cut = (' then {"name": "B", "age": 3', ["JSON that is cut off"])
    for start, end, told in (('{"age": 1}', *cut), ('{"age": 1, "age": 2}', *cut), ('{"age": 1}', "", [])):
        with pytest.raises(ResponseParseError) as caught:
            parse_text(f'First {start} then {{"name": "A", "age": "x"}}{end}', Person)
        assert [got.partition(":")[0] for _, _, got in caught.value.violations] == [*told, "'x'"]


def test_where_the_json_was_found_is_told_first():
    found = parse_text('The answer: {"name": "A", "age": "3"} and no more', Person)
    assert [path for path, _ in found.repairs] == ["", "age"]
    assert parse_text("a\ud83d", str).repairs == [("", "half a character replaced")]
