"""Fields as real servers send them, and as none should."""

import json
import math

import pytest

from SimpleLLMFunc.type import ChatCompletion, content_text, count, index_of, mapping, mappings, text_or_none, wire


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, None), ("x", "x"), ([], ""), (5, "5"),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}, "c"], "ab"),
    ],
)  # fmt: skip
def test_content_is_text_in_any_shape(content, text):
    assert content_text(content) == text


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7), (7.9, 7), (0, 0), (-3, 0), (True, 0), ("7", 0), (None, 0), ([], 0), (math.nan, 0), (math.inf, 0),
        (-math.inf, 0), (10**400, 0), (1e300, 0), (2**53, 2**53),
    ],
)  # fmt: skip
def test_a_count_is_a_number_from_0_up(value, number):
    assert count({"n": value}, "n") == number
    assert count({}, "n") == count(None, "n") == count([1], "n") == 0


def test_what_goes_back_can_be_said_in_json():
    odd = {"a": math.nan, "b": [math.inf, {"c": -math.inf}], "d": 1.5, "e": "x", "known": math.nan}
    assert wire.extras(odd, frozenset({"known"})) == {"a": None, "b": [None, {"c": None}], "d": 1.5, "e": "x"}


def test_other_fields_are_read_as_far_as_they_make_sense():
    assert mapping({"a": 1}) == {"a": 1}
    assert mapping([1]) == mapping(None) == {}
    assert mappings([{"a": 1}, 2, None]) == mappings(({"a": 1},)) == [{"a": 1}]
    assert mappings("ab") == mappings(None) == []
    assert (text_or_none("a"), text_or_none(1), text_or_none(None)) == ("a", None, None)
    assert (index_of({"index": 3}, 0), index_of({}, 2), index_of({"index": None}, 1)) == (3, 2, 1)


def test_lone_surrogates_are_replaced_and_pairs_joined():
    assert wire.without_surrogates("a\ud800b \ud83d\ude00 \udc00") == "a\ufffdb \U0001f600 \ufffd"
    assert wire.without_surrogates("plain é 😀") == "plain é 😀"


def test_what_is_nested_without_end_goes_back_without_it():
    deep = flat = "x"
    for _ in range(600):
        deep = {"a": [deep]}
    for _ in range(20):
        flat = [flat]
    reply = ChatCompletion.from_dict({"choices": [{"message": {"content": "hi", "odd": deep, "fine": flat}}]})
    assert (reply.text, reply.message.extra["fine"]) == ("hi", flat)
    assert reply.message.extra["odd"]["a"][0]["a"]
    json.dumps(reply.to_dict())
