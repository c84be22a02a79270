"""What a type is called in a prompt."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field, WithJsonSchema

from SimpleLLMFunc.base.schemas.output_mode import compile_output
from SimpleLLMFunc.base.type_resolve import (
    build_type_description_json,
    generate_example_object,
    get_detailed_type_description,
    has_multimodal_content,
    is_multimodal_type,
    type_identity,
)
from SimpleLLMFunc.type.multimodal import Audio, File, ImgPath, ImgUrl, Text
from tests.support.answer_types import Box, Color, Pair, Total, Tree


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Nothing(BaseModel):
    pass


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


class Endless(BaseModel):
    inner: Endless


@dataclasses.dataclass
class Data:
    n: Annotated[int, Field(gt=3)]
    tags: list[str] = dataclasses.field(default_factory=list)


TYPES: list[Any] = [
    str, int, float, bool, None, Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID,
    Color, Literal["a", 1], list[int], tuple[int, str], tuple[int, ...], set[int], frozenset[str], dict[str, int],
    dict[Color, list[int]], Person, Tree, Total, Pair, Data, Box[int], Box[Person], list[Person], Person | None, int | str,
    Optional[int], Any, Annotated[int, Field(ge=5, le=6)], Annotated[str, Field(min_length=10, max_length=12)],
    Annotated[list[int], Field(min_length=3)], Annotated[set[int], Field(min_length=3)], Annotated[float, Field(gt=0, lt=0.5)],
    Annotated[int, Field(multiple_of=7, gt=10)], dict[datetime.date, int], dict[uuid.UUID, str],
    dict[int, str], dict[float, list[int]], dict[bool, int], list[dict[Decimal, int]],
]  # fmt: skip


@pytest.mark.parametrize("wanted", TYPES)
def test_every_type_has_words_json_and_an_example_that_fits(wanted: Any) -> None:
    words = get_detailed_type_description(wanted)
    assert words
    assert words == get_detailed_type_description(wanted)
    json.dumps(build_type_description_json(wanted))
    adapter = compile_output(wanted).adapter
    example = generate_example_object(wanted)
    assert example or not isinstance(example, dict)
    value = adapter.validate_json(json.dumps(example))
    assert adapter.validate_python(value) == value


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (str, "string"), (int, "integer"), (float, "number"), (bool, "true or false"), (None, "null"),
        (int | None, "integer or null"), (Decimal, "number"), (datetime.date, "date (YYYY-MM-DD)"),
        (Color, 'one of "red", "blue"'), (Literal["a", 1], 'one of "a", 1'), (Any, "any value"), (object, "any value"),
        # choices
        (int | str | None, "integer or string or null"), (Optional[bool], "true, false or null"),
        (Literal["a"], '"a"'), (Annotated[str, WithJsonSchema({"enum": ["a"]})], '"a"'),
        (Literal["a", "b"] | None, 'one of "a", "b" or null'),
        (Literal["a", "b"] | int, '(one of "a", "b") or integer'), (Color | None, 'one of "red", "blue" or null'),
        (Level, "one of 1, 2 (1 is LOW; 2 is HIGH)"),
        # lists
        (list, "list"), (list[int], "list of integers"), (list[str | None], "list of strings, each may be null"),
        (list[str] | None, "null or list of strings"), (list[str] | int, "(list of strings) or integer"),
        (dict[str, int] | None, "null or object with any keys whose values are integers"),
        (list[bool], "list of true/false values"), (list[int | str], "list of values, each: integer or string"),
        (list[Color], 'list of values, each: one of "red", "blue"'), (list[list[int]], "list of lists of integers"),
        (list[list[Color]], 'list of values, each: (list of values, each: one of "red", "blue")'),
        (list[dict[str, bytes | int]], "list of values, each: (object with any keys, each value: bytes or integer)"),
        (list[list[str | None]], "list of values, each: (list of strings, each may be null)"),
        (set[int], "list of integers, without duplicates"), (frozenset[str], "list of strings, without duplicates"),
        (tuple[int, ...], "list of integers"), (tuple[int, str], "list of exactly 2 values: integer, then string"),
        (tuple[()], "empty list"), (Pair, "list of exactly 2 values: X: integer, then Y: string"),
        (Sequence[str], "list of strings"),
        # objects
        (dict, "object with any keys"), (dict[str, Any], "object with any keys"),
        (dict[str, int], "object with any keys whose values are integers"),
        (dict[int, bool], "object with integers as keys whose values are true/false values"),
        (dict[str, int | None], "object with any keys whose values are integers, each value may be null"),
        (dict[str, Color], 'object with any keys, each value: one of "red", "blue"'),
        (dict[str, list[int]], "object with any keys whose values are lists of integers"),
        (dict[Color, int], 'object with keys (one of "red", "blue") whose values are integers'),
        (dict[uuid.UUID, int], "object with UUIDs as keys whose values are integers"),
        (dict[Annotated[str, Field(pattern="^x")], int],
         "object with keys matching the regular expression ^x whose values are integers"),
        (Data, "Data object {n: integer, greater than 3; tags: list of strings, may be left out}"),
        (list[Data], "list of Data objects {n: integer, greater than 3; tags: list of strings, may be left out}"),
        (Total, "Total object {a: integer; b: string, may be left out}"),
        (Box[int], "Box[int] object {content: integer}"), (Nothing, "Nothing object without fields"),
        (Total | Nothing, "Total object {a: integer; b: string, may be left out} or Nothing object without fields"),
        # what else holds
        (Annotated[int, Field(ge=1, le=5)], "integer, from 1 to 5"),
        (Annotated[int, Field(ge=1)] | None, "integer or null, at least 1"),
        (Annotated[float, Field(gt=0, lt=0.5)], "number, greater than 0, less than 0.5"),
        (Annotated[int, Field(multiple_of=7)], "integer, a multiple of 7"),
        (Annotated[str, Field(min_length=1)], "string, at least 1 character"),
        (Annotated[str, Field(min_length=2, max_length=9)], "string, 2 to 9 characters"),
        (Annotated[str, Field(min_length=3, max_length=3)], "string, exactly 3 characters"),
        (Annotated[str, Field(pattern=r"^\d$")], r"string, matching the regular expression ^\d$"),
        (Annotated[list[str], Field(min_length=1)], "list of strings, with at least 1 item"),
        (list[Annotated[int, Field(ge=0)] | None], "list of integers, each at least 0, each may be null"),
        (Annotated[list[Annotated[str, Field(max_length=5)]], Field(max_length=2)],
         "list of strings, with at most 2 items, each at most 5 characters"),
        (Annotated[int, Field(ge=1)] | Annotated[str, Field(max_length=5)],
         "(integer, at least 1) or (string, at most 5 characters)"),
        # other scalars
        (datetime.datetime, "date and time (ISO 8601, such as 2024-05-31T09:30:00Z)"),
        (list[datetime.date], "list of dates (YYYY-MM-DD)"), (datetime.time, "time (HH:MM:SS)"),
        (datetime.timedelta, "duration (ISO 8601, such as PT1H30M)"), (uuid.UUID, "UUID"), (bytes, "bytes"),
        (Path, "file path"),
        # pictures, sounds, files
        (ImgUrl, "image"), (ImgPath | None, "image or null"), (list[ImgPath] | None, "null or list of images"),
        (tuple[Audio, ...], "list of sounds"), (Annotated[File, "x"], "file"), (Text, "text"),
    ],
)  # fmt: skip
def test_words(wanted: Any, words: str) -> None:
    assert get_detailed_type_description(wanted) == words


def test_the_identity_of_a_type_is_what_1_0_called_it() -> None:
    assert type_identity(list[str | None]) == "list of: string or null"
    assert type_identity(tuple[int, str]) == "list of exactly: integer, then string"
    assert type_identity(dict[str, int]) == "object with any keys, each value: integer"
    assert type_identity(set[int]) == "list without duplicates of: integer"
    assert type_identity(Annotated[int, Field(ge=1, le=5)]) == "integer, at least 1, at most 5"
    assert (type_identity(Any), type_identity(list[Any])) == ("any JSON value", "list")
    assert type_identity(Tree) == "Tree object with label: string; kids: list of: Tree …, may be left out (then [])"
    assert type_identity(Tree, as_json=True)["fields"]["kids"] == "list of: Tree …, may be left out (then [])"


def test_a_model_in_words_and_as_json() -> None:
    assert "age: integer, from 0 to 150 (in years)" in get_detailed_type_description(Person)
    described = build_type_description_json(Person)
    assert described["type"] == "object Person"
    assert described["description"] == "Somebody."
    fields = described["fields"]
    assert fields["age"] == "integer, from 0 to 150: in years"
    assert fields["tags"] == "list of strings, may be left out (then [])"
    assert fields["home"]["description"] == "where they live"
    assert build_type_description_json(Annotated[list[Person], Field(description="all")])["description"] == "all"
    assert build_type_description_json(Annotated[int, Field(description="how many")]) == "integer: how many"


def test_siblings_of_one_type_are_described_in_full() -> None:
    fields = build_type_description_json(Person)["fields"]
    assert fields["home"]["fields"]["street"] == "string: with the number"
    assert fields["work"]["choices"][0] == {**fields["home"], "description": "Where to find it."}
    assert "as above" not in json.dumps(fields, ensure_ascii=False)
    assert "as above" not in get_detailed_type_description(Person)


def test_recursion_is_cut() -> None:
    kids = "list of Tree objects (as above), may be left out (then [])"
    assert build_type_description_json(Tree)["fields"]["kids"] == kids
    assert get_detailed_type_description(Tree) == f"Tree object {{label: string; kids: {kids}}}"
    assert get_detailed_type_description(Endless) == "Endless object {inner: Endless object (as above)}"
    assert build_type_description_json(Endless)["fields"]["inner"] == "Endless object (as above)"
    assert generate_example_object(Tree) == {"label": "text", "kids": []}
    assert generate_example_object(Endless) is None


def test_aliases_are_used_in_all_three_and_fields_of_every_kind_of_class() -> None:
    assert "zip:" in get_detailed_type_description(Address)
    assert "zip" in build_type_description_json(Address)["fields"]
    assert generate_example_object(Address) == {"street": "text", "zip": "12345"}
    assert build_type_description_json(Data)["fields"]["n"] == "integer, greater than 3"
    assert "description" not in build_type_description_json(Data)
    assert build_type_description_json(Total)["fields"]["b"] == "string, may be left out"
    assert build_type_description_json(Box[Person])["fields"]["content"]["type"] == "object Person"


def test_a_type_without_a_schema_is_called_by_its_name() -> None:
    class Opaque:
        pass

    assert get_detailed_type_description(Opaque) == "Opaque"
    assert build_type_description_json(Opaque) == "Opaque"
    assert generate_example_object(Opaque) is None
    assert get_detailed_type_description(list[Opaque] | None) == "null or list of values, each: Opaque"


def test_what_a_class_says_of_itself_stands_in_one_line() -> None:
    class Told(BaseModel):
        """Something.

        And more of it.
        """

        a: int = Field(description="in\nlines")

    assert get_detailed_type_description(Told) == "Told object (Something. And more of it.) {a: integer (in lines)}"


# --- pictures, sounds, files -----------------------------------------------------------------------------


def test_multimodal_types_and_others() -> None:
    several = [list[ImgUrl], tuple[ImgUrl, ...]]
    for hint in (ImgUrl, ImgPath, Text, ImgUrl | None, Optional[ImgPath], *several, Annotated[ImgUrl, "x"]):
        assert is_multimodal_type(hint), hint
        assert is_multimodal_type(None, hint), hint
    for hint in (str, int, list[str], dict[str, ImgUrl], None, Path, "ImgUrl", Any):
        assert not is_multimodal_type(hint), hint


def test_multimodal_content_is_told_by_value() -> None:
    picture = ImgUrl("https://example.com/a.png")
    assert has_multimodal_content({"a": picture}, {})
    assert has_multimodal_content({"a": ["x", picture]}, {"a": list[str]})
    assert not has_multimodal_content({"a": "https://example.com/a.png"}, {"a": str})
    assert not has_multimodal_content({"a": None}, {"a": ImgUrl | None})
    assert not has_multimodal_content({"a": []}, {"a": list[ImgUrl]})
    assert not has_multimodal_content({"a": picture}, {"a": ImgUrl}, exclude_params=["a"])
