"""Properties: harmless damage changes nothing, and no value is ever read that the text does not hold."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, create_model

from SimpleLLMFunc.base.parsing.parsed import Parsed
from SimpleLLMFunc.base.post_process import parse_text
from SimpleLLMFunc.errors import ResponseParseError
from tests.support.answer_types import Color


class Leaf(BaseModel):
    label: str
    size: int


@dataclasses.dataclass
class Pair:
    left: str
    right: float


# Text without a quote, a backslash, a brace or a letter of its own alphabet: what the damage below changes, it changes
# outside of strings only.
plain_text = st.text(st.sampled_from("abcdefg XYZ,.:;-!é中文0123456789"), max_size=12)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def scalar(text: st.SearchStrategy[str]) -> list[tuple[Any, st.SearchStrategy[Any]]]:
    return [
        (str, text), (int, st.integers(-(10**20), 10**20)), (float, st.floats(allow_nan=False, allow_infinity=False)),
        (bool, st.booleans()), (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
        (Color, st.sampled_from(Color)), (Literal["x", "y"], st.sampled_from(["x", "y"])),
        (Leaf, st.builds(Leaf, label=text, size=st.integers())),
        (Pair, st.builds(Pair, left=text, right=st.floats(allow_nan=False, allow_infinity=False))),
    ]  # fmt: skip


def typed(text: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    return st.recursive(
        st.sampled_from(scalar(text)),
        lambda inner: st.one_of(
            inner.map(lambda pair: (list[pair[0]], st.lists(pair[1], max_size=3))),
            inner.map(lambda pair: (dict[str, pair[0]], st.dictionaries(text, pair[1], max_size=3))),
            st.tuples(inner, inner).map(
                lambda pairs: (tuple[pairs[0][0], pairs[1][0]], st.tuples(pairs[0][1], pairs[1][1]))
            ),
        ),
        max_leaves=4,
    )


@st.composite
def models(draw: st.DrawFn, text: st.SearchStrategy[str]) -> tuple[Any, Any]:
    """Draw a model with one to four fields, and a value of it."""
    parts = draw(st.lists(typed(text), min_size=1, max_size=4))
    model: Any = create_model("Drawn", **{f"field_{number}": (part[0], ...) for number, part in enumerate(parts)})
    value = model(**{f"field_{number}": draw(part[1]) for number, part in enumerate(parts)})
    return model, value


def outside_strings(text: str, change: Callable[[str], str]) -> str:
    return "".join(
        piece if piece.startswith('"') else change(piece) for piece in re.split(r'("(?:[^"\\]|\\.)*")', text)
    )


HARMLESS: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "space": lambda text: f"\n\t {text} \n",
    "fence": lambda text: f"```json\n{text}\n```",
    "unclosed fence": lambda text: f"```\n{text}\n",
    "prose": lambda text: f"Here is the result:\n\n{text}\n\nI hope it helps.",
    "reasoning": lambda text: f"<think>Is it {{}}? No.</think>\n{text}",
    "tag": lambda text: f"<answer>{text}</answer>",
    "twice": lambda text: f"{text}\n{text}",
    "trailing commas": lambda text: outside_strings(
        text, lambda piece: re.sub(r"(?<=[^\[{,\s])\s*([}\]])", r",\1", piece)
    ),
    "comments": lambda text: outside_strings(text, lambda piece: piece.replace(",", ", // next\n")),
    "Python literals": lambda text: outside_strings(
        text, lambda piece: piece.replace("true", "True").replace("false", "False").replace("null", "None")
    ),
    "full-width punctuation": lambda text: outside_strings(
        text, lambda piece: piece.replace(",", "，").replace(":", "：")
    ),
    "wrapped": lambda text: f'{{"result": {text}}}',
}
QUOTES = {
    "single quotes": lambda text: text.replace('"', "'"),
    "typographic quotes": lambda text: re.sub(r'"([^"]*)"', r"“\1”", text),
    "keys without quotes": lambda text: re.sub(r'"(field_\d|label|size|left|right)":', r"\1:", text),
}


@pytest.mark.parametrize(("texts", "damages"), [(any_text, HARMLESS), (plain_text, QUOTES)], ids=["harmless", "quotes"])
@settings(max_examples=60)
@given(data=st.data())
def test_a_value_survives_damage(texts: Any, damages: dict[str, Callable[[str], str]], data: st.DataObject) -> None:
    model, value = data.draw(models(texts))
    text = TypeAdapter(model).dump_json(value).decode()
    for damage, change in damages.items():
        parsed: Parsed[Any] = parse_text(change(text), model)
        assert parsed.value == value, damage
        assert parsed.repairs == [] or damage not in {"nothing", "space"}


@settings(max_examples=60)
@given(models(any_text))
def test_a_cut_answer_is_refused_or_whole(drawn: tuple[Any, Any]) -> None:
    model, value = drawn
    text = TypeAdapter(model).dump_json(value).decode()
    for at in range(0, len(text), len(text) // 8 + 1):
        try:
            parsed: Parsed[Any] = parse_text(text[:at], model)
        except ResponseParseError:
            continue
        assert parsed.value == value


def strings_and_numbers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [part for pair in value.items() for piece in pair for part in strings_and_numbers(piece)]
    if isinstance(value, list | tuple | set):
        return [part for piece in value for part in strings_and_numbers(piece)]
    return [] if value is None or isinstance(value, bool) else [value]


messy = st.lists(
    st.sampled_from(
        ["{", "}", "[", "]", ":", ",", '"', "'", "\\", "\n", " ", "a", "b", "name", "1", "2.5", "-", "true", "None", "null",
         "//", "/*", "*/", "#", "```", "json", "<think>", "</think>", "“", "”", "：", "，", "(", ")", "yes", "no", "not", "or",
         "value", "e", "\\u00e9", "0", "...", "é", "\ud800"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@settings(max_examples=250)
@given(messy | st.text(max_size=30))
def test_no_text_gives_a_value_that_is_not_in_it(text: str) -> None:
    shown = text.replace("\ud800", "\ufffd")
    for wanted in (list[str], dict[str, str], str | float, list[int], dict[str, int], dict[str, list[str]]):
        try:
            value = parse_text(text, wanted).value
        except ResponseParseError as error:
            assert error.violations
            continue
        for part in strings_and_numbers(value):
            if isinstance(part, str):
                escaped = json.dumps(part, ensure_ascii=False)[1:-1]
                assert part in shown or escaped in shown or "\\" in text or "think>" in text
            else:
                digits = re.sub(r"\D", "", str(part).removesuffix(".0"))
                is_rounded = isinstance(part, float) and abs(part) >= 2**53  # the nearest one that there is
                assert digits.strip("0") in re.sub(r"\D", "", text) or is_rounded


@settings(max_examples=120)
@given(messy | st.text(max_size=30), st.sampled_from(["off", "syntax", "coerce"]))
def test_any_text_gives_a_value_or_our_error(text: str, repair: Any) -> None:
    for wanted in (bool, Color, Literal["a", "b"], int | None, Leaf, set[str], tuple[int, str], Any):
        try:
            parsed = parse_text(text, wanted, repair=repair)
        except ResponseParseError as error:
            assert error.violations
        else:
            TypeAdapter(wanted).validate_python(parsed.value)
