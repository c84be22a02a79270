"""What a type is called in a prompt."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from SimpleLLMFunc.base.schemas.output_mode import compile_output
from SimpleLLMFunc.base.type_resolve import (
    build_type_description_json,
    generate_example_object,
    get_detailed_type_description,
    has_multimodal_content,
    is_multimodal_type,
)
from SimpleLLMFunc.type.multimodal import ImgPath, ImgUrl, Text

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    """Where to find it."""

    street: str = Field(description="with the number")
    zip_code: str = Field(pattern=r"^\d{5}$", alias="zip", examples=["12345"])


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int = Field(ge=0, le=150, description="in years")
    home: Address = Field(description="where they live")
    work: Address | None = None
    tags: list[str] = []


class Tree(BaseModel):
    label: str
    kids: list[Tree] = []


class Endless(BaseModel):
    inner: Endless


class Total(TypedDict):
    a: int
    b: NotRequired[str]


class Pair(NamedTuple):
    x: int
    y: str


@dataclasses.dataclass
class Data:
    n: Annotated[int, Field(gt=3)]
    tags: list[str] = dataclasses.field(default_factory=list)


class Box(BaseModel, Generic[T]):
    content: T


TYPES: list[Any] = [
    str, int, float, bool, None, Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID,
    Color, Literal["a", 1], list[int], tuple[int, str], tuple[int, ...], set[int], frozenset[str], dict[str, int],
    dict[Color, list[int]], Person, Tree, Total, Pair, Data, Box[int], Box[Person], list[Person], Person | None, int | str,
    Optional[int], Any, Annotated[int, Field(ge=5, le=6)], Annotated[str, Field(min_length=10, max_length=12)],
    Annotated[list[int], Field(min_length=3)], Annotated[set[int], Field(min_length=3)], Annotated[float, Field(gt=0, lt=0.5)],
    Annotated[int, Field(multiple_of=7, gt=10)],
]  # fmt: skip


@pytest.mark.parametrize("wanted", TYPES)
def test_every_type_has_words_json_and_an_example_that_fits(wanted: Any) -> None:
    words = get_detailed_type_description(wanted)
    assert words
    assert words == get_detailed_type_description(wanted)
    json.dumps(build_type_description_json(wanted))
    example = generate_example_object(wanted)
    spec = compile_output(wanted)
    assert spec.adapter.validate_json(json.dumps(example)) == spec.adapter.validate_python(
        spec.adapter.validate_json(json.dumps(example))
    )


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (bool, "true or false"),
        (None, "null"),
        (int | None, "integer or null"),
        (Decimal, "number"),
        (datetime.date, "date (YYYY-MM-DD)"),
        (Color, 'one of "red", "blue"'),
        (Literal["a", 1], 'one of "a", 1'),
        (list[int], "list of: integer"),
        (set[int], "list without duplicates of: integer"),
        (tuple[int, str], "list of exactly: integer, then string"),
        (dict[str, int], "object with any keys, each value: integer"),
        (Annotated[int, Field(ge=1, le=5)], "integer, at least 1, at most 5"),
        (Any, "any JSON value"),
    ],
)
def test_words(wanted: Any, words: str) -> None:
    assert get_detailed_type_description(wanted) == words


def test_a_model_in_words_and_as_json() -> None:
    words = get_detailed_type_description(Person)
    assert "age: integer, at least 0, at most 150 (in years)" in words
    described = build_type_description_json(Person)
    assert described["type"] == "object Person"
    assert described["description"] == "Somebody."
    fields = described["fields"]
    assert fields["age"] == "integer, at least 0, at most 150: in years"
    assert fields["tags"] == "list of: string, may be left out (then [])"
    assert fields["home"]["description"] == "where they live"


def test_siblings_of_one_type_are_described_in_full() -> None:
    fields = build_type_description_json(Person)["fields"]
    assert fields["home"]["fields"]["street"] == "string: with the number"
    assert fields["work"]["choices"][0]["fields"] == fields["home"]["fields"]
    assert "…" not in json.dumps(fields, ensure_ascii=False)
    assert "…" not in get_detailed_type_description(Person)


def test_recursion_is_cut() -> None:
    assert build_type_description_json(Tree)["fields"]["kids"] == "list of: Tree …, may be left out (then [])"
    assert get_detailed_type_description(Tree).count("…") == 1
    assert generate_example_object(Tree) == {"label": "text", "kids": []}
    assert generate_example_object(Endless) is None


def test_aliases_are_used_in_all_three() -> None:
    assert "zip:" in get_detailed_type_description(Address)
    assert "zip" in build_type_description_json(Address)["fields"]
    assert generate_example_object(Address) == {"street": "text", "zip": "12345"}


def test_annotated_and_typed_dict_fields() -> None:
    assert build_type_description_json(Data)["fields"]["n"] == "integer, greater than 3"
    assert "description" not in build_type_description_json(Data)
    assert build_type_description_json(Total)["fields"]["b"] == "string, may be left out"


def test_a_type_without_a_schema_is_called_by_its_name() -> None:
    class Opaque:
        pass

    assert get_detailed_type_description(Opaque) == "Opaque"
    assert build_type_description_json(Opaque) == "Opaque"
    assert generate_example_object(Opaque) is None
    assert get_detailed_type_description(ImgPath)


def test_a_generic_is_described_with_its_argument() -> None:
    assert TypeAdapter(Box[int]).json_schema()["title"] == "Box[int]"
    assert build_type_description_json(Box[Person])["fields"]["content"]["type"] == "object Person"


# --- pictures, sounds, files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [ImgUrl, ImgPath, Text, ImgUrl | None, Optional[ImgPath], list[ImgUrl], tuple[ImgUrl, ...], Annotated[ImgUrl, "x"]],
)
def test_multimodal_types(hint: Any) -> None:
    assert is_multimodal_type(hint)
    assert is_multimodal_type(None, hint)


@pytest.mark.parametrize("hint", [str, int, list[str], dict[str, ImgUrl], None, Path, "ImgUrl", Any])
def test_other_types(hint: Any) -> None:
    assert not is_multimodal_type(hint)


def test_multimodal_content_is_told_by_value() -> None:
    picture = ImgUrl("https://example.com/a.png")
    assert has_multimodal_content({"a": picture}, {})
    assert has_multimodal_content({"a": ["x", picture]}, {"a": list[str]})
    assert not has_multimodal_content({"a": "https://example.com/a.png"}, {"a": str})
    assert not has_multimodal_content({"a": None}, {"a": ImgUrl | None})
    assert not has_multimodal_content({"a": []}, {"a": list[ImgUrl]})
    assert not has_multimodal_content({"a": picture}, {"a": ImgUrl}, exclude_params=["a"])
