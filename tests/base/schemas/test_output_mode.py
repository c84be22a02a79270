"""How a typed answer is asked for."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import math
import re
import sys
import typing
from decimal import Decimal
from typing import Annotated, Any, Callable, Literal

import jsonschema
import pytest
from pydantic import BaseModel, EmailStr, Field, WithJsonSchema

from SimpleLLMFunc.base.schemas.output_mode import ANSWER_TOOL, choose_output_mode, compile_output
from SimpleLLMFunc.base.schemas.strict_schema import StrictSchema
from SimpleLLMFunc.base.schemas.think_first import ThinkFirst
from SimpleLLMFunc.base.type_resolve import build_type_description_json, generate_example_object, type_identity
from SimpleLLMFunc.errors import ResponseParseError, SignatureError
from SimpleLLMFunc.interface.profile import GENERIC, PROFILES
from SimpleLLMFunc.type import Quoted
from tests.support.answer_types import Box, Color, Data, Pair, Total


class Tree(BaseModel):
    """A tree."""

    label: str = Field(min_length=1, description="what it says")
    kids: list[Tree] = []


class Item(BaseModel):
    name: str = "é"
    color: Color = Color.RED
    note: str | None = None
    price: Decimal = Field(Decimal(1), ge=0, alias="unitPrice")


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


STRICT = [
    str, int, float, bool, Decimal, datetime.date, datetime.datetime, Color, Literal["a", 1], list[int], set[str],
    Tree, Item, Box[int], Data, list[Tree], int | str, Tree | None, Annotated[Cat | Dog, Field(discriminator="kind")],
    enum.Enum("E" * 70, "A"), Annotated[int, Field(ge=1)],
    Annotated[str, WithJsonSchema({"allOf": [{"type": "string"}], "description": "a"})],
]  # fmt: skip
LOOSE = {
    dict[str, int]: "the value has any keys", tuple[int, str]: "value is a tuple", Pair: "value is a tuple",
    Total: "b may be left out", Any: "value may be anything", list[Any]: "value[] may be anything",
    Box[dict[str, int]]: "content has any keys", dict: "the value has any keys",
}  # fmt: skip


def test_a_spec_is_built_once() -> None:
    assert compile_output(Tree) is compile_output(Tree)
    assert compile_output(list[Tree]) is compile_output(list[Tree])
    assert compile_output(Literal[1]) is not compile_output(Literal[True])
    assert compile_output(int | str).return_type == int | str


@pytest.mark.parametrize("wanted", [*STRICT, *LOOSE])
def test_the_wire_schema_is_an_object_and_valid_and_only_what_is_no_object_is_wrapped(wanted: Any) -> None:
    spec = compile_output(wanted)
    jsonschema.Draft202012Validator.check_schema(spec.wire_schema)
    assert spec.wire_schema["type"] == "object"
    is_object = wanted in [Tree, Item, Data, Total, Box[int], Box[dict[str, int]], dict, dict[str, int]]
    assert spec.is_wrapped == ("value" in spec.wire_schema.get("properties", {})) == (not is_object)


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


def strict_schema(wanted: Any) -> dict[str, Any]:
    form = compile_output(wanted).native_format
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", form["json_schema"]["name"])
    schema: dict[str, Any] = form["json_schema"]["schema"]
    return schema


@pytest.mark.parametrize("wanted", STRICT)
def test_a_strict_schema_keeps_the_rules_and_what_fits_it_fits_the_type(wanted: Any) -> None:
    schema = strict_schema(wanted)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    unknown = {"default", "oneOf", "allOf", "const", "uniqueItems", "minLength", "prefixItems", "title"}
    for node in nodes(schema):
        assert not unknown & node.keys()
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        if "$ref" in node:
            assert set(node) == {"$ref"}
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]
    spec, example = compile_output(wanted), generate_example_object(wanted)
    if wanted is not Item:  # the example of a decimal is a number, as the strict schema wants it
        jsonschema.validate({"value": example} if spec.is_wrapped else example, spec.wire_schema)
    assert spec.adapter.validate_python(example) is not None


@pytest.mark.parametrize("wanted", LOOSE)
def test_what_cannot_be_said_strictly_is_not(wanted: Any) -> None:
    spec = compile_output(wanted)
    assert spec.strict_problem == LOOSE[wanted]
    loose = spec.native_format["json_schema"]
    assert (loose["schema"], loose["strict"]) == (spec.wire_schema, False)


def test_what_the_subset_has_no_word_for_is_told_in_the_description() -> None:
    properties = strict_schema(Tree)["properties"]
    assert properties["label"] == {"type": "string", "description": "what it says (at least 1 characters)"}
    assert properties["kids"]["description"] == "default: []"
    assert strict_schema(set[str])["properties"]["value"]["description"] == "no duplicates"


def test_a_pattern_stays_one_where_the_subset_knows_its_signs() -> None:
    plain, bounded = (strict_schema(Annotated[str, Field(pattern=each)]) for each in ("^a$", r"\ba"))
    assert plain["properties"]["value"] == {"type": "string", "pattern": "^a$"}
    assert bounded["properties"]["value"] == {"type": "string", "description": r"matches \ba"}


def test_the_mark_of_a_quote_is_on_no_wire() -> None:
    spec = compile_output(dict[Quoted[str], list[Quoted[str]]])
    assert spec.quotes == ("[][]", "the keys of the return value")
    assert compile_output(list[Box[Quoted[str]]]).quotes == ("[].content",)
    assert spec.schema == {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}


def test_a_null_that_means_absent_and_an_alias() -> None:
    schema = strict_schema(Item)
    assert schema["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert schema["properties"]["name"]["description"] == 'default: "é"'
    assert "unitPrice" in schema["required"]
    text = '{"name": "x", "color": "red", "note": null, "unitPrice": 2.50}'
    assert compile_output(Item).parse(text).value.price == 2.5
    lax = dataclasses.make_dataclass("Lax", [("x", int, None)])
    assert compile_output(lax).strict_problem == "x may be left out", "null is no int"


def test_too_deep_or_too_large_is_not_strict() -> None:
    deep: Any = functools.reduce(lambda inner, _: list[inner], range(8), int)
    told = [compile_output(each).strict_problem for each in (deep, list[Box[deep]], list[deep], list[Box[list[deep]]])]
    assert told == ["", "", *["nested deeper than 10 levels"] * 2]
    wide = [enum.Enum("wide", {f"m{number}": f"v{number}" for number in range(count)}) for count in (1000, 1001)]
    assert [compile_output(each).strict_problem for each in wide] == ["", "1001 enum values, at most 1000"]
    fields = {f"n{number:023}": {"enum": ["x"]} for number in range(5001)}
    told = StrictSchema({"type": "object", "properties": fields, "required": list(fields)}).problem.split("; ")
    assert (told[0], told[2].partition(" of ")[0]) == ("5001 properties, at most 5000", "125025 characters")


def test_the_answer_tool() -> None:
    tool = compile_output(list[int]).answer_tool()
    assert (tool["type"], tool["function"]["name"], ANSWER_TOOL) == ("function", "answer", "answer")
    assert tool["function"]["parameters"]["properties"]["value"]["type"] == "array"
    assert compile_output(Tree).answer_tool()["function"]["parameters"]["type"] == "object"
    far = dataclasses.make_dataclass("Far", [("most", float, math.inf)])
    assert "default" not in str(compile_output(far).answer_tool())


class Level(enum.Enum):
    """How bad it is."""

    LOW = 1
    HIGH = "高"
    WORST = HIGH
    GONE = 3

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        made = handler(core)
        return {**made, "enum": made["enum"][-2::-1]}


@pytest.mark.parametrize("wanted", [Level, list[Level], Level | None])
def test_numbers_of_an_enum_are_told_by_name_once_and_the_identity_of_the_type_stays(wanted: Any) -> None:
    told = 'How bad it is. The values mean: "高" is HIGH; 1 is LOW'
    assert {"type": ["string", "integer"], "enum": ["高", 1], "description": told} in nodes(strict_schema(wanted))
    assert '("高" is HIGH; 1 is LOW)' in str(build_type_description_json(wanted))
    assert "LOW" not in str(type_identity(wanted, as_json=True))
    assert type_identity(Level, as_json=True) == 'one of "高", 1: How bad it is.'


def test_a_field_that_no_answer_sets_is_not_asked_for() -> None:
    made = dataclasses.make_dataclass("Made", [("a", int), ("b", int, dataclasses.field(init=False, default=9))])
    assert list(compile_output(made).schema["properties"]) == ["a"]


class Opaque:
    pass


ODD = Annotated[str, Field(pattern="(?=x)a")]


@pytest.mark.parametrize(
    "wanted", [Opaque, list[Opaque], Literal[()], enum.Enum("E", []), "Nowhere", Callable[[int], int], BaseModel, ODD]
)
def test_a_type_no_one_can_ask_for(wanted: Any) -> None:
    match = r"^return type (.*: no JSON schema|list.*Opaque\]:|'?Nowhere|.*Callable|.*no fields|.*\(error: look-around)"
    with pytest.raises(SignatureError, match=match):
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
    assert (chosen, reason.partition(": ")[0]) == (mode, mode)
    assert choose_output_mode(ThinkFirst(compile_output(wanted)), PROFILES[profile], "auto", refused)[0] != "text"


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_what_was_asked_for_is_kept_unless_refused(mode: Any) -> None:
    loose = compile_output(dict[str, int])
    assert "any keys" in choose_output_mode(loose, PROFILES["openai"])[1]
    assert "refused native" in choose_output_mode(loose, PROFILES["vllm"], refused={"native"})[1]
    spec = compile_output(Tree)
    assert choose_output_mode(spec, GENERIC, mode)[0] == mode
    if mode != "prompt":
        assert choose_output_mode(spec, PROFILES["openai"], mode, {mode})[0] != mode
    assert choose_output_mode(compile_output(str), PROFILES["openai"], mode)[0] == mode


# --- reading -----------------------------------------------------------------------------------------------


def test_text_is_the_text_as_it_stands() -> None:
    spec = compile_output(str)
    kept = [" x\n", '{"value": "x"}', '"x"', "```\nx\n```", "Use <think> and </think>\nlike so", "`</think>`\n"]
    for text in (*kept, "x <think>", "</s> is a mark"):
        assert spec.parse(text).value == text
    assert spec.parse("<think>hm</think>\nx").value == "x"
    assert spec.parse("so it is\n</think>\n\nx").value == "x"
    assert spec.parse("<think>hm</think>Use the <think> tag.").value == "Use the <think> tag."
    with pytest.raises(ResponseParseError):
        spec.parse("<think>hm")


class Reading(BaseModel):
    value: int


@pytest.mark.parametrize(
    ("wanted", "mode", "text", "value"),
    [
        (str, "native", '{"value": " x "}', " x "), (str, "tool", '{"value": " x "}', " x "), (str, "native", "plain", "plain"),
        (str, "tool", "plain", "plain"), (Any, None, '{"value": 3}', {"value": 3}), (Any, "native", '{"value": 3}', 3),
        (Any, "native", '{"a": 3}', {"a": 3}), (Reading, None, '{"value": 3}', Reading(value=3)),
        (Reading | int, "native", '{"value": {"value": 3}}', Reading(value=3)), (Reading | int, "native", '{"value": 3}', 3),
        (None, None, "whatever {", None),
    ],
)  # fmt: skip
def test_the_wrapper_depends_on_the_mode_and_a_field_named_value_is_none(
    wanted: Any, mode: Any, text: str, value: Any
) -> None:
    assert compile_output(wanted).parse(text, mode=mode).value == value


def test_a_choice_is_asked_for_where_no_tools_are_offered():
    labels = compile_output(Literal["a", "b"])
    assert choose_output_mode(labels, GENERIC, "choice")[0] == "choice"
    assert choose_output_mode(labels, GENERIC, "choice")[1] == "choice: asked for by output_mode='choice', 2 labels"
    assert choose_output_mode(labels, PROFILES["local"]) == ("choice", "choice: a small model, 2 labels")
    assert choose_output_mode(labels, PROFILES["local"], has_tools=True)[0] != "choice"
