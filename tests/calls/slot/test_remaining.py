"""What is asked for, keyword by keyword of Draft 7."""

from typing import Any

import jsonschema
import pytest

from SimpleLLMFunc.calls.slot.processor import SlotProcessor

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
CARD = {
    "properties": {"kind": {"const": "card"}, "number": {"type": "string", "description": "16 digits"}, "cvc": STRING},
    "required": ["kind", "number", "cvc"],
}
BANK = {"properties": {"kind": {"const": "bank"}, "iban": STRING, "number": INTEGER}, "required": ["kind", "iban"]}
PAYMENT = {"properties": {"pay": {"oneOf": [CARD, BANK]}}}
COUNTRY = {
    "properties": {"country": STRING, "zip": INTEGER},
    "if": {"properties": {"country": {"const": "US"}}},
    "then": {"required": ["zip"]},
    "else": {"required": ["plz"], "properties": {"plz": STRING}},
}


def remaining(schema: Any, data: Any) -> dict[str, Any]:
    found = SlotProcessor(schema).check_json(data)
    jsonschema.Draft7Validator.check_schema(found)
    assert found == {} or found["type"] == "object"
    SlotProcessor(found)
    return found


def of(schema: Any) -> dict[str, Any]:
    """Return the schema of an object whose one field is of a schema."""
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "data", "asked"),
    [
        # a field is missing
        ({"required": ["a"]}, {}, {"/a": {}}),
        ({**of(STRING), "required": ["a"]}, {}, {"/a": STRING}),
        ({"patternProperties": {"^n_": INTEGER}, "required": ["n_x"]}, {}, {"/n_x": INTEGER}),
        ({"additionalProperties": INTEGER, "required": ["z"]}, {}, {"/z": INTEGER}),
        # in an object that is there, and as a whole where it is not
        (of({**of(STRING), "required": ["a"]}), {"a": {}}, {"/a/a": STRING}),
        ({**of({**of(STRING), "required": ["a"]}), "required": ["a"]}, {}, {"/a": {**of(STRING), "required": ["a"]}}),
        (of({"items": {**of(STRING), "required": ["a"]}}), {"a": [{"a": "x"}, {}]}, {"/a/1/a": STRING}),
        # a value is wrong
        (of(INTEGER), {"a": "five"}, {"/a": INTEGER}),
        (of(INTEGER), {"a": True}, {"/a": INTEGER}),
        (of({"type": ["integer", "null"]}), {"a": 1.5}, {"/a": {"type": ["integer", "null"]}}),
        (of({"const": 3}), {"a": 4}, {"/a": {"const": 3}}),
        (of({"const": 1}), {"a": True}, {"/a": {"const": 1}}),
        (of({"enum": ["x", "y"]}), {"a": "z"}, {"/a": {"enum": ["x", "y"]}}),
        (of({"minimum": 3}), {"a": 2}, {"/a": {"minimum": 3}}),
        (of({"exclusiveMinimum": 3}), {"a": 3}, {"/a": {"exclusiveMinimum": 3}}),
        (of({"maximum": 3}), {"a": 4}, {"/a": {"maximum": 3}}),
        (of({"exclusiveMaximum": 3}), {"a": 3}, {"/a": {"exclusiveMaximum": 3}}),
        (of({"multipleOf": 0.1}), {"a": 0.35}, {"/a": {"multipleOf": 0.1}}),
        (of({"minLength": 2}), {"a": "杭"}, {"/a": {"minLength": 2}}),
        (of({"maxLength": 1}), {"a": "杭州"}, {"/a": {"maxLength": 1}}),
        (of({"pattern": "^[A-Z]"}), {"a": "rome"}, {"/a": {"pattern": "^[A-Z]"}}),
        ({"patternProperties": {"^n_": INTEGER}}, {"n_x": "x"}, {"/n_x": INTEGER}),
        ({"additionalProperties": INTEGER}, {"y": "no"}, {"/y": INTEGER}),
        (of({"not": STRING}), {"a": "x"}, {"/a": {"not": STRING}}),
        # lists
        (of({"items": INTEGER}), {"a": [1, "x"]}, {"/a/1": INTEGER}),
        (of({"items": [STRING, INTEGER]}), {"a": ["x", "y"]}, {"/a/1": INTEGER}),
        (of({"items": [STRING], "additionalItems": INTEGER}), {"a": ["x", "y"]}, {"/a/1": INTEGER}),
        (of({"items": [STRING], "additionalItems": False}), {"a": ["x", 1]},
         {"/a": {"items": [STRING], "additionalItems": False}}),
        (of({"minItems": 3, "items": STRING}), {"a": []}, {"/a": {"minItems": 3, "items": STRING}}),
        (of({"maxItems": 1}), {"a": [1, 2]}, {"/a": {"maxItems": 1}}),
        (of({"uniqueItems": True}), {"a": [1, 1.0]}, {"/a": {"uniqueItems": True}}),
        (of({"contains": INTEGER}), {"a": []}, {"/a": {"contains": INTEGER}}),
        (of({"contains": INTEGER}), {"a": ["x"]}, {"/a": {"contains": INTEGER}}),
        (of({"items": False}), {"a": [1]}, {"/a": {"items": False}}),
        # how many there are, and what they are called
        (of({"minProperties": 1}), {"a": {}}, {"/a": {"minProperties": 1}}),
        (of({"maxProperties": 1}), {"a": {"x": 1, "y": 2}}, {"/a": {"maxProperties": 1}}),
        (of({"propertyNames": {"maxLength": 2}}), {"a": {"abc": 1}}, {"/a": {"propertyNames": {"maxLength": 2}}}),
        (of({"additionalProperties": False}), {"a": {"x": 1}}, {"/a": {"additionalProperties": False}}),
        (of({"properties": {"b": False}}), {"a": {"b": 1}}, {"/a": {"properties": {"b": False}}}),
        # what belongs together
        ({"properties": {"cvc": STRING}, "dependencies": {"card": ["cvc"]}}, {"card": "1"}, {"/cvc": STRING}),
        ({"dependencies": {"card": {"properties": {"cvc": STRING}, "required": ["cvc"]}}}, {"card": "1"}, {"/cvc": STRING}),
        (COUNTRY, {"country": "US"}, {"/zip": INTEGER}),
        (COUNTRY, {"country": "DE"}, {"/plz": STRING}),
        # several subschemas for one place
        ({"allOf": [of(STRING), {"properties": {"a": {"minLength": 2}}, "required": ["a"]}]}, {},
         {"/a": {"allOf": [STRING, {"minLength": 2}]}}),
        ({"allOf": [of(STRING), {"properties": {"a": {"minLength": 2}}}]}, {"a": "x"},
         {"/a": {"allOf": [STRING, {"minLength": 2}]}}),
        (of({"anyOf": [INTEGER, {"type": "boolean"}]}), {"a": "x"}, {"/a": {"anyOf": [INTEGER, {"type": "boolean"}]}}),
        (of({"anyOf": [{**of(STRING), "required": ["a"]}, {"type": "null"}]}), {"a": {}}, {"/a/a": STRING}),
        (of({"anyOf": [INTEGER, {"type": "null"}]}), {"a": {}}, {"/a": {"anyOf": [INTEGER, {"type": "null"}]}}),
        (of({"oneOf": [INTEGER, {"minimum": 3}]}), {"a": 5}, {"/a": {"oneOf": [INTEGER, {"minimum": 3}]}}),
        (PAYMENT, {"pay": {"kind": "card"}}, {"/pay/number": CARD["properties"]["number"], "/pay/cvc": STRING}),
        (PAYMENT, {"pay": {"kind": "bank", "number": "x"}}, {"/pay/number": INTEGER, "/pay/iban": STRING}),
        (PAYMENT, {"pay": "card"}, {"/pay": PAYMENT["properties"]["pay"]}),
        ({"allOf": [of(STRING), of(True)], "required": ["a"]}, {}, {"/a": STRING}),
        ({"properties": {"pay": {"anyOf": [{"anyOf": [CARD]}, BANK]}}}, {"pay": {"kind": "bank"}}, {"/pay/iban": STRING}),
        (of({"anyOf": [{"items": INTEGER, "type": "array"}, STRING]}), {"a": [1, "x"]}, {"/a/1": INTEGER}),
    ],
)  # fmt: skip
def test_what_is_asked_for(schema, data, asked):
    found = remaining(schema, data)
    assert found == {"type": "object", "properties": asked, "required": list(asked)}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"not": {"required": ["a"]}}, {"a": 1}),
        ({"additionalProperties": False, "properties": {"a": STRING}}, {"b": 1}),
        ({"maxProperties": 1}, {"a": 1, "b": 2}), ({"minProperties": 2}, {}),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}), ({"properties": {"a": False}}, {"a": 1}),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1, "b": 2}), ({"enum": [{"a": 1}]}, {}),
        ({"anyOf": [False, {"const": {"a": 1}}]}, {}), ({"type": "object", "const": {"a": 1}}, {}),
    ],
)  # fmt: skip
def test_the_whole_is_asked_for_where_nothing_else_would_mend_it(schema, data):
    assert remaining(schema, data) == {"type": "object", "properties": {"": schema}, "required": [""]}


def test_what_is_too_much_is_left_for_later_while_something_is_missing():
    schema = {**of(STRING), "required": ["a"], "additionalProperties": False}
    assert remaining(schema, {"b": 1})["required"] == ["/a"]


@pytest.mark.parametrize(
    ("schema", "data", "names"),
    [
        ({"properties": {"a": STRING, "b": INTEGER}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, ["/a", "/b"]),
        (PAYMENT, {"pay": {}}, ["/pay/kind", "/pay/number", "/pay/cvc", "/pay/iban"]),
        (PAYMENT, {"pay": {"kind": "cash"}}, ["/pay/kind", "/pay/number", "/pay/cvc", "/pay/iban"]),
        ({"anyOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"required": ["a"]}]}, {}, ["/a", "/b"]),
    ],
)  # fmt: skip
def test_where_one_of_several_would_do_all_are_there_and_none_is_required(schema, data, names):
    found = remaining(schema, data)
    assert (list(found["properties"]), found["required"]) == (names, [])


def test_what_is_missing_anyway_is_required_in_an_alternative_too():
    schema = {"required": ["a"], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert remaining(schema, {})["required"] == ["/a"]


def test_a_field_of_several_alternatives_is_described_by_all_of_them():
    kind = remaining(PAYMENT, {"pay": {}})["properties"]["/pay/kind"]
    assert kind == {"anyOf": [{"const": "card"}, {"const": "bank"}]}


# --- references ------------------------------------------------------------------------------------------


def test_definitions_are_carried_along_only_those_that_are_needed():
    tree = {"type": "object", "properties": {"next": {"$ref": "#/definitions/tree"}, "v": {"$ref": "#/$defs/v"}}}
    schema = {
        "properties": {"t": {"$ref": "#/definitions/tree", "description": "the tree"}},
        "required": ["t"],
        "definitions": {"tree": tree, "other": STRING},
        "$defs": {"v": INTEGER, "w": STRING},
    }
    assert remaining(schema, {}) == {
        "type": "object", "properties": {"/t": {"$ref": "#/definitions/tree", "description": "the tree"}},
        "required": ["/t"], "definitions": {"tree": tree}, "$defs": {"v": INTEGER},
    }  # fmt: skip
    deep = remaining({**schema, "definitions": {"tree": {**tree, "required": ["v"]}}}, {"t": {"next": {"v": 1}}})
    assert deep["properties"] == {"/t/v": {"$ref": "#/$defs/v"}}


@pytest.mark.parametrize(
    ("schema", "reference", "name", "target"),
    [
        ({**of({"$ref": "#/properties/b"}), "required": ["a"]}, "#/properties/b", "properties_b", True),
        ({**of({"$ref": "#pos"}), "required": ["a"], "definitions": {"q": {"$id": "#pos", "type": "integer"}}}, "#pos",
         "pos", {"type": "integer"}),
        ({**of({"$ref": "#/x~1y/%7B0%7D"}), "required": ["a"], "x/y": {"{0}": INTEGER}}, "#/x~1y/%7B0%7D", "x_1y_7B0_7D",
         INTEGER),
    ],
)  # fmt: skip
def test_what_is_no_definition_becomes_one(schema, reference, name, target):
    if target is True:
        schema["properties"]["b"] = target = {"type": "boolean"}
    found = remaining(schema, {})
    assert found["properties"] == {"/a": {"$ref": f"#/$defs/{name}"}}
    assert found["$defs"] == {name: target}


def test_a_reference_to_the_whole_carries_the_whole():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "v": {"$ref": "#/definitions/v"}},
        "required": ["v"],
        "definitions": {"v": INTEGER},
        "$defs": {"whole": STRING},
    }
    found = remaining(schema, {"v": 1, "child": 5})
    assert found["properties"] == {"/child": {"$ref": "#/$defs/whole_2"}}
    assert found["definitions"] == {"v": INTEGER}
    whole = found["$defs"]["whole_2"]
    assert whole["properties"]["child"] == {"$ref": "#/$defs/whole_2"}
    assert "definitions" not in whole
    assert jsonschema.Draft7Validator(found).is_valid({"/child": {"v": 1, "child": {"v": 2}}})
    assert not jsonschema.Draft7Validator(found).is_valid({"/child": {"v": 1, "child": {}}})
    assert remaining(schema, {"child": {"child": {"v": 1}}})["required"] == ["/child/v", "/v"]


def test_words_for_the_reader_stand_outside():
    schema = {
        "allOf": [of({"type": "string", "title": "A"}), {"properties": {"a": {"minLength": 2, "description": "long"}}}],
        "required": ["a"],
    }
    found = remaining(schema, {})["properties"]["/a"]
    assert (found["title"], found["description"]) == ("A", "long")
