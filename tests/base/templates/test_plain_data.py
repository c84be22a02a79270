"""Any value as plain JSON data, within limits."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import types
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, model_serializer

from SimpleLLMFunc.base.templates.plain_data import MAX_DEPTH, MAX_NODES, Finished, plain_data
from SimpleLLMFunc.errors import TemplateError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Colour(enum.Enum):
    RED = "red"


class Word(str):
    __slots__ = ()

    def __str__(self):
        return "not its characters"

    def upper(self):
        raise AssertionError("a subclass's method ran")


class Step(BaseModel):
    name: str
    colour: Colour = Colour.RED
    key: SecretStr = SecretStr("sk-hidden-0123456789")
    left_out: str = Field(default="x", exclude=True)


@dataclasses.dataclass
class Point:
    x: int
    when: dt.date


class Client:
    api_key = "sk-LEAK-0123456789"


@given(JSON)
def test_json_data_stays_what_it_is_and_is_new(value):
    got = plain_data(value)
    assert got == value
    if isinstance(value, (list, dict)):
        assert got is not value


def test_models_dataclasses_enums_and_scalars_become_data():
    value = {
        "step": Step(name="w"), "point": Point(1, dt.date(2026, 11, 22)), "colour": Colour.RED, "many": ({1}, (2, 3)),
        "id": uuid.UUID(int=5), "price": decimal.Decimal("1.10"), "path": pathlib.PurePosixPath("a/b"),
        "moment": dt.datetime(2026, 11, 22, 8, tzinfo=dt.timezone.utc),
        "view": types.MappingProxyType({Colour.RED: None, 7: 1, dt.date(2026, 1, 2): 2}),
    }  # fmt: skip
    got = plain_data(value)
    assert got == {
        "step": {"name": "w", "colour": "red", "key": got["step"]["key"]}, "point": {"x": 1, "when": "2026-11-22"},
        "colour": "red", "many": [[1], [2, 3]], "id": "00000000-0000-0000-0000-000000000005", "price": "1.10",
        "path": "a/b", "moment": "2026-11-22T08:00:00Z", "view": {"red": None, "7": 1, "2026-01-02": 2},
    }  # fmt: skip
    assert "sk-hidden" not in json.dumps(got)
    assert plain_data(Step.model_construct(name=5))["name"] == 5, "and nothing is warned of"


def test_a_text_is_exactly_a_str_with_the_characters_it_has():
    got = plain_data([Word("a"), {Word("k"): 1}])
    assert got == ["a", {"k": 1}]
    assert type(got[0]) is str
    assert type(next(iter(got[1]))) is str
    assert plain_data({"a\ud800": "b\udc00"}) == {"a\ufffd": "b\ufffd"}


def test_what_is_done_to_texts_is_done_everywhere_but_to_keys_and_finished_ones():
    value = {"a": ["a", Finished("a"), 1], "b": Step(name="a", colour=Colour.RED)}
    got = plain_data(value, text=str.upper)
    assert got["a"] == ["A", "a", 1]
    assert got["b"]["name"] == "A"
    assert got["b"]["colour"] == "RED"
    assert type(got["a"][1]) is str


@pytest.mark.parametrize(
    "value", [Client(), [Client()], {"a": Client}, object, print, b"bytes", iter([1]), (n for n in "ab"), 1j]
)
def test_an_object_is_refused_by_name(value):
    with pytest.raises(TemplateError, match=r"'client' holds an object of type .*, which is no plain data") as caught:
        plain_data(value, name="client")
    assert caught.value.field == "client"
    assert "LEAK" not in str(caught.value)


def test_a_key_that_is_no_text_and_a_model_that_does_not_turn_into_data_are_refused():
    with pytest.raises(TemplateError, match="key of type tuple"):
        plain_data({(1, 2): 3})

    class Broken(BaseModel):
        @model_serializer
        def broken(self):
            raise ValueError("no")

    with pytest.raises(TemplateError, match="holds a Broken that does not turn into data"):
        plain_data([Broken()])


def test_what_holds_itself_or_is_too_deep_or_too_large_is_refused():
    endless = []
    endless.append(endless)
    deep, deep_dict = 1, 1
    for _ in range(MAX_DEPTH):
        deep, deep_dict = [deep], {"a": deep_dict}
    assert plain_data(deep) == deep
    assert plain_data(deep_dict) == deep_dict
    for value in (endless, [deep], {"a": deep_dict}):
        with pytest.raises(TemplateError, match=f"nested deeper than {MAX_DEPTH} levels"):
            plain_data(value)
    assert len(plain_data([1] * (MAX_NODES - 1))) == MAX_NODES - 1
    doubled = ["x"]
    for _ in range(60):
        doubled = [doubled, doubled]
    for value in ([1] * MAX_NODES, {str(n): n for n in range(MAX_NODES)}, doubled):
        with pytest.raises(TemplateError, match=f"more than {MAX_NODES} values"):
            plain_data(value)
