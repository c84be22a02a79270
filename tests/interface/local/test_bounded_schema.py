import re

import pytest

from SimpleLLMFunc.interface.local.bounded_schema import (
    MAX_ITEMS,
    MAX_STRING,
    bounded,
    bounded_response_format,
    grammar_pattern,
)


def test_strings_and_lists_get_bounds() -> None:
    assert bounded({"type": "string"}) == {"type": "string", "maxLength": MAX_STRING}
    assert bounded({"type": "array", "items": {"type": "integer"}}) == {
        "type": "array",
        "items": {"type": "integer"},
        "maxItems": MAX_ITEMS,
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": "string", "maxLength": 5},
        {"type": "string", "enum": ["a", "b"]},
        {"const": "x", "type": "string"},
        {"type": "string", "format": "date"},
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        {"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 1},
        {"$ref": "#/$defs/A"},
        {},
        True,
    ],
)
def test_what_has_a_bound_stays(schema: object) -> None:
    assert bounded(schema) == schema


def test_a_larger_minimum_wins() -> None:
    assert bounded({"type": "string", "minLength": 5000})["maxLength"] == 5000
    assert bounded({"type": "array", "minItems": 99})["maxItems"] == 99


def test_a_list_of_types() -> None:
    assert bounded({"type": ["string", "null"]}) == {"type": ["string", "null"], "maxLength": MAX_STRING}


@pytest.mark.parametrize(
    ("wrap", "find"),
    [
        (lambda inner: {"properties": {"type": inner}}, lambda schema: schema["properties"]["type"]),
        (lambda inner: {"$defs": {"A": inner}}, lambda schema: schema["$defs"]["A"]),
        (lambda inner: {"items": inner}, lambda schema: schema["items"]),
        (lambda inner: {"additionalProperties": inner}, lambda schema: schema["additionalProperties"]),
        (lambda inner: {"anyOf": [{"type": "null"}, inner]}, lambda schema: schema["anyOf"][1]),
        (lambda inner: {"prefixItems": [inner]}, lambda schema: schema["prefixItems"][0]),
        (lambda inner: {"allOf": [{"oneOf": [inner]}]}, lambda schema: schema["allOf"][0]["oneOf"][0]),
    ],
)
def test_bounds_reach_every_place_of_a_schema(wrap, find) -> None:
    assert find(bounded(wrap({"type": "string"})))["maxLength"] == MAX_STRING


def test_the_schema_given_is_not_changed() -> None:
    inner = {"type": "string", "pattern": "^(?=x)$"}
    given = {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"properties": {"a": inner}}, "strict": True},
    }
    done = bounded_response_format(given)
    assert inner == {"type": "string", "pattern": "^(?=x)$"}
    assert done == {
        "type": "json_schema",
        "json_schema": {
            "name": "n",
            "schema": {"properties": {"a": {"type": "string", "maxLength": MAX_STRING}}},
            "strict": True,
        },
    }


@pytest.mark.parametrize("other", [None, {"type": "json_object"}, {"type": "text"}, {"type": "json_schema"}])
def test_other_formats_stay(other) -> None:
    assert bounded_response_format(other) == other


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^[a-z]+$", "^[a-z]+$"),
        (r"^\d{3}-\w+$", "^[0-9]{3}-[A-Za-z0-9_]+$"),
        (r"^[\d-]+$", "^[0-9-]+$"),
        (r"^\.$", r"^\.$"),
        (r"^[\]\d]$", r"^[\]0-9]$"),
        ("^(?:a|b)$", "^(?:a|b)$"),
        ("[a-z]+", None),
        (r"^a\$", None),
        ("^(?!a).*$", None),
        ("^(?P<x>a)$", None),
        (r"^\bword$", None),
        (r"^(a)\1$", None),
        (r"^\p{L}$", None),
        ("^[[:alpha:]]$", None),
        ("^é+$", None),
    ],
)
def test_patterns(pattern: str, expected: str | None) -> None:
    assert grammar_pattern(pattern) == expected


@pytest.mark.parametrize("text", ["123-ab_9", "12-ab", "1234", "999-Z"])
def test_a_said_pattern_means_the_same(text: str) -> None:
    said = grammar_pattern(r"^\d{3}-\w+$")
    assert said is not None
    assert bool(re.fullmatch(said, text)) == bool(re.fullmatch(r"\d{3}-\w+", text, re.ASCII))
