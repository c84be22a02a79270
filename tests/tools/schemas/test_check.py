"""Schemas by draft 7, with further types, and the places where something is wrong. The rest: test_json_schema.py."""

import pytest

from SimpleLLMFunc.errors import SchemaError
from SimpleLLMFunc.tools.schemas.bounds import check_bounds
from SimpleLLMFunc.tools.schemas.check import SchemaValidation

EVEN = (("even", lambda value: isinstance(value, int) and value % 2 == 0),)


def test_the_draft_is_said_or_read_from_the_schema():
    tuples = {"properties": {"a": {"items": [{"type": "integer"}]}}}
    value = {"a": ["x"]}
    assert SchemaValidation(tuples, is_draft_7=True).violations(value) == [("a[0]", "integer", '"x"')]
    declared = {"$schema": "http://json-schema.org/draft-07/schema#", **tuples}
    assert SchemaValidation(declared).violations(value)
    with pytest.raises(SchemaError, match="no valid JSON Schema at /properties/a/items"):
        SchemaValidation(tuples)  # 2020-12 has no list there
    prefixed = {"properties": {"a": {"prefixItems": [{"type": "integer"}]}}}
    assert SchemaValidation(prefixed).violations(value)
    assert SchemaValidation(prefixed, is_draft_7=True).violations(value) == []


def test_further_types():
    schema = {"properties": {"n": {"type": ["even", "null"]}}}
    validation = SchemaValidation(schema, is_draft_7=True, extra_types=EVEN)
    assert validation.violations({"n": 4}) == validation.violations({"n": None}) == []
    assert validation.violations({"n": 5}) == [("n", "['even', 'null']", "5")]
    with pytest.raises(SchemaError, match="at /properties/n/type: 'odd'"):
        SchemaValidation({"properties": {"n": {"type": "odd"}}}, is_draft_7=True, extra_types=EVEN)
    with pytest.raises(SchemaError, match="at /properties/n/type"):
        SchemaValidation(schema, is_draft_7=True)
    with pytest.raises(ValueError, match="draft 7 only"):
        SchemaValidation(schema, extra_types=EVEN)


def test_errors_are_those_of_jsonschema_up_to_a_limit():
    validation = SchemaValidation({"items": {"type": "integer"}})
    found = validation.errors(["x"] * 9, limit=4)
    assert [list(error.absolute_path) for error in found] == [[0], [1], [2], [3]]
    assert isinstance(validation.validator, validation.validator_class)


def test_a_further_look_comes_after_the_schema_is_known_to_be_valid():
    seen = []
    with pytest.raises(SchemaError, match="no valid JSON Schema"):
        SchemaValidation({"allOf": 5}, look=seen.append)
    assert seen == []
    with pytest.raises(SchemaError, match="end"):
        SchemaValidation({"$ref": "#"}, look=seen.append)
    assert seen == [{"$ref": "#"}]


@pytest.mark.parametrize(
    ("divisor", "value", "fits"),
    [(0.1, 0.3, True), (0.1, 0.35, False), (2, 10**400, True), (0.1, 10**400, True), (0.01, 19.99, True), (1e-5, 1.5, True),
     (3, float("inf"), False), (3, float("nan"), False), (2, True, True), (2, "x", True), (2, 1e300, True)],
)  # fmt: skip
def test_multiples_are_counted_by_their_digits(divisor, value, fits):
    validation = SchemaValidation({"items": {"multipleOf": divisor}})
    assert (validation.violations([value]) == []) is fits


def test_items_that_are_one_number_are_not_unique():
    validation = SchemaValidation({"uniqueItems": True})
    assert validation.violations([1, 1.0])
    assert validation.violations([{"a": [2.0]}, {"a": [2]}])
    assert validation.violations([1, True, "1", [1], {"a": 1}, None, 1.5]) == []


def test_a_name_that_does_not_fit_is_said():
    validation = SchemaValidation({"properties": {"o": {"propertyNames": {"maxLength": 2}}}})
    assert validation.violations({"o": {"abc": 1}}) == [("o", "what fits its maxLength", "'abc' is too long")]


def test_what_references_lead_to_beside_the_known_places_is_looked_at():
    schema = {
        "properties": {"a": {"$ref": "#/components/schemas/A"}},
        "components": {"schemas": {"A": {"type": "integer"}}},
    }
    assert check_bounds(schema) == {"#/components/schemas/A": {"type": "integer"}}
    assert SchemaValidation(schema).violations({"a": "x"}) == [("a", "integer", '"x"')]
    schema["components"]["schemas"]["A"]["allOf"] = 5
    with pytest.raises(
        SchemaError, match="what its reference '#/components/schemas/A' leads to is no valid JSON Schema at"
    ):
        SchemaValidation(schema)
