"""A tool call on the wire: its name, and its arguments as a model writes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.tools import ArgumentsError
from SimpleLLMFunc.tools.wire import is_wire_name, read_arguments, wire_name, wire_names


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


# --- names ---


def test_refused_characters_are_replaced():
    assert wire_name("web.search") == "web_search"
    assert wire_name("查询weather_forecast") == "weather_forecast"


def test_names_of_which_nothing_would_remain_stay_different():
    names = ["查天气", "查新闻", "x" * 65, "x" * 66, "", "...", "a" * 100 + "b"]
    found = [wire_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(map(is_wire_name, found))
    assert found[0].startswith("tool_")


def test_names_that_would_meet_are_kept_apart_and_the_good_one_keeps_itself():
    assert wire_names(["a.b", "a_b", "a b", "a_b_2"]) == {
        "a.b": "a_b_3", "a_b": "a_b", "a b": "a_b_4", "a_b_2": "a_b_2",
    }  # fmt: skip


@given(st.lists(st.text(max_size=90), unique=True, max_size=8))
def test_any_names_become_different_good_ones(names):
    found = wire_names(names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(map(is_wire_name, found.values()))
    assert all(found[name] == name for name in names if is_wire_name(name))
