"""The short way: it may only say yes where pydantic's strict reading is the right one."""

from __future__ import annotations

import datetime
import enum
import json
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from SimpleLLMFunc.base.parsing.alignment.shape_builder import shape_of
from SimpleLLMFunc.base.parsing.strict_path import decode_quickly, look_at


class Color(enum.Enum):
    RED = "red"


class Level(enum.Enum):
    ONE = 1


class Item(BaseModel):
    name: str
    price: float = Field(alias="unitPrice")


class Left(BaseModel):
    x: int


class Right(BaseModel):
    x: int


class Tree(BaseModel):
    kids: list[Tree] = []


def look(wanted: Any, text: str) -> bool:
    return look_at(shape_of(TypeAdapter(wanted)))(decode_quickly(text))


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (Item, '{"name": "x", "unitPrice": 1}'), (list[Item], "[]"), (dict[str, Item], '{"a": {"name": "x"}}'),
        (Color, '"red"'), (Level, "1"), (Literal["a", None], "null"), (Decimal, "1.5"), (Decimal, '"1.50"'),
        (datetime.date, '"2026-03-14"'), (int | str, '"5"'), (Item | None, "null"), (Item | list[int], "[1]"),
        (Any, '{"a": [1.5]}'), (Tree, '{"kids": [{"kids": []}]}'), (tuple[int, str], '[1, "a"]'), (bool | int, "true"),
    ],
)  # fmt: skip
def test_yes(wanted: Any, text: str) -> None:
    assert look(wanted, text)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (Item, '{"name": "x", "price": 1}'), (Item, '{"Name": "x"}'), (list[Item], '[{"more": 1}]'), (Level, "true"),
        (Literal[1], "true"), (Decimal, "1.50"), (Decimal, "0.12345678901234567890"), (float, "1e999"), (Any, "[1e999]"),
        (datetime.datetime, '"1700000000"'), (datetime.timedelta, '"90"'), (Left | Right, '{"x": 1}'),
        (Tree, '{"kids": [{"Kids": []}]}'), (Item | None, '{"Name": "x"}'), (Literal[1] | bool, "true"),
    ],
)  # fmt: skip
def test_the_long_way_decides(wanted: Any, text: str) -> None:
    assert not look(wanted, text)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "NaN", "[Infinity]", "{'a': 1}", "9" * 5000, ""])
def test_what_is_not_strict_json(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_quickly(text)


def test_the_same_key_twice_with_one_value_is_one() -> None:
    assert decode_quickly('{"a": [1, "x"], "a": [1, "x"]}') == {"a": [1, "x"]}
    with pytest.raises(ValueError, match="twice"):
        decode_quickly('{"a": true, "a": 1}')
    assert json.dumps(decode_quickly('{"a": 1.5}')) == '{"a": 1.5}'
