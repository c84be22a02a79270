import json
from datetime import date
from typing import Any, Literal

import pytest
from pydantic import JsonValue, create_model

from SimpleLLMFunc.interface.local.bounded_schema import bounded, compact_grammar, grammar_pattern, is_ended_by_bound

NUMBERS = {"minimum": -(10**15), "maximum": 10**15}


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        ({"type": "string"}, {"maxLength": 1001}), ({"type": "string", "minLength": 5000}, {"maxLength": 5000}),
        ({"type": "array", "items": {"const": 1}}, {"maxItems": 33}), ({"type": "array", "minItems": 99}, {"maxItems": 99}),
        ({"type": "object", "properties": {}}, {"additionalProperties": False}),
        ({"type": "integer"}, NUMBERS), ({"type": ["number", "null"]}, NUMBERS),
        ({"type": "number", "exclusiveMinimum": 0}, {"maximum": 10**15}),
        ({"type": "integer", "minimum": 10**20}, {"maximum": 10**20}),
        ({"type": "integer", "maximum": -(10**20)}, {"minimum": -(10**20)}),
    ],
)  # fmt: skip
def test_what_has_no_bound_gets_one(schema: dict, more: dict) -> None:
    assert bounded(schema) == {**schema, **more}


def test_a_grammar_is_for_answers_without_text() -> None:
    inner = {"$ref": "#/$defs/A", "$defs": {"A": {"const": "ä"}}}
    head, text = compact_grammar(inner).split("start: %json ")
    assert head == "%llguidance {}\n"
    assert json.loads(text).items() >= inner.items()
    assert json.loads(text)["x-guidance"].items() >= {"whitespace_flexible": False, "lenient": True}.items()
    assert compact_grammar({"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}) == ""


@pytest.mark.parametrize(
    ("kind", "has_grammar"),
    [
        *((kind, True) for kind in (int, float | None, Literal["a", "b"], list[bool], tuple[date, int])),
        *((kind, False) for kind in (str, str | None, list[str], dict[str, int], object, list[Any], JsonValue)),
    ],
)
def test_texts_keep_their_white_space(kind: Any, has_grammar: bool) -> None:
    schema = create_model("Answer", value=(kind, ...)).model_json_schema()
    assert bool(compact_grammar(bounded(schema))) is has_grammar


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 5}, {"type": "integer", "enum": [1]}, {}, True,
        {"type": "string", "maxLength": 5}, {"type": "string", "enum": ["a", "b"]}, {"const": "x", "type": "string"},
        {"type": "string", "format": "date"}, {"type": "array", "items": {"const": 1}, "maxItems": 2},
        {"type": "array", "prefixItems": [{"const": 1}], "minItems": 1}, {"$ref": "#/$defs/A"},
        {"properties": {}, "additionalProperties": True}, {"properties": {}, "patternProperties": {"^x": {"const": 1}}},
        {"allOf": [{"properties": {}}, {"properties": {}, "additionalProperties": False}]},
    ],
)  # fmt: skip
def test_what_has_a_bound_stays(schema: object) -> None:
    assert bounded(schema) == schema


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: {"properties": {"type": inner}, "additionalProperties": True}, lambda inner: {"$defs": {"A": inner}},
        lambda inner: {"items": inner}, lambda inner: {"additionalProperties": inner},
        lambda inner: {"anyOf": [{"type": "null"}, inner]}, lambda inner: {"prefixItems": [inner]},
        lambda inner: {"allOf": [{"oneOf": [inner]}]},
    ],
)  # fmt: skip
def test_bounds_reach_every_place_of_a_schema(wrap) -> None:
    assert bounded(wrap({"type": "string"})) == wrap({"type": "string", "maxLength": 1001})


def test_the_schema_given_is_not_changed() -> None:
    inner = {"type": "string", "pattern": "^(?=x)$"}
    done = bounded({"properties": {"a": inner}})
    assert inner == {"type": "string", "pattern": "^(?=x)$"}
    assert done == {"properties": {"a": {"type": "string", "maxLength": 1001}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("value", "is_ended"),
    [
        ("x" * 1001, True), ("x" * 1000, False), ({"a": [{"b": ["y"] * 33}]}, True),
        ({"a": [{"b": ["y"] * 32}]}, False), ({"a": "é" * 1001}, True), (7, False),
    ],
)  # fmt: skip
def test_an_answer_that_its_bound_ended_is_seen(value, is_ended) -> None:
    assert is_ended_by_bound(json.dumps(value)) is is_ended
    assert not is_ended_by_bound(json.dumps(value)[:-1] + "\x00")


# --- patterns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^[a-z]+$", "^[a-z]+$"), (r"^\d{3}-\w+$", "^[0-9]{3}-[A-Za-z0-9_]+$"), (r"^[\d-]+$", "^[0-9-]+$"),
        (r"^\.$", r"^\.$"), (r"^[\]\d]$", r"^[\]0-9]$"), ("^(?:a|b)$", "^(?:a|b)$"), ("[a-z]+", None),
        (r"^a\$", None), ("^(?!a).*$", None), ("^(?P<x>a)$", None), (r"^\bword$", None), (r"^(a)\1$", None),
        (r"^\p{L}$", None), ("^[[:alpha:]]$", None), ("^é+$", None),
    ],
)  # fmt: skip
def test_patterns(pattern: str, expected: str | None) -> None:
    assert grammar_pattern(pattern) == expected
