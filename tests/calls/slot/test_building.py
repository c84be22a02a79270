"""Plain keys and pointers to nested data, in any order; values brought to what the schema wants, unknown members left out."""

import datetime as dt
import itertools
from typing import Any

import pytest

from SimpleLLMFunc.calls.slot.building import checked_data
from SimpleLLMFunc.calls.slot.processor import Converted, SlotProcessor
from SimpleLLMFunc.errors import CallError

STRING = {"type": "string"}
ORDER = {
    "type": "object",
    "properties": {
        "city": STRING, "tags": {"type": "array", "items": STRING}, "a/b": STRING, "m~n": STRING, "any": {}, "free": {"type": "object"},
        "items": {"type": "array", "items": {"type": "object", "properties": {
            "price": {"type": "number"}, "name": STRING, "sizes": {"type": "array", "items": STRING},
        }}},
        "address": {"anyOf": [
            {"type": "object", "properties": {"zip": {"type": "integer"}, "street": STRING}}, {"type": "null"},
        ]},
        "codes": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}  # fmt: skip


def converted(data: Any, onto: Any = None, schema: Any = ORDER) -> Any:
    return SlotProcessor(schema).convert(data, onto)


def built(data: Any, onto: Any = None, schema: Any = ORDER) -> Any:
    return converted(data, onto, schema).data


@pytest.mark.parametrize(
    ("data", "nested"),
    [
        ({}, {}), ({"city": "Rome"}, {"city": "Rome"}), ({"/city": "Rome"}, {"city": "Rome"}),
        ({"/a~1b": "x", "/m~0n": "y"}, {"a/b": "x", "m~n": "y"}),
        ({"a/b": "x", "m~n": "y"}, {"a/b": "x", "m~n": "y"}),
        ({"/items/0/price": 1, "/items/0/name": "n"}, {"items": [{"price": 1, "name": "n"}]}),
        ({"/items/0": {"price": 1}, "/items/0/name": "n"}, {"items": [{"price": 1, "name": "n"}]}),
        ({"/items/0/sizes/0": "s", "/items/0/sizes/1": "m"}, {"items": [{"sizes": ["s", "m"]}]}),
        ({"items": [{"price": 1}], "/items/1/price": 2}, {"items": [{"price": 1}, {"price": 2}]}),
        ({"/items": []}, {"items": []}), ({"/address/zip": 5}, {"address": {"zip": 5}}),
        ({"/address": None}, {"address": None}), ({"/codes/0": 5, "/codes/x": 6}, {"codes": {"0": 5, "x": 6}}),
        ({"/free/x/0": 1, "/free/x/1": 2}, {"free": {"x": [1, 2]}}),
        ({"/free/x/1": 1, "/free/x/2": 2}, {"free": {"x": {"1": 1, "2": 2}}}),
        ({"/any/0": 1, "/any/1": 2}, {"any": [1, 2]}),
        ({"": {"city": "Rome"}, "/tags/0": "x"}, {"city": "Rome", "tags": ["x"]}),
        ({"/tags/-": "z", "/tags/1": "y", "/tags/0": "x"}, {"tags": ["x", "y", "z"]}),
        ({"/items/-/price": 1, "/items/-/name": "n", "/items/0": {}}, {"items": [{}, {"price": 1, "name": "n"}]}),
        ({"/any/-": 1, "/free/-": 2}, {"any": {"-": 1}, "free": {"-": 2}}), ({"/tags/-": "x"}, {"tags": ["x"]}),
    ],
)  # fmt: skip
def test_any_order_gives_the_same(data, nested):
    for order in itertools.permutations(data.items()):
        assert built(dict(order)) == nested


@pytest.mark.parametrize(
    ("onto", "data", "nested"),
    [
        ({"city": "Rome"}, {"tags": ["x"]}, {"city": "Rome", "tags": ["x"]}),
        ({"city": "Rome"}, {"/city": "Oslo"}, {"city": "Oslo"}),
        ({"address": {"zip": 1}}, {"address": {"street": "s"}}, {"address": {"zip": 1, "street": "s"}}),
        ({"address": {"zip": 1}}, {"/address": {"street": "s"}}, {"address": {"street": "s"}}),
        ({"address": {"zip": 1}}, {"/address/street": "s"}, {"address": {"zip": 1, "street": "s"}}),
        ({"tags": ["x", "y"]}, {"/tags/1": "z"}, {"tags": ["x", "z"]}),
        ({"tags": ["x", "y"]}, {"tags": ["z"]}, {"tags": ["z"]}),
        ({"tags": ["x"]}, {"/tags/1": "y"}, {"tags": ["x", "y"]}),
        ({"tags": ["x"]}, {"/tags/-": "y"}, {"tags": ["x", "y"]}),
        ({}, {f"/tags/{number}": "x" for number in (10, *range(10))}, {"tags": ["x"] * 11}),
        ({"items": [{"price": 1}, {}]}, {"/items/1/price": 2}, {"items": [{"price": 1}, {"price": 2}]}),
        ({"address": None}, {"/address/zip": 5}, {"address": {"zip": 5}}),
        ({"address": "Main St"}, {"/address/zip": 5}, {"address": {"zip": 5}}),
        ({"items": ["x", "y"]}, {"/items/1/price": 5, "/items/0/price": 4}, {"items": [{"price": 4}, {"price": 5}]}),
        ({"tags": "x"}, {"/tags/0": "y"}, {"tags": ["y"]}), ({"city": "Rome"}, {"": {"tags": []}}, {"tags": []}),
    ],
)  # fmt: skip
def test_what_is_given_is_laid_over_what_is_there(onto, data, nested):
    kept = repr((onto, data))
    assert built(data, onto) == nested
    assert repr((onto, data)) == kept


def test_null_does_not_wipe_out_what_is_there():
    found = converted({"city": None, "/tags": None, "address": {"zip": None}}, {"city": "Rome", "tags": ["x"]})
    assert found.data == {"city": "Rome", "tags": ["x"], "address": {}}
    assert found.dropped == [(at, "null where a value is wanted") for at in ("/city", "/address/zip", "/tags")]
    assert converted({"address": None}, {"address": {"zip": 1}}).data == {"address": None}  # null may stand there


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"/city/x": 1}, "'/city' holds a value of the kind string"),
        ({"/items/0/price/x": 1}, "holds a value of the kind integer or number"),
        ({"/city": "Rome", "/city/x": 1}, "holds a value of the kind string"),
        ({"/free/a": 1, "/free/a/b": 2}, "'/free/a' holds 1"),
        ({"free": {"a": 1}, "/free/a/b": 2}, "'/free/a' holds 1"), ({"/any": 5, "/any/b": 2}, "'/any' holds 5"),
        ({"/tags/x": "a"}, "'x' is no index, and '/tags' is a list"), ({"/tags/01": "a"}, "'01' is no index"),
        ({"/tags/-1": "a"}, "'-1' is no index"), ({"/tags/1.5": "a"}, "'1.5' is no index"),
        ({"/any": [1], "/any/x": 2}, "'x' is no index"), ({"/tags/1": "a"}, "the list has no item 0 before it"),
        ({"/tags/0": "a", "/tags/2": "c"}, "the list has no item 1 before it"),
        ({"/tags/999999999": "a"}, "the list has no item 0 before it"), ({"/a/~2": 1}, "'~' must be written '~0'"),
        ({"/city~": 1}, "'~' must be written '~0'"), ({"/x" * 100: 1}, "more than 64 steps"),
        ({"/free/x/0": 1, "/free/x/k": 2}, "'k' is no index, and '/free/x' is a list"),
    ],
)  # fmt: skip
def test_a_pointer_that_makes_no_sense_is_refused(data, problem):
    for order in itertools.permutations(data.items()):
        with pytest.raises(CallError) as caught:
            built(dict(order))
        assert problem in str(caught.value)
        assert "pointer" in caught.value.data


def test_a_key_with_a_slash_that_is_neither_field_nor_pointer_is_left_out():
    for key in ("tags/x", "city/x", "nowhere/0"):
        assert converted({key: 1}).dropped == [(f"/{key.replace('/', '~1')}", "the schema has no such field")]


def test_a_field_that_is_called_like_a_pointer():
    schema = {"properties": {"/path": STRING, "x": STRING, "/x": STRING}}
    assert built({"/path": "a"}, schema=schema) == {"/path": "a"}
    assert built({"/x": "a", "/~1x": "b"}, schema=schema) == {"x": "a", "/x": "b"}
    empty = {"properties": {"": {"type": "object"}}}
    assert built({"": {"k": 1}}, schema=empty) == {"": {"k": 1}}
    assert built({"/": {"k": 1}}, schema=empty) == {"": {"k": 1}}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([1], "the data must be an object, not list"), (None, "the data must be an object, not NoneType"),
        ({1: "x"}, "a key that is no text: 1"), ({"free": {"x": [{2: 3}]}}, "a key that is no text: 2"),
        ({"any": list(range(200_000))}, "too large"),
    ],
)  # fmt: skip
def test_what_is_no_data(data, problem):
    processor = SlotProcessor(ORDER)
    for call in (processor.convert, processor.convert_json, processor.check_json, processor.process_json):
        with pytest.raises(CallError, match=problem):
            call(data)


def test_data_that_is_too_deep_also_where_only_pointers_make_it_so():
    value: Any = 1
    for _ in range(31):
        value = [{"k": value}]
    assert built({"any": [value]}) == {"any": [value]}
    for deeper in ({"any": [[value]]}, {"any": {"k": [value]}}, {"/any" + "/0" * 20: value}):
        with pytest.raises(CallError, match="too large"):
            built(deeper)
    with pytest.raises(CallError, match="at most 64 levels"):
        checked_data({"any": [[value]]}, "it")


def test_as_many_values_as_it_says():
    assert checked_data({"any": [0] * 99_998}, "it")
    with pytest.raises(CallError, match=r"it is too large: at most .* 100000 values"):
        checked_data({"any": [0] * 99_999}, "it")


# --- values that do not fit ---


def with_one(schema: Any, value: Any) -> Converted:
    """Convert the one field `a`; a second field is missing, so that the data is never valid as it is."""
    schema = {"type": "object", "properties": {"a": schema, "z": {}}, "required": ["z"]}
    return SlotProcessor(schema).convert({"a": value})


@pytest.mark.parametrize(
    ("schema", "value", "made"),
    [
        ({"type": "integer"}, "5", 5), ({"type": "integer"}, "1,234", 1234), ({"type": "integer"}, "3 years", 3),
        ({"type": "integer"}, {"value": 5}, 5), ({"type": "number"}, "5", 5), ({"type": "number"}, "42 %", 42),
        ({"type": "number"}, str(2**53 + 1), 2.0**53), ({"type": "number"}, "5.5 EUR", 5.5), ({"type": "boolean"}, "yes", True),
        ({"type": "boolean"}, "否", False), ({"type": "string"}, 7, "7"), ({"type": ["integer", "null"]}, "5", 5),
        ({"type": ["integer", "null"]}, "null", None), ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"$ref": "#/properties/b"}, "5", 5), ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, "5", 5),
        ({"enum": ["red", "green"]}, "RED", "red"), ({"enum": ["red", "green"]}, "It is red.", "red"),
        ({"enum": [1, 2]}, "2", 2), ({"const": "yes"}, "Yes", "yes"), ({"enum": [False, 1, "true"]}, True, "true"),
        ({"anyOf": [{"enum": ["red"]}, {"type": "null"}]}, "Red", "red"),
        ({"allOf": [{"enum": ["red"]}]}, "Red", "red"),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": STRING}, "one", ["one"]), ({"type": "array"}, '[1, "x"]', [1, "x"]),
        ({"type": "array", "items": {"$ref": "#/properties/a"}}, "[[], []]", [[], []]),
        ({"type": "array", "items": [{"type": "integer"}, STRING]}, ["1", 2], [1, "2"]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": "5"}, {"n": 5}),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, '{"n": "5"}', {"n": 5}),
        ({"type": "object", "properties": {"zip code": STRING}}, {"Zip-Code": "1"}, {"zip code": "1"}),
        ({"type": "array", "items": STRING}, '["x"]', ["x"]), ({"type": "object"}, '{"n": "5"}', {"n": "5"}), ({"type": "array", "items": {}}, {"n": "5"}, [{"n": "5"}]),
        ({"anyOf": [{"properties": {"n": {"type": "integer"}}, "type": "object"}, {"type": "null"}]}, {"n": "5"}, {"n": 5}),
        ({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "boolean"}}}}, [{"n": "yes"}],
         [{"n": True}]),
    ],
)  # fmt: skip
def test_what_was_meant_is_certain(schema, value, made):
    if schema == {"$ref": "#/properties/b"}:
        outer = {"properties": {"a": schema, "b": {"type": "integer"}}, "required": ["b"]}
        found = SlotProcessor(outer).convert({"a": value})
    else:
        found = with_one(schema, value)
    assert found.data == {"a": made}
    assert type(found.data["a"]) is type(made)
    assert found.receipts
    assert all(path.startswith("a") and what for path, what in found.receipts)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "five or six"), ({"type": "integer"}, "1.5"), ({"type": "integer"}, True),
        ({"type": "integer"}, [5]), ({"type": "integer"}, "at least 5"), ({"type": "boolean"}, 1),
        ({"type": "boolean"}, "maybe"), ({"type": "string"}, True), ({"type": "string"}, ["x"]),
        ({"type": "array", "items": STRING}, "one, two"), ({"type": "array", "items": [{"type": "integer"}, STRING]}, "one"),
        ({"type": "object", "properties": {"n": STRING}}, "n"),
        ({"enum": ["red", "green"]}, "not red"), ({"enum": ["red", "green"]}, "red or green"),
        ({"enum": [{"x": 1}]}, "x"), ({"not": STRING}, "x"), ({"type": "integer"}, float("nan")),
        ({"type": "integer"}, dt.date(2024, 5, 1)), ({"type": "null"}, "no"), (False, "x"),
    ],
)  # fmt: skip
def test_what_is_not_certain_stays_as_it_is(schema, value):
    found = with_one(schema, value)
    if schema is False:
        assert found.dropped == [("/a", "the schema has no such field")]
        return
    assert repr(found.data) == repr({"a": value})
    assert found.receipts == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": ["string", "integer"]}, "5"), ({"type": "string"}, "007"), ({"type": "number"}, 5),
        ({"type": "integer"}, 5.0), ({"enum": ["5", 5]}, "5"), ({}, "5"),
        ({"anyOf": [{"type": "string", "minLength": 9}, {"type": "integer"}]}, "5"),
        ({"type": "date"}, "tomorrow"), ({"type": "timestamp"}, 1714521600),
        ({"type": "date"}, {"start": "2024-05-01", "end": "2024-05-02"}),
    ],
)  # fmt: skip
def test_what_is_of_a_right_kind_is_left_alone(schema, value):
    found = with_one(schema, value)
    assert repr(found.data["a"]) == repr(value)
    assert found.receipts == []


def test_a_whole_tree_in_a_text():
    tree = {
        "type": "object",
        "properties": {
            "v": {"type": "integer"},
            "any": {},
            "yes": {"$ref": "#/definitions/yes"},
            "next": {"$ref": "#/definitions/tree"},
        },
    }
    schema = {"properties": {"t": {"$ref": "#/definitions/tree"}}, "definitions": {"tree": tree, "yes": True}}
    found = SlotProcessor(schema).convert(
        {"t": '{"v": "1", "any": [1], "yes": 1, "next": {"v": null, "next": {"v": 2}}}'}
    )
    assert found.dropped == [("/t/next/v", "null where a value is wanted")]
    assert found.data == {"t": {"v": 1, "any": [1], "yes": 1, "next": {"next": {"v": 2}}}}
    assert [path for path, _ in found.receipts] == ["t", "t.v"]


def test_valid_data_is_never_converted():
    choices = [{"properties": {"n": {"type": "integer"}}, "type": "object"}, {"type": "object"}]
    found = SlotProcessor({"properties": {"a": {"anyOf": choices}}}).convert({"a": {"n": "5"}})
    assert found == Converted({"a": {"n": "5"}})


# --- members the schema does not know --------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": STRING}}, {"properties": {"a": STRING}, "additionalProperties": False},
        {"properties": {"a": STRING, "x": False}},
        {"allOf": [{"properties": {"a": STRING}}, {"minProperties": 1}, True]},
        {"anyOf": [{"properties": {"a": STRING}}, {"properties": {"b": STRING}}]},
        {"properties": {"a": STRING}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"anyOf": [{"type": "string"}, {"properties": {"a": STRING}}]}, {"patternProperties": {"^a": STRING}},
        {"if": {"properties": {"a": {"const": "1"}}}, "then": {"properties": {"b": STRING}}},
        {"$ref": "#/definitions/d", "definitions": {"d": {"properties": {"a": STRING}}}},
    ],
)  # fmt: skip
def test_a_member_that_the_schema_does_not_know_is_left_out_with_a_note(schema):
    found = SlotProcessor(schema).convert({"a": "1", "x": 1})
    assert found.data == {"a": "1"}
    assert found.dropped == [("/x", "the schema has no such field")]
    assert SlotProcessor(schema).convert({"a": "1", "/x/y/0": 1}).dropped == [
        ("/x/y/0", "the schema has no such field")
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {}, {"properties": {}}, {"type": "object"}, {"required": ["a"]}, {"additionalProperties": True, "properties": {"a": STRING}},
        {"additionalProperties": {}, "properties": {"a": STRING}}, {"additionalProperties": {"type": "integer"}},
        {"properties": {"a": STRING}, "patternProperties": {"^x": {}}},
        {"properties": {"a": STRING}, "required": ["x"]},
        {"properties": {"a": STRING}, "anyOf": [{"properties": {"x": {}}}, {}]},
        {"properties": {"a": STRING}, "if": {"properties": {"x": {"const": 1}}}},
        {"properties": {"a": STRING}, "dependencies": {"a": {"properties": {"x": {}}}}},
        {"propertyNames": {"maxLength": 1}}, {"anyOf": [{"type": "object"}, {"properties": {"a": STRING}}]},
        {"oneOf": [{"properties": {"a": STRING}, "required": ["b"]}, {}]},
    ],
)  # fmt: skip
def test_a_member_that_may_be_there_stays(schema):
    found = SlotProcessor(schema).convert({"a": "1", "x": 1})
    assert found.data["x"] == 1
    assert found.dropped == []


def test_a_name_in_another_case_is_a_member_of_its_own_where_any_name_is_allowed():
    schema = {"properties": {"City": STRING, "n": {"type": "integer"}}}
    free = SlotProcessor(schema | {"additionalProperties": True}).convert({"city": "Rome", "n": "5"})
    closed = SlotProcessor(schema | {"additionalProperties": False}).convert({"city": "Rome", "n": "5"})
    assert (free.data, closed.data) == ({"city": "Rome", "n": 5}, {"City": "Rome", "n": 5})


def test_members_are_left_out_inside_lists_and_of_what_was_there_before():
    schema = {"properties": {"l": {"items": {"properties": {"a": STRING}}}}}
    found = SlotProcessor(schema).convert({"l": [{"a": "1", "x": 1}]}, onto={"old": 1})
    assert found.data == {"l": [{"a": "1"}]}
    assert found.dropped == [("/old", "the schema has no such field"), ("/l/0/x", "the schema has no such field")]
    found = SlotProcessor(schema).convert({}, onto={"l": [{"a": None}]})
    assert found.data == {"l": [{}]}
    assert found.dropped == [("/l/0/a", "null where a value is wanted")]


def test_a_name_of_another_case_is_read_only_where_one_is_meant():
    schema = {"properties": {"city": STRING, "zip_code": STRING}, "required": ["zip_code"]}
    found = SlotProcessor(schema).convert({"City": "Rome", "zip code": "1"})
    assert found.data == {"city": "Rome", "zip_code": "1"}
    assert [path for path, _ in found.receipts] == ["city", "zip_code"]
    twice = SlotProcessor(schema).convert({"City": "Rome", "city": "Oslo"})
    assert twice.data == {"city": "Oslo"}
    assert twice.dropped == [("/City", "the schema has no such field")]


def test_null_where_a_value_is_wanted_counts_as_not_given():
    schema = {"properties": {"a": STRING, "b": {"type": ["string", "null"]}, "c": {"const": 1}, "l": {"items": STRING}}}
    found = SlotProcessor(schema).convert({"a": None, "b": None, "c": None, "l": [None]})
    assert found.data == {"b": None, "l": [None]}  # an item holds the place of those behind it
    assert found.dropped == [(pointer, "null where a value is wanted") for pointer in ("/a", "/c")]
