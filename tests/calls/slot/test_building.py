"""Plain keys and pointers to nested data: any order, lists as lists, and nonsense refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from SimpleLLMFunc.calls.slot.processor import SlotProcessor
from SimpleLLMFunc.errors import CallError

STRING = {"type": "string"}
ORDER = {
    "type": "object",
    "properties": {
        "city": STRING,
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"price": {"type": "number"}, "name": STRING, "sizes": {"type": "array", "items": STRING}},
            },
        },
        "tags": {"type": "array", "items": STRING},
        "address": {
            "anyOf": [
                {"type": "object", "properties": {"zip": {"type": "integer"}, "street": STRING}},
                {"type": "null"},
            ]
        },
        "codes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "free": {"type": "object"},
        "any": {},
        "a/b": STRING,
        "m~n": STRING,
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
        ({}, {f"/tags/{number}": "x" for number in (10, *range(10))}, {"tags": ["x"] * 11}),
        ({"items": [{"price": 1}, {}]}, {"/items/1/price": 2}, {"items": [{"price": 1}, {"price": 2}]}),
        ({"address": None}, {"/address/zip": 5}, {"address": {"zip": 5}}),
        # a value of the wrong kind, from before, does not prevent its repair
        ({"address": "Main St"}, {"/address/zip": 5}, {"address": {"zip": 5}}),
        ({"items": ["x", "y"]}, {"/items/1/price": 5, "/items/0/price": 4}, {"items": [{"price": 4}, {"price": 5}]}),
        ({"tags": "x"}, {"/tags/0": "y"}, {"tags": ["y"]}),
        ({"city": "Rome"}, {"": {"tags": []}}, {"tags": []}),
    ],
)
def test_what_is_given_is_laid_over_what_is_there(onto, data, nested):
    kept = repr((onto, data))
    assert built(data, onto) == nested
    assert repr((onto, data)) == kept


def test_null_does_not_wipe_out_what_is_there():
    found = converted({"city": None, "/tags": None, "address": {"zip": None}}, {"city": "Rome", "tags": ["x"]})
    assert found.data == {"city": "Rome", "tags": ["x"], "address": {}}
    assert found.dropped == [
        ("/city", "null where a value is wanted"),
        ("/address/zip", "null where a value is wanted"),
        ("/tags", "null where a value is wanted"),
    ]
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
        ({"/tags/-": "a"}, "'-' is no index"),
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
        ([1], "the data must be an object, not list"),
        (None, "the data must be an object, not NoneType"),
        ({1: "x"}, "a key that is no text: 1"),
        ({"free": {"x": [{2: 3}]}}, "a key that is no text: 2"),
        ({"any": list(range(200_000))}, "too large"),
    ],
)
def test_what_is_no_data(data, problem):
    processor = SlotProcessor(ORDER)
    for call in (processor.convert, processor.convert_json, processor.check_json, processor.process_json):
        with pytest.raises(CallError, match=problem):
            call(data)


def test_data_that_is_too_deep_also_where_only_pointers_make_it_so():
    value: Any = 1
    for _ in range(50):
        value = [value]
    assert built({"any": value}) == {"any": value}
    with pytest.raises(CallError, match="too large"):
        built({"any": [[[[[[[[[[[[[[value]]]]]]]]]]]]]]})
    with pytest.raises(CallError, match="too large"):
        built({"/any" + "/0" * 20: value})
