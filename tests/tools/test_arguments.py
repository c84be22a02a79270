"""Arguments as a model writes them, read as they stand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.tools.arguments import read_arguments
from SimpleLLMFunc.tools.schemas.callable_schema import ArgumentsError


@pytest.mark.parametrize("text", ["", "  \n", "null", "{}", " { } "])
def test_nothing_is_the_empty_object(text):
    assert read_arguments(text) == {}


def test_an_object_is_read_as_it_stands():
    assert read_arguments('{"a": 1, "b": {"c": [true, null, "ü"]}}') == {"a": 1, "b": {"c": [True, None, "ü"]}}


@pytest.mark.parametrize(
    "text",
    ["[]", '"x"', "3", "true", "{", "{'a': 1}", "nonsense", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1, "a": 2}',
     '{"a": ' + "9" * 5000 + "}", "[" * 100_000, '{"a":' * 100_000],
)  # fmt: skip
def test_what_is_no_object_is_told_with_what_came(text):
    with pytest.raises(ArgumentsError) as caught:
        read_arguments(text)
    (violation,) = caught.value.violations
    assert violation[:2] == ("", "a JSON object")
    assert len(str(caught.value)) < 400


def test_a_key_given_twice_with_one_value_is_one():
    assert read_arguments('{"a": 1, "a": 1}') == {"a": 1}


def test_halves_of_characters_are_replaced():
    assert read_arguments('{"a\\ud800": ["b\\udfff", {"c": "\\ud83d\\ude00"}]}') == {"a�": ["b�", {"c": "😀"}]}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON_VALUES, max_size=4)


@given(OBJECTS)
def test_valid_objects_come_back_unchanged(value):
    text = json.dumps(value)
    assert read_arguments(text) == json.loads(json.dumps(value).encode("utf-8", "replace"))


@given(OBJECTS.filter(bool), st.data())
def test_a_cut_text_is_no_object(value, data):
    text = json.dumps(value)
    with pytest.raises(ArgumentsError):
        read_arguments(text[: data.draw(st.integers(1, len(text) - 1))])
