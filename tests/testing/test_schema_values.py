import random
import re
import sys
from decimal import Decimal
from uuid import UUID

import jsonschema
import pytest
from pydantic import AnyUrl, IPvAnyAddress, Json, TypeAdapter

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.testing.schema_values import text_matching, value_of


def drawn(schema, count=40):
    return [value_of(schema, random.Random(seed)) for seed in range(count)]


SCHEMAS = [
    {"type": "integer", "minimum": 3, "maximum": 5},
    {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
    {"type": "integer", "multipleOf": 7, "minimum": -20},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
    {"type": "number", "minimum": 0.2, "maximum": 0.3},
    {"type": "integer", "maximum": -1000},
    {"type": "string", "minLength": 20, "maxLength": 22},
    {"type": "string", "maxLength": 0},
    {"type": "string", "pattern": "^[A-Z]{2}$", "examples": ["AB", "XY"]},
    {"enum": ["a", 1, None]},
    {"const": {"a": [1]}},
    {"type": ["integer", "null"]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2, "maxProperties": 2},
    {"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "null"}, "minProperties": 2},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
               {"properties": {"b": {"type": "null"}}, "required": ["b"]}]},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "required": ["sons"], "properties": {
        "sons": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}}},
    {"$ref": "#/$defs/l", "$defs": {"l": {"anyOf": [{"type": "object", "required": ["next"], "properties": {
        "next": {"$ref": "#/$defs/l"}}}, {"type": "null"}]}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_values_fit(schema):
    for value in drawn(schema):
        jsonschema.validate(value, schema)


def test_all_that_may_be_comes_up():
    schema = {
        "anyOf": [{"type": "integer"}, {"enum": ["a", "b"]}, {"type": "object", "properties": {"x": {"const": 1}}}]
    }
    kinds = {str(value) if isinstance(value, str) else type(value).__name__ for value in drawn(schema)}
    assert kinds == {"int", "a", "b", "dict"}
    lengths = {len(value) for value in drawn({"type": "array", "items": {}})}
    assert {0, 3} <= lengths
    optional = {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert {len(value) for value in drawn(optional)} == {0, 1}


def test_the_same_seed_gives_the_same():
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 3}
    assert drawn(schema) == drawn(schema)
    assert len({str(value) for value in drawn(schema)}) > 30


@pytest.mark.parametrize(
    "wanted", ["date", "date-time", "time", "duration", "uuid", "email", "ipv4", "ipv6", "uri", "hostname"]
)
def test_formats(wanted):
    checker = jsonschema.FormatChecker()
    schema = {"type": "string", "format": wanted}
    for value in drawn(schema, 20):
        jsonschema.validate(value, schema, format_checker=checker)


@pytest.mark.parametrize("kind", [UUID, AnyUrl, IPvAnyAddress, Json[list[int]], Decimal, bytes])
def test_types_of_pydantic(kind):
    adapter = TypeAdapter(kind)
    for value in drawn(adapter.json_schema(), 20):
        adapter.validate_python(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True}, {"$ref": "#/$defs/gone"},
        {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"type": "object", "propertyNames": {"const": "x"}, "additionalProperties": {}, "minProperties": 2},
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(schema):
    with pytest.raises(UsageError):
        value_of(schema, random.Random(1))


# --- texts that match a pattern: made by rstr where it is installed; else the error says both ways ---

PATTERNS = [
    r"^[A-Z]{3}-\d{4}$", r"abc", r"^(\w+)@x\.com$", r"^[^a-z]+$", r"(a|b|cd)+", r"^\+?[1-9]\d{1,14}$", r"^(?P<q>['\"]).*(?P=q)$",
    r"^#(?:[0-9a-fA-F]{3}){1,2}$", r"\S+\s\S+", r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$", r"^$", r"a?b*c+", r"^.{5}$", r"^[äöü]+$",
]  # fmt: skip


def test_without_rstr_the_examples_of_the_schema_are_taken_or_both_ways_are_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "rstr", None)
    schema = {"type": "string", "pattern": "^[A-Z]{2}$", "examples": ["AB", "XY"]}
    assert {value_of(schema, random.Random(seed)) for seed in range(20)} == {"AB", "XY"}
    del schema["examples"]
    with pytest.raises(ConfigError, match=r"examples=\[…\], or run: pip install rstr") as caught:
        value_of(schema, random.Random(1))
    assert "^[A-Z]{2}$" in str(caught.value)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_made_matches(pattern):
    pytest.importorskip("rstr")
    seen = set()
    for seed in range(10):
        text = text_matching(pattern, random.Random(seed))
        assert text == text_matching(pattern, random.Random(seed))
        assert re.search(pattern, text)
        seen.add(text)
    assert len(seen) > 1 or pattern in {"abc", "^$"}


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [(r"^[a-z]+$", 30, 40), (r"x", 10, 10), (r"^\d*$", 7, 7), (r"[abc]+", 0, 3), (r"^(ab)*$", 8, 8)],
)
def test_lengths_hold(pattern, least, most):
    pytest.importorskip("rstr")
    for seed in range(5):
        text = text_matching(pattern, random.Random(seed), least=least, most=most)
        assert re.search(pattern, text)
        assert least <= len(text) <= most


@pytest.mark.parametrize(
    ("pattern", "least", "most", "said"),
    [
        (r"^\d{3}$", 5, None, "at least 5"), (r"(", 0, None, "cannot read"), (r"a(?=b)c", 0, 9, "0 to 9|cannot read"),
        (r"^a$", 0, 0, "0 to 0"),
    ],
)  # fmt: skip
def test_a_pattern_that_cannot_be_matched_is_said(pattern, least, most, said):
    pytest.importorskip("rstr")
    with pytest.raises(UsageError, match=said) as caught:
        text_matching(pattern, random.Random(1), least=least, most=most)
    assert "examples=" in str(caught.value)
