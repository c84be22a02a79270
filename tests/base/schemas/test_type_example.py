"""An example value of a JSON schema."""

from __future__ import annotations

from typing import Any

import pytest

from SimpleLLMFunc.base.schemas.type_example import example_of

WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 2}
UNIQUE: Any = {"type": "array", "minItems": 2, "uniqueItems": True}
LINKED: Any = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Link"}}}
LISTS: Any = {"type": "array", "items": {"$ref": "#/$defs/List"}}
NUMBERS = {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": ["integer", "null"]}, 1), ({"type": "integer", "exclusiveMinimum": 6}, 7),
        ({"type": "boolean"}, True), ({"type": "array", "items": {"type": "boolean"}, "maxItems": 1}, [True]),
        ({"type": "number"}, 1.5), ({"type": "number", "exclusiveMinimum": 2}, 3),
        ({"type": "number", "exclusiveMaximum": 1}, 0), ({"type": "number", "minimum": 2, "exclusiveMinimum": 3}, 4),
        ({"type": "number", "maximum": 2, "exclusiveMaximum": 1}, 0.5), ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "integer", "minimum": 5, "maximum": 5}, 5), ({"type": "integer", "minimum": 5, "maximum": 3}, 1),
        ({**UNIQUE, "items": {"type": "integer"}}, [1, 2]), ({**UNIQUE, "items": {"type": "object"}}, [{}]),
        ({**UNIQUE, "items": {"$ref": "#/$defs/Hue"}, "$defs": {"Hue": {"enum": ["red", "blue"]}}}, ["red", "blue"]),
        ({**UNIQUE, "items": {"type": "boolean"}}, [True, False]), ({**UNIQUE, "items": {"maxLength": 4}}, ["text"]),
        ({**LISTS, "$defs": {"List": LISTS}}, [[]]), (WORDS, ["text", "text"]),
        ({**WORDS, "uniqueItems": True}, ["text1", "text2"]), ({**WORDS, "uniqueItems": True, "minItems": 1}, ["text"]),
        (NUMBERS, {"a": True}), ({"enum": ["a", "b"]}, "a"), ({"type": "string", "minLength": 12}, "text text te"),
        ({**LINKED, "$defs": {"Link": LINKED}}, {"next": {}}),
        ({**LINKED, "$defs": {"Link": {**LINKED, "required": ["next"]}}}, {}),
        ({"properties": {"next": {**LINKED["properties"]["next"], "default": 3}}, "type": "object",
          "$defs": {"Link": {**LINKED, "required": ["next"]}}}, {"next": 3}),
    ],
)  # fmt: skip
def test_an_example_fits_and_ends(schema: Any, value: Any) -> None:
    assert example_of(schema) == value
