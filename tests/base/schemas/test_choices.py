"""Which types are a choice between labels, how labels are told, and that a label is read only where it was chosen."""

from __future__ import annotations

import enum
from typing import Annotated, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator
from typing_extensions import TypeAliasType

from SimpleLLMFunc import ResponseParseError
from SimpleLLMFunc.base.schemas import compile_output, grammar_of, labels_text
from SimpleLLMFunc.base.schemas.choices import labels_of


class Mood(enum.Enum):
    GLAD = "very glad"
    SAD = "sad"


class Size(enum.Enum):
    SMALL = 1
    LARGE = "L"
    GREAT = 1  # noqa: PIE796 - an alias of SMALL


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Unhashable(enum.Enum):
    DOG = "dog"
    __hash__ = None


def _refuses_sad(value):
    if value == "sad":
        raise ValueError("never sad")
    return value


LABELS = [
    (bool, ["true", "false"]), (Optional[bool], ["true", "false", "null"]),
    (Literal["a", 2, True, None], ["a", "2", "true", "null"]), (Mood, ["very glad", "sad"]),
    (Size | None, ["SMALL", "LARGE", "null"]), (Literal[Mood.SAD, "ok"], ["sad", "ok"]),
    (Literal["很好", "好"], ["很好", "好"]), (Annotated[Literal["x"], "meta"], ["x"]),
    (TypeAliasType("Answer", Literal["yes", "no"]), ["yes", "no"]),
    (Literal["two\nlines", "", 'qu"ote', " x"], ['"two\\u000alines"', '""', 'qu"ote', '" x"']),
    # labels that read the same, or are equal; and what is no choice
    *((kind, []) for kind in (Literal["1", 1], Literal["true"] | bool, Literal[1, True])),
    *((kind, []) for kind in (None, type(None), str, str | None, Right, list[bool], Unhashable)),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "labels"), LABELS, ids=lambda each: str(each)[:40])
def test_the_labels_of_a_type(hint, labels):
    assert list(labels_of(hint)) == labels
    spec = compile_output(hint)
    for label in labels:
        value = spec.parse(label, "off", mode="choice").value
        assert value is spec.labels[label] or value == spec.labels[label]


def test_all_labels_are_told():
    for count in (2, 6, 7, 40):
        labels = {f"label {number}": number for number in range(count)}
        told = labels_text(labels)
        assert all(label in told for label in labels)
        assert ("\n" in told) is (count > 6)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=2, max_size=6, unique=True))
def test_any_texts_are_labels_of_a_grammar_on_one_line(texts):
    hint = Literal[tuple(texts)]
    labels = labels_of(hint)
    if labels:  # a text may read as the quoted form of another one
        assert list(labels.values()) == texts
        assert all(label == label.strip() and len(label.splitlines()) == 1 for label in labels)
        assert "\n" not in grammar_of(labels)
        spec = compile_output(hint)
        assert [spec.parse(label, mode="choice").value for label in labels] == texts


READ = [
    ('{"value": "positive"}', "positive"), ('"positive"', "positive"), (" Positive.\n", "positive"),
    ("<think>negative?</think>positively", "positively"), ("not positive", "not positive"),
    ("positive or negative", None), ("neutral", None), ("posit", None), ("", None), ('{"value": "neutral"}', None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "label"), READ)
def test_a_label_that_was_not_chosen_is_never_returned(text, label):
    spec = compile_output(Literal["positive", "negative", "positively", "not positive"])
    if label is None:
        with pytest.raises(ResponseParseError):
            spec.parse(text, mode="choice")
    else:
        assert spec.parse(text, mode="choice").value == label


def test_a_check_of_the_user_is_heard():
    spec = compile_output(Annotated[Literal["glad", "sad"], AfterValidator(_refuses_sad)])
    assert spec.parse("glad", mode="choice").value == "glad"
    with pytest.raises(ResponseParseError, match="never sad"):
        spec.parse("sad", mode="choice")
