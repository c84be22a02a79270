"""How a typed answer is asked for."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import re
import sys
import typing
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import jsonschema
import pytest
from pydantic import BaseModel, EmailStr, Field
from typing_extensions import NotRequired, TypedDict

from SimpleLLMFunc.base.schemas.output_mode import ANSWER_TOOL, choose_output_mode, compile_output
from SimpleLLMFunc.base.type_resolve import generate_example_object
from SimpleLLMFunc.errors import ResponseParseError, SignatureError
from SimpleLLMFunc.interface.profile import GENERIC, PROFILES

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(BaseModel):
    """A tree."""

    label: str = Field(min_length=1, description="what it says")
    kids: list[Tree] = []


class Item(BaseModel):
    name: str
    color: Color = Color.RED
    note: str | None = None
    price: Decimal = Field(Decimal(1), ge=0, alias="unitPrice")


class Box(BaseModel, Generic[T]):
    content: T


class Pair(NamedTuple):
    x: int
    y: str


class Loose(TypedDict):
    a: int
    b: NotRequired[int]


@dataclasses.dataclass
class Data:
    n: int
    tags: list[str] = dataclasses.field(default_factory=list)


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


STRICT = [
    str, int, float, bool, Decimal, datetime.date, datetime.datetime, Color, Literal["a", 1], list[int], set[str],
    Tree, Item, Box[int], Data, list[Tree], int | str, Tree | None, Annotated[Cat | Dog, Field(discriminator="kind")],
    Annotated[int, Field(ge=1)],
]  # fmt: skip
LOOSE = [dict[str, int], tuple[int, str], Pair, Loose, Any, list[Any], Box[dict[str, int]], dict]


def test_a_spec_is_built_once() -> None:
    assert compile_output(Tree) is compile_output(Tree)
    assert compile_output(list[Tree]) is compile_output(list[Tree])
    assert compile_output(Literal[1]) is not compile_output(Literal[True])
    assert compile_output(int | str).return_type == int | str


@pytest.mark.parametrize("wanted", [*STRICT, *LOOSE])
def test_the_wire_schema_is_an_object_and_valid(wanted: Any) -> None:
    spec = compile_output(wanted)
    jsonschema.Draft202012Validator.check_schema(spec.wire_schema)
    assert spec.wire_schema["type"] == "object"
    assert spec.is_wrapped == ("value" in spec.wire_schema.get("properties", {}))


@pytest.mark.parametrize(
    ("wanted", "is_wrapped"),
    [(Tree, False), (Data, False), (Loose, False), (dict[str, int], False), (int, True), (list[Tree], True),
     (Tree | None, True), (Cat | Dog, True), (Any, True), (Pair, True), (Color, True)],
)  # fmt: skip
def test_only_what_is_no_object_is_wrapped(wanted: Any, is_wrapped: bool) -> None:
    assert compile_output(wanted).is_wrapped is is_wrapped


def nodes(schema: Any) -> typing.Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for key, part in schema.items():
            if key in {"properties", "$defs"}:
                for inner in part.values():
                    yield from nodes(inner)
            elif key in {"items", "anyOf"}:
                for inner in part if isinstance(part, list) else [part]:
                    yield from nodes(inner)


@pytest.mark.parametrize("wanted", STRICT)
def test_a_strict_schema_keeps_the_rules(wanted: Any) -> None:
    form = compile_output(wanted).response_format(strict=True)
    assert form is not None
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", form["json_schema"]["name"])
    schema = form["json_schema"]["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    for node in nodes(schema):
        assert (
            not {"default", "oneOf", "allOf", "const", "uniqueItems", "minLength", "prefixItems", "title"} & node.keys()
        )
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        if "$ref" in node:
            assert set(node) == {"$ref"}
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]


@pytest.mark.parametrize("wanted", STRICT)
def test_what_fits_the_strict_schema_fits_the_type(wanted: Any) -> None:
    spec = compile_output(wanted)
    form = spec.response_format(strict=True)
    assert form is not None
    example = {"value": generate_example_object(wanted)} if spec.is_wrapped else generate_example_object(wanted)
    if wanted is not Item:  # the example of a decimal is a number, as the strict schema wants it
        jsonschema.validate(example, spec.wire_schema)
    assert spec.adapter.validate_python(example["value"] if spec.is_wrapped else example) is not None


@pytest.mark.parametrize("wanted", LOOSE)
def test_what_cannot_be_said_strictly_is_not(wanted: Any) -> None:
    spec = compile_output(wanted)
    assert spec.response_format(strict=True) is None
    assert spec.strict_problem
    loose = spec.response_format(strict=False)
    assert loose is not None
    assert loose["json_schema"]["schema"] == spec.wire_schema


def test_what_the_subset_has_no_word_for_is_told_in_the_description() -> None:
    form = compile_output(Tree).response_format(strict=True)
    assert form is not None
    properties = form["json_schema"]["schema"]["properties"]
    assert properties["label"] == {"type": "string", "description": "what it says (at least 1 characters)"}
    assert properties["kids"]["description"] == "default: []"


def test_a_null_that_means_absent_and_an_alias() -> None:
    form = compile_output(Item).response_format(strict=True)
    assert form is not None
    schema = form["json_schema"]["schema"]
    assert schema["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert "unitPrice" in schema["required"]
    assert (
        compile_output(Item).parse('{"name": "x", "color": "red", "note": null, "unitPrice": 2.50}').value.price == 2.5
    )


def test_too_deep_or_too_large_is_not_strict() -> None:
    deep: Any = int
    for _ in range(12):
        deep = list[deep]
    assert "deeper" in compile_output(deep).strict_problem
    wide = enum.Enum("wide", {f"m{number}": f"v{number}" for number in range(1200)})
    assert "enum values" in compile_output(wide).strict_problem


def test_the_answer_tool() -> None:
    tool = compile_output(list[int]).answer_tool()
    assert tool["type"] == "function"
    assert tool["function"]["name"] == ANSWER_TOOL == "answer"
    assert tool["function"]["parameters"]["properties"]["value"]["type"] == "array"
    assert compile_output(Tree).answer_tool()["function"]["parameters"]["type"] == "object"


class Opaque:
    pass


@pytest.mark.parametrize("wanted", [Opaque, list[Opaque], "Nowhere", typing.Callable[[int], int]])
def test_a_type_no_one_can_ask_for(wanted: Any) -> None:
    with pytest.raises(SignatureError, match=r"Opaque|Nowhere|Callable"):
        compile_output(wanted)


def test_a_type_that_needs_a_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pydantic.networks.email_validator", None)
    monkeypatch.setitem(sys.modules, "email_validator", None)
    for wanted in (EmailStr, list[EmailStr], EmailStr | None):
        with pytest.raises(SignatureError, match=r"pip install .*pydantic\[email\]"):
            compile_output(wanted)


def test_the_typed_dict_of_typing_names_the_way_out() -> None:
    old = typing.TypedDict("old", {"a": int})
    if typing.TYPE_CHECKING or sys.version_info < (3, 12):
        with pytest.raises(SignatureError, match=r"typing_extensions.TypedDict"):
            compile_output(old)


# --- the choice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "profile", "refused", "mode"),
    [
        (str, "openai", set(), "text"), (None, "openai", set(), "text"), (Tree, "openai", set(), "native"),
        (Tree, "local", set(), "native"), (Tree, "generic", set(), "prompt"), (Tree, "deepseek", set(), "prompt"),
        (dict[str, int], "openai", set(), "prompt"), (dict[str, int], "vllm", set(), "native"),
        (Tree, "openai", {"native"}, "tool"), (Tree, "openai", {"native", "tool"}, "prompt"),
        (Tree, "local", {"native"}, "prompt"),
    ],
)  # fmt: skip
def test_auto_follows_the_profile(wanted: Any, profile: str, refused: set[str], mode: str) -> None:
    chosen, reason = choose_output_mode(compile_output(wanted), PROFILES[profile], "auto", refused)
    assert chosen == mode
    assert reason.startswith(f"{mode}: ")


def test_the_reason_says_why() -> None:
    spec = compile_output(dict[str, int])
    assert "any keys" in choose_output_mode(spec, PROFILES["openai"])[1]
    assert "refused native" in choose_output_mode(spec, PROFILES["vllm"], refused={"native"})[1]


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_what_was_asked_for_is_kept_unless_refused(mode: Any) -> None:
    spec = compile_output(Tree)
    assert choose_output_mode(spec, GENERIC, mode)[0] == mode
    if mode != "prompt":
        assert choose_output_mode(spec, PROFILES["openai"], mode, {mode})[0] != mode
    assert choose_output_mode(compile_output(str), PROFILES["openai"], mode)[0] == mode


# --- reading -----------------------------------------------------------------------------------------------


def test_text_is_the_text_as_it_stands() -> None:
    spec = compile_output(str)
    for text in (" x\n", '{"value": "x"}', '"x"', "```\nx\n```"):
        assert spec.parse(text).value == text
    assert spec.parse("<think>hm</think>\nx").value == "x"
    assert spec.parse("so it is\n</think>\n\nx").value == "x"
    for text in ("Use <think> and </think>\nlike so", "`</think>`\n", "x <think>", "</s> is a mark"):
        assert spec.parse(text).value == text
    assert spec.parse("<think>hm</think>Use the <think> tag.").value == "Use the <think> tag."
    with pytest.raises(ResponseParseError):
        spec.parse("<think>hm")


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_text_that_was_asked_for_in_the_wrapper_is_unwrapped(mode: Any) -> None:
    spec = compile_output(str)
    assert spec.parse('{"value": " x "}', mode=mode).value == " x "
    assert spec.parse("plain", mode=mode).value == "plain"


def test_the_wrapper_of_any_depends_on_the_mode() -> None:
    spec = compile_output(Any)
    assert spec.parse('{"value": 3}').value == {"value": 3}
    assert spec.parse('{"value": 3}', mode="native").value == 3
    assert spec.parse('{"a": 3}', mode="native").value == {"a": 3}


def test_a_field_named_value_is_no_wrapper() -> None:
    class Reading(BaseModel):
        value: int

    assert compile_output(Reading).parse('{"value": 3}').value == Reading(value=3)
    assert compile_output(Reading | int).parse('{"value": {"value": 3}}', mode="native").value == Reading(value=3)
    assert compile_output(Reading | int).parse('{"value": 3}', mode="native").value == 3


def test_none_ignores_the_answer() -> None:
    assert compile_output(None).parse("whatever {").value is None
