import random
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal
from uuid import UUID

import jsonschema
import pytest
from pydantic import AnyUrl, BaseModel, Field, IPvAnyAddress, Json, TypeAdapter

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.testing.schema_values import value_of


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


class Kind(Enum):
    A = "a"
    B = "b"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    owner: Annotated[str, Field(min_length=3)] | None = None


def test_a_tag_with_a_default_is_always_said():
    adapter = TypeAdapter(list[Annotated[Cat | Dog, Field(discriminator="kind")]])
    for value in drawn(adapter.json_schema()):
        adapter.validate_python(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True},
        {"$ref": "#/$defs/gone"},
        {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"type": "object", "propertyNames": {"const": "x"}, "additionalProperties": {}, "minProperties": 2},
    ],
)
def test_what_cannot_be_is_said(schema):
    with pytest.raises(UsageError):
        value_of(schema, random.Random(1))
