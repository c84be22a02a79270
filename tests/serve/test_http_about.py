import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import Audio, ConfigError, File, ImgPath, llm_chat, llm_function
from SimpleLLMFunc.serve.http import http_app
from SimpleLLMFunc.serve.http_about import openapi_document
from SimpleLLMFunc.serve.offer import offers
from SimpleLLMFunc.type.markers import Confident


class Leaf(BaseModel):
    name: str


class Tree(BaseModel):
    leaf: Leaf
    sons: list["Tree"] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    home: Leaf


class Dog(BaseModel):
    kind: Literal["dog"]


@llm_function
async def grow(seed: Tree, pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]], times: int = 1) -> Tree:
    """Grow it.

    A second line.

    Args:
        seed: what grows.
    """


@llm_function
def talk(text: str) -> str:
    """Talk."""


@llm_function
def trees(text: str) -> Iterator[Tree]:
    """List."""
    yield


@llm_function
def vote(text: str) -> Confident[Tree]:
    """Vote."""


@llm_function
def nothing(text: str) -> None:
    """Do nothing."""


FUNCTIONS = {"grow": grow, "talk": talk, "trees": trees, "vote": vote, "nothing": nothing}


@pytest.fixture
def document():
    return openapi_document(offers(FUNCTIONS), title="Shop", needs_key=True)


def references(part):
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref":
                yield value
            elif key == "mapping":
                yield from value.values()
            else:
                yield from references(value)
    elif isinstance(part, list):
        for item in part:
            yield from references(item)


def test_every_reference_leads_somewhere(document):
    found = list(references(document))
    assert len(found) > 20
    for reference in found:
        assert reference.startswith("#/components/schemas/"), reference
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    assert "$defs" not in json.dumps(document)


def test_what_each_function_takes_and_gives(document):
    assert document["openapi"] == "3.1.0"
    assert document["info"]["title"] == "Shop"
    assert set(document["paths"]) == {"/health"} | {
        path for name in FUNCTIONS for path in (f"/functions/{name}", f"/functions/{name}/stream")
    }
    post = document["paths"]["/functions/grow"]["post"]
    assert post["operationId"] == "grow"
    assert post["summary"] == "Grow it."
    assert "A second line." in post["description"]
    schemas = document["components"]["schemas"]
    assert schemas["grow_arguments"]["required"] == ["seed", "pets"]
    assert schemas["talk_result"]["properties"]["value"] == {"type": "string"}
    assert schemas["nothing_result"]["properties"]["value"] == {"type": "null"}
    assert schemas["trees_result"]["properties"]["value"]["type"] == "array"
    assert set(post["responses"]) >= {"200", "400", "401", "413", "415", "422", "429", "500", "502", "503", "504"}


def test_values_fit_their_schemas(document):
    whole = {"$ref": "#/components/schemas/grow_arguments", "components": document["components"]}
    good = {"seed": {"leaf": {"name": "x"}, "sons": [{"leaf": {"name": "y"}}]}, "pets": [{"kind": "dog"}]}
    jsonschema.validate(good, whole)
    for bad in ({}, {**good, "pets": [{"kind": "cow"}]}, {**good, "other": 1}, {**good, "seed": {"leaf": {}}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, whole)
    result = {"$ref": "#/components/schemas/vote_result", "components": document["components"]}
    jsonschema.validate(
        {"value": {"leaf": {"name": "x"}, "sons": []}, "agreement": {"": 1.0}, "abstained": False}, result
    )


def test_keys_are_asked_for_only_where_there_are_some(document):
    assert document["security"] == [{"key": []}]
    assert document["paths"]["/health"]["get"]["security"] == []
    free = openapi_document(offers(FUNCTIONS), title="Shop", needs_key=False)
    assert "security" not in free
    assert "securitySchemes" not in free["components"]


@pytest.mark.parametrize("hint", [ImgPath, ImgPath | None, list[File], Audio])
def test_a_caller_from_outside_cannot_name_files(hint):
    def look(picture):
        """Look."""

    look.__annotations__ = {"picture": hint, "return": Any}
    for decorated in (llm_function(look), llm_chat(look)):
        with pytest.raises(ConfigError, match="picture"):
            http_app({"look": decorated})
