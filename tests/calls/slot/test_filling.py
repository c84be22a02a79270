"""How a slot fills up, without a model."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.calls.slot.filling import Filling
from SimpleLLMFunc.calls.slot.pointer import ABSENT, pointer_path, value_at
from SimpleLLMFunc.calls.slot.processor import SlotProcessor
from SimpleLLMFunc.errors import CallError

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def schema_of(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required or properties)}


def filling_of(schema: dict[str, Any], given: dict[str, Any] | None = None) -> Filling:
    return Filling(schema, SlotProcessor(schema), given or {})


def asked(filling: Filling) -> list[str]:
    return list(filling.remaining.get("properties", {}))


ORDER = schema_of(
    items={"type": "array", "minItems": 1, "items": schema_of(name=STRING, price={"type": "number"})}, city=STRING
)


def test_a_nested_answer_only_adds() -> None:
    filling = filling_of(ORDER, {"items": [{"name": "kettle"}, {"name": "pan", "price": 2}], "city": "Bonn"})
    filling.take({"items": [{"name": "other", "price": 9}, {"name": "x", "price": 8}, {"name": "more", "price": 7}]})
    assert filling.data["items"] == [{"name": "kettle", "price": 9}, {"name": "pan", "price": 2}]


@pytest.mark.parametrize("answer", [{"city": "Köln"}, {"/city": "Köln"}, {"City": "Köln"}])
def test_what_is_filled_stays(answer: dict[str, Any]) -> None:
    filling = filling_of(ORDER, {"city": "Bonn"})
    filling.take({**answer, "items": [{"name": "pan", "price": 1}]})
    assert filling.data == {"city": "Bonn", "items": [{"name": "pan", "price": 1}]}
    assert filling.remaining == {}


def test_a_wrong_value_is_not_filled_and_asked_again() -> None:
    filling = filling_of(schema_of(count=INTEGER, city=STRING), {"count": "many", "city": "Bonn"})
    assert filling.data == {"city": "Bonn"}
    assert asked(filling) == ["/count"]
    assert filling.take({"/count": "very many"}) == [("/count", "very many")]
    assert filling.data == {"city": "Bonn"}
    assert asked(filling) == ["/count"]


def test_a_wrong_value_for_an_optional_field_is_asked_again_where_it_was_given() -> None:
    schema = schema_of("city", city=STRING, unit={"enum": ["C", "F"]})
    filling = filling_of(schema, {"city": "Bonn", "unit": "degrees"})
    assert asked(filling) == ["/unit"]
    assert filling.data == {"city": "Bonn"}
    filling.take({})
    assert asked(filling) == ["/unit"]
    filling.take({"/unit": "F"})
    assert filling.data == {"city": "Bonn", "unit": "F"}
    assert filling.remaining == {}


def test_a_wrong_item_keeps_its_place() -> None:
    schema = schema_of(numbers={"type": "array", "items": INTEGER})
    filling = filling_of(schema, {"numbers": [1, "x", 3, "y"]})
    assert asked(filling) == ["/numbers/1", "/numbers/3"]
    assert filling.data == {"numbers": [1, None, 3]}
    filling.take({"/numbers/3": 4})
    assert filling.data == {"numbers": [1, None, 3, 4]}
    assert asked(filling) == ["/numbers/1"]
    filling.take({"/numbers/1": 2})
    assert filling.data == {"numbers": [1, 2, 3, 4]}
    assert filling.remaining == {}
    rows = schema_of(rows={"type": "array", "items": schema["properties"]["numbers"]})
    assert filling_of(rows, {"rows": [["x"], [1]]}).data == {"rows": [[], [1]]}
    filling = filling_of(schema_of(city=STRING, **schema["properties"]), {"numbers": ["x", "y"], "city": "Bonn"})
    assert filling.data == {"city": "Bonn"}
    unique = schema_of(numbers={"type": "array", "items": {"type": ["integer", "null"]}, "uniqueItems": True})
    assert asked(filling_of(unique, {"numbers": ["x", "y"]})) == ["/numbers"]
    filling = filling_of(unique)
    assert filling.take({"numbers": ["x", "y"]})[2:] == [("/numbers", [None, None])]
    assert (filling.take({"numbers": [1]}), filling.data, filling.remaining) == ([], {"numbers": [1]}, {})


@pytest.mark.parametrize("kind", ["integer", ["integer", "null"]])
def test_a_wrong_item_of_the_model_does_not_pass_as_a_shorter_list(kind: Any) -> None:
    filling = filling_of(schema_of(numbers={"type": "array", "items": {"type": kind}}))
    assert filling.take({"numbers": [1, "x"]}) == [("/numbers/1", "x")]
    assert filling.data == {"numbers": [1]}
    assert asked(filling) == ["/numbers/1"]
    filling.take({"/numbers/1": 2})
    assert filling.data == {"numbers": [1, 2]}
    assert filling.remaining == {}


def test_a_pointer_that_makes_no_sense() -> None:
    with pytest.raises(CallError, match="/city/street"):
        filling_of(ORDER, {"/city/street": "x"})
    filling = filling_of(ORDER)
    filling.take({"/city/street": "x", "/city": "Bonn", "/items/one/name": "pan", "~2": 1})
    assert filling.data == {"city": "Bonn"}
    assert {"/city/street", "/items/one/name"} <= {pointer for pointer, _ in filling.dropped}


def test_null_means_unknown_and_leaves_no_note() -> None:
    filling = filling_of(schema_of(city=STRING, count=INTEGER))
    filling.take({"/city": "Bonn", "/count": None})
    assert filling.data == {"city": "Bonn"}
    assert filling.dropped == []
    nullable = filling_of(schema_of(note={"type": ["string", "null"]}))
    nullable.take({"note": None})
    assert nullable.data == {"note": None}
    assert nullable.remaining == {}


def test_wanted_also_holds_optional_fields_without_a_value() -> None:
    schema = {
        **schema_of(
            "city", city=STRING, unit={"$ref": "#/$defs/unit"}, days=INTEGER, **{"a/b": {"$ref": "#/properties/city"}}
        ),
        "$defs": {"unit": {"enum": ["C", "F"]}},
    }
    wanted = filling_of(schema, {"days": 2}).wanted()
    assert list(wanted["properties"]) == ["/city", "/unit", "/a~1b"]
    assert wanted["required"] == ["/city"]
    processor = SlotProcessor(wanted)  # it is a schema by itself
    assert processor.check_json({"/city": "Bonn", "/unit": "C", "/a~1b": "x"}) == {}
    assert len(processor.check_json({"/city": "Bonn", "/unit": "K", "/a~1b": 1})["properties"]) == 2
    complete = filling_of(schema, {"city": "Bonn"})
    assert complete.wanted() == {}


def test_one_of_several_ways_does_not_take_away_what_is_right() -> None:
    schema = {
        "type": "object",
        "properties": {"name": STRING, "phone": STRING, "mail": STRING},
        "required": ["name"],
        "anyOf": [{"required": ["phone"]}, {"required": ["mail"]}],
    }
    filling = filling_of(schema, {"name": "Ada"})
    assert filling.data == {"name": "Ada"}
    assert asked(filling) == ["/phone", "/mail"]
    filling.take({"/mail": "ada@example.org"})
    assert filling.data == {"name": "Ada", "mail": "ada@example.org"}
    assert filling.remaining == {}


def test_an_answer_that_breaks_the_whole_is_left_out_as_a_whole() -> None:
    schema = {**schema_of("a", a=INTEGER, b=INTEGER, c=INTEGER), "maxProperties": 2}
    filling = filling_of(schema, {"b": 1})
    filling.take({"a": 1, "c": 2})
    assert filling.data == {"b": 1}
    assert asked(filling) == ["/a"]
    assert filling.dropped == [("", "with the answer the data would not fit the schema as a whole")]
    filling.take({"a": 1})
    assert filling.data == {"a": 1, "b": 1}


def test_given_data_that_breaks_the_whole_is_asked_for_again() -> None:
    schema = {**schema_of("a", a=INTEGER, b=INTEGER), "maxProperties": 1}
    filling = filling_of(schema, {"a": 1, "b": 1})
    assert filling.data == {}
    assert asked(filling) == ["/a"]
    assert filling.dropped == [("", "the data does not fit the schema as a whole")]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "5", "Bonn"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "price", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["city", "items", "/city", "/items", "/items/0", "/items/0/name", "/items/1/price", "/x", "City"]
)


@settings(max_examples=80, deadline=None)
@given(
    known=st.dictionaries(st.sampled_from(["city", "items"]), VALUES, max_size=2),
    answers=st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=3),
)
def test_the_data_is_always_valid_and_only_grows(known: dict[str, Any], answers: list[dict[str, Any]]) -> None:
    filling = filling_of(ORDER, known)
    for answer in answers:
        before = filling.data
        filling.take(answer)
        assert kept(before, filling.data)
        if not filling.remaining:
            assert SlotProcessor(ORDER).check_json(filling.data) == {}
    reported = set(SlotProcessor(ORDER).check_json(filling.data).get("properties", {}))
    for pointer in reported:  # it holds nothing wrong
        assert value_at(filling.data, pointer_path(pointer)) in (None, ABSENT)
    for pointer in reported:
        assert any(place == pointer or place.startswith(f"{pointer}/") for place in asked(filling))


def kept(before: Any, after: Any) -> bool:
    """Whether every value of `before` is in `after`; a null only held a place."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and kept(value, after[name]) for name, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) <= len(after) and all(map(kept, before, after))
    return before is None or before == after


@pytest.mark.parametrize(
    ("answer", "city"),
    [({"parameters": {"/city": "Rome"}}, "Rome"), ({"/mood": {"city": "Rome"}}, None), ({"address": {"city": "Rome"}}, None)],
)  # fmt: skip
def test_a_wrapper_around_the_answer_is_taken_off_where_it_is_no_field(
    answer: dict[str, Any], city: str | None
) -> None:
    filling = filling_of(schema_of(city=STRING, address=schema_of(city=STRING)))
    filling.take(answer)
    assert filling.data.get("city") == city
    assert (("", "unwrapped from 'parameters'") in filling.receipts) is bool(city)
