"""What is told of a function: its signature as text, and the version that tells it from what it was before."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import ChatPair, Message, llm_chat, llm_function
from SimpleLLMFunc.base.metadata import FunctionMetadata, code_version, function_version, signature_text
from SimpleLLMFunc.testing import ScriptedLLM

LLM = ScriptedLLM(repeat=True)
PLACE = object()


class Grade(BaseModel):
    """A grade."""

    points: int


def facts_of(function: Any) -> FunctionMetadata:
    return function._pipeline.metadata


@llm_function(llm_interface=LLM)
async def grade(essay: str, *, strict: bool = False) -> Grade:
    """Grade the essay."""
    raise NotImplementedError


def test_a_function_is_described():
    facts = facts_of(grade)
    assert (facts.name, facts.kind, facts.docstring, facts.tools) == ("grade", "function", "Grade the essay.", [])
    assert facts.signature == "(essay: str, *, strict: bool = False) -> Grade"
    assert facts.output_schema is not None
    assert facts.output_schema["properties"]["points"]["type"] == "integer"
    assert facts.place == f"{__name__}:grade"
    assert re.fullmatch("[0-9a-f]{16}", facts.version)
    assert facts_of(grade) is facts


def test_a_chat_is_described():
    @llm_chat(LLM)
    async def talk(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
        """Talk."""
        raise NotImplementedError
        yield

    facts = facts_of(talk)
    assert (facts.kind, facts.output_schema) == ("chat", None)
    assert facts.signature == "(history: list[Message], message: str) -> AsyncIterator[ChatPair]"
    assert facts.place.endswith("test_a_chat_is_described.<locals>.talk")


def one(docstring: str = "Do it.", tools: Any = (), returns: Any = str, **hints: Any) -> str:
    def func(text: Any) -> Any: ...

    func.__doc__ = docstring
    func.__annotations__ = {"text": hints.get("text", str), "return": returns}
    return facts_of(llm_function(llm_interface=LLM, toolkit=list(tools))(func)).version


def search(query: str) -> str:
    """Search."""
    return query


def test_every_part_makes_another_version():
    class Other(BaseModel):
        points: float

    Other.__name__ = Other.__qualname__ = "Grade"

    def search_more(query: str) -> str:
        """Search more."""
        return query

    search_more.__name__ = "search"
    returns = [int, Grade, Other, Annotated[int, Field(ge=1)]]  # Grade and Other: the same signature, another schema
    tools = [[search], [search_more], [search, grade.as_tool()]]
    versions = [one(), one("Do it well."), *(one(returns=kind) for kind in returns)]
    versions += [*(one(text=kind) for kind in (int, Grade, Other)), *(one(tools=each) for each in tools)]
    assert len(set(versions)) == len(versions)
    assert one() == versions[0]


def test_other_options_are_the_same_version_and_other_tools_are_not():
    assert facts_of(grade.with_options(temperature=1)).version == facts_of(grade).version
    with_tools = facts_of(grade.with_options(toolkit=[search]))
    assert with_tools.version != facts_of(grade).version
    assert [tool["function"]["name"] for tool in with_tools.tools] == ["search"]
    assert facts_of(grade).tools == []


def test_other_templates_are_another_version():
    names = ("system_prompt_template", "user_prompt_template")
    others = [facts_of(grade.with_options(**{name: "{function_description}"})).version for name in names]
    assert len({facts_of(grade).version, *others}) == 3
    # What fills them in is like an argument: a program may give it anew with every call.
    assert facts_of(grade.with_options(template_params={"a": 1})).version == facts_of(grade).version


def test_a_method_is_described_without_its_instance():
    class Teacher:
        @llm_function(llm_interface=LLM)
        async def grade(self, essay: str) -> int:
            """Grade the essay."""
            raise NotImplementedError

    first, second = facts_of(Teacher().grade), facts_of(Teacher().grade)
    assert (first.signature, first.version) == ("(essay: str) -> int", second.version)


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [
        (Grade, "Grade"), ("Grade | None", "Grade | None"), (list[Grade], "list[Grade]"),
        (dict[str, list[Grade]] | None, "dict[str, list[Grade]] | None"), (Literal["a", 1], "Literal['a', 1]"),
        (Any, "Any"), (inspect.Parameter.empty, None),
    ],
)  # fmt: skip
def test_a_type_is_shown_by_its_own_name(annotation, shown):
    parameter = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)
    text = signature_text(inspect.Signature([parameter], return_annotation=annotation))
    assert text == ("(x)" if shown is None else f"(x: {shown}) -> {shown}")


def test_the_version_is_the_same_in_every_process_and_a_default_counts_without_its_place_in_memory():
    def func(x=PLACE, y=1.5, z=frozenset("dcba")): ...

    assert signature_text(inspect.signature(func)) == "(x=<object object>, y=1.5, z=frozenset({'a', 'b', 'c', 'd'}))"
    code = (
        "from SimpleLLMFunc.base.metadata import function_version as v;"
        "print(v('Do it.', '(x=<object object at 0x7f01>)', {'b': 1, 'a': {2: object()}}, []))"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    assert printed == function_version("Do it.", "(x=<object object>)", {"a": {"2": "<object object>"}, "b": 1}, [])


def test_code_without_a_source_is_told_apart_by_what_it_does():
    made = []
    for body in ("a + 1", "a + 1", "a - 1"):
        exec(f"def func(a): return {body}", names := {"__name__": "m"})
        made.append(code_version(names["func"]))
    assert made[0] == made[1] != made[2]
    assert [name for name, _ in made] == ["m:func"] * 3
    assert re.fullmatch("[0-9a-f]{16}", code_version(len)[1])
