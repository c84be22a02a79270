"""A function as it is written: what its annotations say, and its docstring."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Annotated, Any, TypeAlias

import pytest
from pydantic import BaseModel, create_model
from typing_extensions import TypeAliasType

from SimpleLLMFunc import ConfigError, SignatureError, Tool, ToolDefinitionError, llm_chat, llm_function
from SimpleLLMFunc.llm_decorator import AsyncLLMChat, AsyncLLMFunction, AsyncLLMStream, LLMChat, LLMFunction, LLMStream
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import decorated

Numbers: TypeAlias = Iterator[int]
Later: TypeAlias = AsyncIterator[int]
Named = TypeAliasType("Named", Iterator[int])
Pairs: TypeAlias = AsyncIterator[tuple[str, list[Any]]]


@pytest.mark.parametrize(
    "hint",
    [Iterator[int], Iterable[int], Iterable, Annotated[Iterator[int], "numbers"], Named, "Iterable[int]", "Numbers"],
)
def test_each_item_as_it_comes(hint):
    def count(to: int):
        """Count."""

    count.__annotations__["return"] = hint
    counted = llm_function(ScriptedLLM("[1, 2]", repeat=True))(count)
    assert isinstance(counted, LLMStream)
    assert list(counted(2)) == [1, 2]
    assert counted.call(2).value == [1, 2]


async def test_aliased_iterators_stream_where_annotations_are_text():
    @llm_function(ScriptedLLM("[1, 2]"))
    async def count(to: int) -> Later:
        """Count."""

    assert isinstance(count, AsyncLLMStream)
    assert [number async for number in count(2)] == [1, 2]

    @llm_chat(ScriptedLLM("hello"))
    async def talk(history: list[Any], message: str) -> Pairs:
        """Talk."""

    assert isinstance(talk, AsyncLLMChat)
    assert [text async for text, _ in talk([], "x")] == ["hello", ""]


def test_so_do_those_of_a_function_whose_parameter_is_defined_later():
    @llm_function
    def count(to: Target) -> Numbers:  # noqa: F821
        """Count."""

    @llm_function
    def know(to: Target) -> Unknown:  # noqa: F821
        """Know."""

    @llm_chat
    def talk(history: list[Target], message: str) -> Unknown:  # noqa: F821
        """Talk."""

    assert isinstance(count, LLMStream)
    assert isinstance(know, LLMFunction)
    assert isinstance(talk, LLMChat)
    with pytest.raises(SignatureError, match=r"^know: an annotation names 'Target'"):
        know(1)


class Order(BaseModel):
    lines: "list[Line]"  # noqa: F821 - defined later


def test_a_model_may_name_what_is_defined_later(monkeypatch):
    ordered = decorated(Order, ScriptedLLM('{"lines": [{"price": 3}]}'))
    labelled = decorated("Line", output_mode="choice")
    with pytest.raises(SignatureError, match=r"Order: an annotation in it names what is not defined\. Define it"):
        ordered("x")
    with pytest.raises(ToolDefinitionError, match=r"parameter order .* names what is not defined\)\. Define it before"):
        Tool(func=ship)
    for names in (globals(), labelled.__wrapped__.__globals__):
        monkeypatch.setitem(names, "Line", create_model("Line", price=(int, ...)))
    assert ordered("x").lines[0].price == 3
    with pytest.raises(ConfigError, match="output_mode='choice' is for"):
        labelled("x")


def ship(order: Order) -> None:
    """Ship it."""


@pytest.mark.parametrize("returned", [str, "str", list[str], int | None, tuple[str, list]])
def test_a_chat_that_returns_no_iterator_is_told_of_the_other_decorator(returned):
    def talk(history: list[Any], message: str):
        """Talk."""

    talk.__annotations__["return"] = returned
    for decorate in (llm_chat, llm_chat(), llm_chat(ScriptedLLM(), stream=True)):
        with pytest.raises(SignatureError, match=r"annotated -> .*, which is not an iterator.* use @llm_function"):
            decorate(talk)


@pytest.mark.parametrize("returned", [Any, None, "None", "Any", Iterable[Any], "AsyncIterable[Any]"])
def test_a_chat_may_say_less(returned):
    async def talk(history: list[Any], message: str):
        """Talk."""

    talk.__annotations__["return"] = returned
    is_sync = returned == Iterable[Any]
    assert isinstance(llm_chat(talk), LLMChat if is_sync else AsyncLLMChat)
    del talk.__annotations__["return"]
    assert isinstance(llm_chat(talk), AsyncLLMChat)


# --- docstrings ------------------------------------------------------------------------------------------


def undocumented(text: str) -> str:
    raise NotImplementedError


async def formatted(text: str) -> str:
    f"""Sum up for {__name__}."""  # noqa: B021 - what is tested
    raise NotImplementedError


def blank(text: str) -> str:
    """ """


@pytest.mark.parametrize("function", [undocumented, formatted, blank])
@pytest.mark.parametrize("decorate", [llm_function, llm_function(), llm_function(temperature=0)])
def test_a_function_without_docstring_is_warned_of_at_the_users_line(function, decorate):
    with pytest.warns(UserWarning, match=f"{function.__name__} has no docstring") as caught:
        made = decorate(function)
    (warning,) = caught
    assert warning.filename == __file__
    assert 'template_params={"audience": "teacher"}' in str(warning.message)
    assert "system_prompt_template=" in str(warning.message)
    with warnings.catch_warnings():  # said once
        warnings.simplefilter("error")
        made.with_options(temperature=1).preview  # noqa: B018
    assert isinstance(made, (LLMFunction, AsyncLLMFunction))


def test_a_template_a_docstring_or_a_chat_is_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        llm_function(system_prompt_template="Sum up.")(undocumented)

        @llm_chat
        def talk(history, message):
            raise NotImplementedError


@pytest.mark.parametrize("name", ["text", "return"])
def test_an_unknown_name_in_an_annotation_is_told_once(name):
    def ask(text: str) -> int:
        """Answer."""

    ask.__annotations__[name] = "Nowhere"
    with pytest.raises(SignatureError, match=r"^ask: an annotation names 'Nowhere'"):
        llm_function(ScriptedLLM("1"))(ask)("x")
