"""The strict form of parameters."""

from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict, Unpack

from SimpleLLMFunc.tools import Tool
from SimpleLLMFunc.tools.schemas.strict import strict_parameters


class Address(BaseModel):
    street: str = Field(min_length=1, max_length=9)
    number: int | None = None


def strict(func: Any) -> dict[str, Any] | None:
    return strict_parameters(Tool(func=func).parameters)


def test_every_key_is_required_and_no_other_allowed():
    def f(a: int, kind: Literal["x", "y"] = "x", address: Address | None = None, tags: list[str] = []) -> None:  # noqa: B006
        """F.

        Args:
            kind: Which one.
        """

    fields = {"street": {"type": "string"}, "number": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    address = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    found = strict(f)
    assert found == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "kind": {"anyOf": [{"type": "string", "enum": ["x", "y"]}, {"type": "null"}], "description": "Which one."},
            "address": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}]},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        },
        "required": ["a", "kind", "address", "tags"],
        "additionalProperties": False,
        "$defs": {"Address": address},
    }
    jsonschema.Draft202012Validator.check_schema(found)


class Options(TypedDict, total=False):
    n: int


def test_null_in_the_strict_form_means_the_default():
    def f(
        a: int, kind: Literal["x", "y"] = "x", *rest: int, b: int = Field(3, alias="from"),
        c: Annotated[int, Field(default=4)], **more: Unpack[Options],
    ) -> None: ...  # fmt: skip

    found = strict(f)
    arguments = {"a": 1, "kind": None, "rest": None, "from": None, "c": None, "n": None}
    assert found
    assert jsonschema.Draft202012Validator(found).is_valid(arguments)
    assert Tool(func=f).bind(arguments) == ([], {"a": 1, "b": 3, "c": 4})


def free(table: dict[str, int]) -> None: ...
def anything(v: Any) -> None: ...
def pair(p: tuple[int, str]) -> None: ...
def more(**rest: int) -> None: ...


def own(n: int | None = 5) -> None: ...
def made(n: int | None = Field(default_factory=int)) -> None: ...
def listed(v: Literal["a", None] = "a") -> None: ...


class WithDefault(BaseModel):
    n: int = 3


def nested(m: WithDefault) -> None: ...


@pytest.mark.parametrize("func", [free, anything, pair, more, own, made, listed, nested])
def test_what_would_change_its_meaning_has_no_strict_form(func):
    assert strict(func) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"}, {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"not": {}}}}, {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"b": {}}},
    ],
)  # fmt: skip
def test_schemas_by_hand_that_have_none(schema):
    assert strict_parameters(schema) is None
