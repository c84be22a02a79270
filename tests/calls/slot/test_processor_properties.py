"""Over schemas and pointer sets: what was taken apart comes together, and what is asked for is what is missing."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.calls.slot.pointer import ABSENT, pointer_path, pointer_text, value_at
from SimpleLLMFunc.calls.slot.processor import SlotProcessor

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.sampled_from(
    ["city", "date", "a/b", "m~n", "", "0", "1", "-", "名称", "price list", "/x", "~1", "$ref", "type"]
)
TEXTS = st.sampled_from(["", "Rome", "5", "null", "1,234", "/city", "{}", "杭州", "true"])


class Made:
    """A schema, and how to draw a value that fits it."""

    def __init__(self, schema: Any, values: st.SearchStrategy[Any]) -> None:
        self.schema = schema
        self.values = values


def scalars() -> st.SearchStrategy[Made]:
    return st.sampled_from(
        [
            Made({"type": "string"}, TEXTS),
            Made({"type": "string", "minLength": 1, "description": "a text"}, TEXTS.filter(bool)),
            Made({"type": "integer"}, st.integers(-5, 5)),
            Made({"type": "integer", "minimum": 3}, st.integers(3, 9)),
            Made({"type": "number", "multipleOf": 0.5}, st.sampled_from([0.5, 1.0, 2, -3.5])),
            Made({"type": "boolean"}, st.booleans()),
            Made({"type": ["string", "null"]}, TEXTS | st.none()),
            Made({"enum": ["a", 1, None]}, st.sampled_from(["a", 1, None])),
            Made({"const": "fixed"}, st.just("fixed")),
            Made({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[a-z]+$"}]}, st.integers(0, 3) | st.just("abc")),
            Made({"$ref": "#/definitions/word"}, TEXTS.filter(bool)),
            Made({"$ref": "#/$defs/number"}, st.integers(0, 100)),
            Made({"type": "date"}, st.sampled_from(["明天", "2024-05-01"])),
        ]
    )  # fmt: skip


DEFINITIONS = {
    "definitions": {"word": {"type": "string", "minLength": 1}, "unused": {"type": "null"}},
    "$defs": {"number": {"type": "integer", "minimum": 0, "description": "how many"}},
}


@st.composite
def lists(draw: Any, inner: st.SearchStrategy[Made]) -> Made:
    item = draw(inner)
    schema: dict[str, Any] = {"type": "array", "items": item.schema}
    least = draw(st.integers(0, 2))
    if least:
        schema["minItems"] = least
    return Made(schema, st.lists(item.values, min_size=least, max_size=3))


@st.composite
def objects(draw: Any, inner: st.SearchStrategy[Made]) -> Made:
    members: dict[str, Made] = draw(st.dictionaries(NAMES, inner, min_size=1, max_size=4))
    required = [name for name in members if draw(st.booleans())]
    schema: dict[str, Any] = {"type": "object", "properties": {name: made.schema for name, made in members.items()}}
    if required:
        schema["required"] = required
    schema |= draw(st.sampled_from([{}, {}, {"additionalProperties": False}]))

    @st.composite
    def values(draw: Any) -> dict[str, Any]:
        return {name: draw(made.values) for name, made in members.items() if name in required or draw(st.booleans())}

    if draw(st.integers(0, 4)) == 0:
        return Made({"anyOf": [schema, {"type": "null"}]}, values() | st.none())
    return Made(schema, values())


def schemas() -> st.SearchStrategy[Made]:
    inner = st.recursive(scalars(), lambda part: lists(part) | objects(part), max_leaves=6)
    return objects(inner).filter(lambda made: "anyOf" not in made.schema)


def whole(made: Made) -> dict[str, Any]:
    return {**made.schema, **DEFINITIONS}


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """Take a value apart: scalars and empty containers with their paths."""
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for number, item in enumerate(value) for leaf in leaves(item, (*path, number))]
    return [(path, value)]


def standard(schema: Any) -> Any:
    return json.loads(json.dumps(schema).replace('"type": "date"', '"type": "string"'))


@SETTINGS
@given(st.data())
def test_what_was_taken_apart_in_any_order_comes_together_unchanged(data):
    made = data.draw(schemas())
    value = data.draw(made.values)
    parts = data.draw(st.permutations([(pointer_text(path), leaf) for path, leaf in leaves(value) if path]))
    schema = whole(made)
    before = json.dumps(schema)
    given_ = dict(parts)
    processor = SlotProcessor(schema)
    converted = processor.convert(given_)
    assert converted.data == value
    assert json.dumps(converted.data, sort_keys=True) == json.dumps(value, sort_keys=True)  # True is not 1, nor 1.0
    assert (converted.receipts, converted.dropped) == ([], [])
    assert processor.check_json(converted.data) == {}
    assert json.dumps(schema) == before
    assert given_ == dict(parts)


@SETTINGS
@given(st.data())
def test_what_is_asked_for_is_what_was_taken_away(data):
    made = data.draw(schemas())
    value = data.draw(made.values)
    processor = SlotProcessor(whole(made))
    validator = jsonschema.Draft7Validator(standard(whole(made)))
    broken = json.loads(json.dumps(value))
    for path, _ in leaves(value):
        if path and data.draw(st.booleans()):
            holder = value_at(broken, map(str, path[:-1]))
            if isinstance(holder, dict) and data.draw(st.booleans()):
                del holder[path[-1]]
            else:
                holder[path[-1]] = data.draw(st.sampled_from([[], {}, 0.25, "Ünfit!", None, False]))
    before = json.dumps(broken)
    rounds = 0
    while remaining := processor.check_json(broken):
        assert not validator.is_valid(broken)
        assert remaining["type"] == "object"
        assert set(remaining["required"]) <= set(remaining["properties"])
        jsonschema.Draft7Validator.check_schema(standard(remaining))
        SlotProcessor(remaining)  # sound by itself: its references lead somewhere
        answer = {pointer: value_at(value, pointer_path(pointer)) for pointer in remaining["properties"]}
        known = {pointer: None if item is ABSENT else item for pointer, item in answer.items()}
        broken = processor.convert(known, onto=broken).data
        rounds += 1
        assert rounds < 12
        if rounds > 1 and ABSENT in answer.values():
            break  # it asks for what the original did without: a list that it made longer, say
    else:
        assert validator.is_valid(broken)
    if rounds == 0:
        assert json.dumps(broken) == before


@pytest.mark.parametrize("name", ["/", "//", "~", "~0", "~1", "a/b", "m~n", "", " ", "名", "%41", '"', "\\", "-", "0"])
def test_every_name_has_a_pointer_that_leads_to_it(name):
    processor = SlotProcessor({"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]})
    [pointer] = processor.check_json({})["required"]
    assert pointer == pointer_text([name])
    assert processor.convert({pointer: 1}).data == {name: 1}
    assert processor.check_json({name: 1}) == {}
