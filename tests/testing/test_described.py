import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc.base.type_resolve import build_type_description_json
from SimpleLLMFunc.llm_decorator.steps.function.prompt import build_return_type_description
from SimpleLLMFunc.testing.described import described_schema


def read(return_type):
    return described_schema(
        ["Be brief.\n\nReturn value:\n" + build_return_type_description(return_type) + "\n\nGive it."]
    )


def resolved(schema):
    return schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


@pytest.mark.parametrize(
    ("return_type", "schema"),
    [
        (int, {"type": "integer"}),
        (bool, {"type": "boolean"}),
        (Annotated[int, Field(ge=3, lt=9, multiple_of=2)], {"type": "integer", "minimum": 3, "exclusiveMaximum": 9, "multipleOf": 2}),
        (Annotated[str, Field(min_length=3, max_length=9)], {"type": "string", "minLength": 3, "maxLength": 9}),
        (Annotated[str, Field(pattern='^a"b, or c$')], {"type": "string", "pattern": '^a"b, or c$'}),
        (Literal["a, b", "one of c", 3], {"enum": ["a, b", "one of c", 3]}),
        (Literal["only"], {"enum": ["only"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        # A list of both, or a list or none? A list of the first is right either way.
        (list[int | None], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, bool], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Any, {"enum": ["text"]}),
        (list, {"type": "array"}),
    ],
    ids=str,
)  # fmt: skip
def test_scalars_lists_and_unions(return_type, schema):
    found = dict(read(return_type))
    found.pop("$defs", None)
    if return_type is Any:
        assert found in ({}, schema)
    else:
        assert found == schema


def test_bounds_that_could_belong_to_two_lists_hold_for_both():
    found = read(list[Annotated[list[int], Field(min_length=2)]])
    assert found["minItems"] == found["items"]["minItems"] == 2


def test_plain_text_has_no_schema():
    assert read(str) is None
    assert described_schema(["You are a helpful guide.", "Tell me about integers."]) is None
    assert described_schema([]) is None


class Inner(BaseModel):
    """Something inside."""

    code: str = Field(description="The code: at most one, or two.", pattern="^x$")
    note: str | None = Field(None, description="May be left out, may be not.")


class Tree(BaseModel):
    name: Annotated[str, Field(min_length=2)]
    inner: Inner
    kind: Literal["tree"] = "tree"
    many: list[Inner] = []
    size: int = 3
    sons: list["Tree"]


def test_objects():
    found = read(Tree)
    tree = resolved(found)
    assert tree["required"] == ["name", "inner", "kind", "sons"]
    assert tree["properties"]["name"] == {"type": "string", "minLength": 2}
    assert tree["properties"]["kind"] == {"enum": ["tree"]}
    inner = found["$defs"][tree["properties"]["inner"]["$ref"].rpartition("/")[2]]
    assert inner["required"] == ["code"]
    assert inner["properties"]["code"] == {"type": "string", "pattern": "^x$"}
    # The type inside itself leads back to the whole.
    assert tree["properties"]["sons"] == {"type": "array", "items": {"$ref": found["$ref"]}}


def test_an_example_tells_more_than_a_string():
    class Host(BaseModel):
        address: str = Field(examples=["192.0.2.7"])
        plain: str

    properties = resolved(read(Host))["properties"]
    assert properties == {"address": {"enum": ["192.0.2.7"]}, "plain": {"type": "string"}}


def test_what_is_not_ours_is_the_example():
    text = 'Type Description (JSON):\n{"type": "blob of stuff"}\n\nExample JSON:\n{"a": 1}\n'
    assert described_schema([text]) == {"enum": [{"a": 1}], "$defs": {}}


def test_where_a_tuple_inside_another_ends_only_the_example_tells():
    nested = read(tuple[tuple[int, bool], Literal["x"]])
    assert [part.get("type") for part in nested["prefixItems"]] == ["array", None]
    assert len(nested["prefixItems"][0]["prefixItems"]) == 2
    alone = "Type Description (JSON):\n" + json.dumps(build_type_description_json(tuple[tuple[int, bool], str]))
    assert described_schema([alone]) is None


def test_the_bounds_of_a_list_inside_a_list():
    inner = Annotated[list[int], Field(min_length=1, max_length=3)]
    found = read(Annotated[list[inner], Field(min_length=4)])
    assert (found["minItems"], found.get("maxItems")) == (4, None)
    assert (found["items"]["minItems"], found["items"]["maxItems"]) == (1, 3)


def test_the_last_description_counts():
    first, second = (
        "Type Description (JSON):\n" + json.dumps(build_type_description_json(kind)) for kind in (list[int], list[bool])
    )
    assert described_schema([first, second])["items"] == {"type": "boolean"}


@pytest.mark.parametrize(
    "text",
    [
        'Type Description (JSON):\n{"type": "blob"}',
        "Type Description (JSON):\n{broken",
        "Return value:\nsomething else\n\n",
    ],
)
def test_broken_descriptions(text):
    assert described_schema([text]) is None
