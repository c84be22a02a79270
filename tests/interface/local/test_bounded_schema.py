import json
import re
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, JsonValue, TypeAdapter, create_model

from SimpleLLMFunc.interface.local.bounded_schema import (
    Bounds,
    bounded,
    bounded_format,
    compact_grammar,
    grammar_pattern,
    is_ended_by,
    most_tokens,
)

BOUNDS = Bounds(1001, 33)


def wanted(schema: object) -> dict:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}


NUMBERS = {"minimum": -(10**15), "maximum": 10**15}


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        ({"type": "string"}, {"maxLength": BOUNDS.string}),
        ({"type": "array", "items": {"const": 1}}, {"maxItems": BOUNDS.items}),
        ({"type": "object", "properties": {}}, {"additionalProperties": False}),
        ({"type": "integer"}, NUMBERS),
        ({"type": ["number", "null"]}, NUMBERS),
        ({"type": "number", "exclusiveMinimum": 0}, {"maximum": 10**15}),
        ({"type": "integer", "minimum": 10**20}, {"maximum": 10**20}),
        ({"type": "integer", "maximum": -(10**20)}, {"minimum": -(10**20)}),
    ],
)
def test_what_has_no_bound_gets_one(schema: dict, more: dict) -> None:
    assert bounded(schema, BOUNDS) == {**schema, **more}


def test_a_grammar_is_for_answers_without_text() -> None:
    inner = {"$ref": "#/$defs/A", "$defs": {"A": {"const": "ä"}}}
    head, text = compact_grammar(inner).split("start: %json ")
    assert head == "%llguidance {}\n"
    assert json.loads(text).items() >= inner.items()
    assert json.loads(text)["x-guidance"]["whitespace_flexible"] is False
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
    assert bool(compact_grammar(bounded(schema, BOUNDS))) is has_grammar


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 5},
        {"type": "integer", "enum": [1]},
        {"type": "string", "maxLength": 5},
        {"type": "string", "enum": ["a", "b"]},
        {"const": "x", "type": "string"},
        {"type": "string", "format": "date"},
        {"type": "array", "items": {"const": 1}, "maxItems": 2},
        {"type": "array", "prefixItems": [{"const": 1}], "minItems": 1},
        {"properties": {}, "additionalProperties": True},
        {"properties": {}, "patternProperties": {"^x": {"const": 1}}},
        {"allOf": [{"properties": {}}, {"properties": {}, "additionalProperties": False}]},
        {"$ref": "#/$defs/A"},
        {},
        True,
    ],
)
def test_what_has_a_bound_stays(schema: object) -> None:
    assert bounded(schema, BOUNDS) == schema


def test_a_larger_minimum_wins() -> None:
    assert bounded({"type": "string", "minLength": 5000}, BOUNDS)["maxLength"] == 5000
    assert bounded({"type": "array", "minItems": 99}, BOUNDS)["maxItems"] == 99


def test_a_list_of_types() -> None:
    assert bounded({"type": ["string", "null"]}, BOUNDS) == {"type": ["string", "null"], "maxLength": BOUNDS.string}


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
    assert find(bounded(wrap({"type": "string"}), BOUNDS))["maxLength"] == BOUNDS.string


def test_the_schema_given_is_not_changed() -> None:
    inner = {"type": "string", "pattern": "^(?=x)$"}
    given = {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"properties": {"a": inner}}, "strict": True},
    }
    done = bounded_format(given, 2048).format
    assert inner == {"type": "string", "pattern": "^(?=x)$"}
    assert done == {
        "type": "json_schema",
        "json_schema": {
            "name": "n",
            "schema": {
                "properties": {"a": {"type": "string", "maxLength": BOUNDS.string}},
                "additionalProperties": False,
            },
            "strict": True,
        },
    }


@pytest.mark.parametrize("other", [{}, {"type": "json_object"}, {"type": "text"}, {"type": "json_schema"}])
def test_other_formats_stay(other) -> None:
    assert bounded_format(other, 2048) == (other, None, None)


# --- how long an answer may be -----------------------------------------------------------------------------


class Item(BaseModel):
    name: str
    price: float
    tags: list[str]


class Tree(BaseModel):
    name: str
    children: list["Tree"]


LITTLE = {
    bool: 16,
    int: 32,
    Literal["yes", "no", "perhaps"]: 24,
    date: 80,
    tuple[int, int]: 64,
    Annotated[str, Field(max_length=20)]: 32,
    Annotated[list[int], Field(max_length=3)]: 96,
    int | None: 32,
}


@pytest.mark.parametrize("kind", LITTLE, ids=str)
def test_a_short_answer_gets_few_tokens_and_enough(kind) -> None:
    done = bounded_format(wanted(TypeAdapter(kind).json_schema()), 2048)
    assert done.longest is not None
    assert done.longest <= LITTLE[kind]
    values = {bool: False, int: -(10**15), date: date(2026, 12, 31), tuple[int, int]: (10**9, 10**9)}
    if kind in values:  # a token for each character at most
        assert len(TypeAdapter(kind).dump_json(values[kind])) <= done.longest


@pytest.mark.parametrize("kind", [str, list[str], list[int], Item, list[Item], tuple[str, list[list[str]]]], ids=str)
@pytest.mark.parametrize("room", [512, 2048, 8192])
def test_the_longest_answer_that_the_schema_lets_pass_fits(kind, room) -> None:
    done = bounded_format(wanted(TypeAdapter(kind).json_schema()), room)
    assert done.bounds is not None
    narrowest = bounded_format(wanted(TypeAdapter(kind).json_schema()), 1).bounds
    assert done.longest is not None
    assert done.longest <= room or done.bounds == narrowest


def test_more_room_gives_wider_bounds() -> None:
    schema = wanted(TypeAdapter(Item).json_schema())
    widths = [bounded_format(schema, room).bounds for room in (500, 2048, 5000, 50_000)]
    assert widths == sorted(widths)
    assert len(set(widths)) >= 3
    assert bounded_format(schema, 50_000).bounds == BOUNDS


@pytest.mark.parametrize("kind", [dict[str, int], Tree, list[Any], JsonValue], ids=str)
def test_what_a_grammar_cannot_end_has_no_longest_answer(kind) -> None:
    done = bounded_format(wanted(TypeAdapter(kind).json_schema()), 2048)
    assert (done.longest, done.bounds) == (None, BOUNDS)


def test_references_are_followed() -> None:
    inside = {"$defs": {"a/b": {"const": "x" * 90}}, "properties": {"v": {"$ref": "#/$defs/a~1b"}}, "type": "object"}
    assert 90 < (most_tokens(inside) or 0) < 120


@pytest.mark.parametrize(
    ("value", "is_ended"),
    [
        ("x" * 1001, True),
        ("x" * 1000, False),
        ({"a": [{"b": ["y"] * 33}]}, True),
        ({"a": [{"b": ["y"] * 32}]}, False),
        ({"a": "é" * 1001}, True),
        (7, False),
    ],
)
def test_an_answer_that_its_bound_ended_is_seen(value, is_ended) -> None:
    assert is_ended_by(json.dumps(value), BOUNDS) is is_ended
    assert not is_ended_by(json.dumps(value)[:-1] + "\x00", BOUNDS)


# --- patterns ----------------------------------------------------------------------------------------------


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
