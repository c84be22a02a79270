"""A JSON Schema that was given: arguments valid as sent or answered, nothing runs away; draft 7, and further types."""

from typing import Any

import pytest

from SimpleLLMFunc.errors import SchemaError, ToolDefinitionError
from SimpleLLMFunc.tools import ArgumentsError, Tool, ToolContext
from SimpleLLMFunc.tools.schemas.bounds import check_bounds, pattern_matches
from SimpleLLMFunc.tools.schemas.check import SchemaValidation

WEATHER = {
    "type": "object", "required": ["city"], "additionalProperties": False,
    "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}, "unit": {"enum": ["C", "F"]},
                   "days": {"type": "integer", "minimum": 1, "default": 3}},
}  # fmt: skip


def echo(**arguments):
    return arguments


def made(schema: Any = WEATHER) -> Tool:
    return Tool(func=echo, name="weather", parameters=schema)


def violations(schema: Any, arguments: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(ArgumentsError) as caught:
        made(schema).bind(arguments)
    return caught.value.violations


def test_valid_arguments_are_given_as_keywords_just_as_they_were_sent():
    assert made().bind('{"city": "Rome"}') == ([], {"city": "Rome"})  # no default is filled in
    assert made().parameters == WEATHER


@pytest.mark.parametrize(
    ("arguments", "violation"),
    [
        ({"city": "Rome", "days": "3"}, ("days", "integer", '"3"')),
        ({"city": "Rome", "days": True}, ("days", "integer", "true")),
        ({"city": "Rome", "unit": "K"}, ("unit", 'one of ["C", "F"]', '"K"')),
        ({"city": "rome"}, ("city", "what fits its pattern", "'rome' does not match '^[A-Z]'")),
        ({"city": "Rome", "days": 0}, ("days", "what fits its minimum", "0 is less than the minimum of 1")),
        ({"city": "Rome", "x": 1}, ("", "no other names", "'x'")), ({}, ("", "also 'city'", "{}")),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_answered_and_nothing_converted(arguments, violation):
    assert violations(WEATHER, arguments) == [violation]


def test_broken_json_is_not_mended_where_nothing_may_be_changed():
    with pytest.raises(ArgumentsError, match="a JSON object"):
        made().bind("{'city': 'Rome'}")


def test_null_and_nothing_are_the_empty_object():
    for text in ("null", "", "{}"):
        assert Tool(func=echo, name="now", parameters={}).bind(text) == ([], {})


def test_the_type_is_added_where_it_is_missing():
    found = made({"properties": {"a": {"type": "string"}}})
    told = found.to_openai_tool()["function"]["parameters"]
    assert told == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_references_into_itself_are_followed():
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["v"]}},
    }
    assert made(schema).bind({"tree": {"v": 1, "next": {"v": 2}}})
    assert violations(schema, {"tree": {"v": 1, "next": {}}})[0][0] == "tree.next"
    tree: dict[str, Any] = {"v": 0}
    for n in range(20):
        tree = {"v": n, "next": tree}
    assert made(schema).bind({"tree": tree})
    listed = {"properties": {"a": {"$ref": "#/allOf/0"}}, "allOf": [{"not": {"type": "integer"}}]}
    assert violations(listed, {"a": 1})[0][0] == "a"


def test_a_context_is_filled_and_hidden():
    def func(a, ctx: ToolContext) -> Any: ...

    found = Tool(func=func, parameters={"type": "object", "properties": {"a": {}}})
    context = ToolContext(trace_id="t")
    assert found.bind({"a": 1}, context) == ([], {"a": 1, "ctx": context})
    with pytest.raises(ArgumentsError, match="ctx: expected no such parameter"):
        found.bind({"a": 1, "ctx": 2})


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ([1], "must be a JSON Schema of an object"), ({"type": "array"}, "must be a JSON Schema of an object"),
        ({"type": "object", "properties": {"a": {"type": "integr"}}}, "no valid JSON Schema"),
        ({"type": "object", "required": "a"}, "no valid JSON Schema"),
        ({"properties": {"a": {"$ref": "#/$defs/no"}}}, "leads nowhere"), ({"$ref": "#"}, "without end"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "is remote"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "is remote"),
        ({"properties": {"a": {"pattern": "(?=x)y"}}}, "looks around or back"),
        ({"properties": {"a": {"pattern": "a" * 300}}}, "more than 256 characters"),
        ({"properties": {"a": {"type": "object", "patternProperties": {"(?!x)": {}}}}}, "looks around"),
        ({"properties": {"a": {"pattern": "("}}}, "is wrong"), ({"allOf": [{"$ref": "#"}]}, "without end"),
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
         "end"),
        ({"$ref": "#/$defs/0", "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(500)} | {"500": {}}},
         "deeply"),
        ({"properties": {str(n): {"$ref": "#/$defs/a"} for n in range(1001)}, "$defs": {"a": {}}}, "1000 references"),
        ({"properties": {"a": {"$ref": "#nowhere"}}, "allOf": [{"$ref": "#nowhere"}]}, "leads nowhere"),
        ({"properties": {"a": {"$ref": "#/allOf/7"}}, "allOf": [{}]}, "leads nowhere"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused_at_once(schema, problem):
    with pytest.raises(ToolDefinitionError, match=f"tool 'weather': .*{problem}") as caught:
        made(schema)
    assert problem.startswith("must") or isinstance(caught.value.__context__, SchemaError)


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def _doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**definitions, f"l{levels}": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/l0"}}}


def test_a_schema_within_bounds_is_taken_also_from_deep_down():
    def at(level: int) -> Tool:
        return at(level - 1) if level else made({"properties": {"a": _deep(60)}})

    assert at(400).bind({"a": [[1]]})


@pytest.mark.parametrize(
    "schema", [{"properties": {"a": _deep(1000)}}, {"enum": list(range(20_000))}, {"properties": {"a": _deep(70)}}]
)
def test_attack_11_a_schema_out_of_bounds_is_refused(schema):
    with pytest.raises(ToolDefinitionError, match="too large"):
        made(schema)


def test_attack_11_a_pattern_that_explodes_elsewhere_is_harmless():
    schema = {"properties": {"a": {"pattern": "^(a+)+$"}}}
    assert made(schema).bind({"a": "a" * 28})
    assert violations(schema, {"a": "a" * 28 + "!"})
    keys = {"properties": {"o": {"type": "object", "patternProperties": {"^(a+)+$": {"type": "integer"}},
                                 "additionalProperties": False}}}  # fmt: skip
    assert made(keys).bind({"o": {"aaa": 1}})
    assert violations(keys, {"o": {"a" * 28 + "!": 1}})
    assert violations(keys, {"o": {"a": "x"}})


def test_attack_11_a_schema_that_doubles_at_each_level_stops():
    assert "more than 100000 steps" in violations(_doubling(20), {"a": "x"})[0][2]  # it would take hours


def test_attack_11_unique_items_of_many_objects_are_linear():
    schema = {"properties": {"a": {"uniqueItems": True}}}
    many = [{"n": n} for n in range(5000)]
    assert made(schema).bind({"a": many})
    (violation,) = violations(schema, {"a": [*many, {"n": 0}]})
    assert violation == ("a", "what fits its uniqueItems", "the items are not all different")
    assert made(schema).bind({"a": [1, True, "1", None, [1], {"a": 1, "b": 2}]})


def test_many_violations_are_cut():
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    assert len(violations(schema, {"a": ["x"] * 5000})) == 20


def test_deep_arguments_are_answered():
    value: list[Any] = []
    for _ in range(900):
        value = [value]
    schema = {"properties": {"a": {"$ref": "#/$defs/l"}}, "$defs": {"l": {"items": {"$ref": "#/$defs/l"}}}}
    assert "without end" in violations(schema, {"a": value})[0][2]


def test_other_keywords_next_to_ours():
    schema = {
        "properties": {
            "any": {"anyOf": [{"type": "integer"}, {"pattern": "^x", "type": "string"}]},
            "rest": {"type": "object", "additionalProperties": {"type": "integer"}},
            "many": {"type": "array", "uniqueItems": False},
        }
    }
    assert made(schema).bind({"any": "xy", "rest": {"a": 1}, "many": [1, 1]})
    assert violations(schema, {"rest": {"a": "x"}}) == [("rest.a", "integer", '"x"')]
    assert violations(schema, {"any": "y"})[0][:2] == ("any", "what fits its anyOf")


# --- the check by itself ---

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


def test_errors_are_those_of_jsonschema_up_to_a_limit():
    validation = SchemaValidation({"items": {"type": "integer"}})
    found = validation.errors(["x"] * 9, limit=4)
    assert [list(error.absolute_path) for error in found] == [[0], [1], [2], [3]]
    assert isinstance(validation.validator, validation.validator_class)


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


# --- bounds ---


def test_a_pattern_is_looked_for_in_linear_time():
    assert pattern_matches(r"^\p{Han}+$", "杭州")
    assert not pattern_matches("^(a+)+$", "a" * 28 + "!")
    for pattern in ("(", "(?=a)", "a" * 257):
        with pytest.raises(SchemaError, match="pattern"):
            pattern_matches(pattern, "a")


def test_values_are_not_searched_for_references_and_patterns():
    for keyword in ("const", "default"):
        check_bounds({keyword: {"$ref": "http://127.0.0.1:1/", "pattern": "("}})
    check_bounds({"enum": [{"$ref": "x"}], "examples": [{"pattern": "("}]})
    with pytest.raises(SchemaError, match=r"at /x-own/0/y is remote"):
        check_bounds({"x-own": [{"y": {"$ref": "x"}}]})
