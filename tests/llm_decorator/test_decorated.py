"""The decorated objects: what they show of themselves to `repr`, `inspect` and a REPL, and what of a module is for others."""

import dataclasses
import inspect
import json
import pickle
import pydoc
import re
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Generic, NewType, TypeVar

import pytest
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from SimpleLLMFunc import Audio, File, ImgPath, ImgUrl, Message, OpenAICompatible, llm_chat, llm_function
from SimpleLLMFunc.llm_decorator import decorated
from SimpleLLMFunc.llm_decorator.decorated import CHATS, FUNCTIONS, STREAMS, is_offered, takes_a_file
from SimpleLLMFunc.testing import ScriptedLLM

T = TypeVar("T")


class Review(BaseModel):
    stars: int
    text: str


class Desk:
    @llm_function
    async def read(self, text: str) -> "Review":
        """Read a review."""


@llm_function(OpenAICompatible("gpt-5-mini", api_key="k"))
def read_review(text: str, *, strict: bool = False) -> Review:
    """Read a review."""


@llm_function
def words(text: str) -> Iterator[dict[str, int]]:
    """Count words."""


@llm_chat(ScriptedLLM("hi"))
async def talk(message: str) -> AsyncIterator[tuple[str, list[Message]]]:
    """Talk."""
    yield "", []


def test_a_function_shows_its_signature_and_its_model():
    assert repr(read_review) == "<LLMFunction read_review(text: str, *, strict: bool = False) -> Review, gpt-5-mini>"
    assert (read_review.__name__, read_review.__doc__) == ("read_review", "Read a review.")
    assert list(inspect.signature(read_review).parameters) == ["text", "strict"]
    assert repr(Desk.read) == "<AsyncLLMFunction Desk.read(self, text: str) -> Review>"
    assert repr(Desk().read) == "<AsyncLLMFunction Desk.read(text: str) -> Review>"
    assert repr(read_review.call) == f"<view call of {read_review!r}>"


@pytest.mark.parametrize("function", [read_review, read_review.with_options(retry_times=1), Desk().read, words, talk])
def test_help_shows_the_docstring(function):
    docstring = function.__wrapped__.__doc__
    assert function.__doc__ == inspect.getdoc(function) == function.as_tool().__doc__ == docstring
    assert f"\n    {docstring}\n" in pydoc.plain(pydoc.render_doc(function))


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (read_review.call, "(text: str, *, strict: bool = False) -> Result[Review]"),
        (read_review.stream, "(text: str, *, strict: bool = False) -> Iterator[Review]"),
        (read_review.events, "(text: str, *, strict: bool = False) -> Iterator[ReActEvent]"),
        (read_review.preview, "(text: str, *, strict: bool = False) -> Preview"),
        (Desk().read.call, "(text: str) -> Coroutine[Any, Any, Result[Review]]"),
        (words.call, "(text: str) -> Result[list[dict[str, int]]]"),
        (words.stream, "(text: str) -> Iterator[dict[str, int]]"),
        (talk.events, "(message: str) -> AsyncGenerator[ReActEvent, None]"),
    ],
)
def test_a_view_has_the_parameters_of_its_function(view, shown):
    assert str(inspect.signature(view)) == shown
    assert view.__doc__.strip()


def test_a_view_is_pickled_with_its_function():
    view = pickle.loads(pickle.dumps(read_review.preview))
    assert view.__name__ == "preview"
    assert view("fine").messages == read_review.preview("fine").messages


def test_a_result_takes_at_most_five_lines():
    long = json.dumps({"stars": 5, "text": "very " * 200})
    shown = repr(read_review.with_options(llm_interface=ScriptedLLM(long)).call("fine"))
    assert shown.startswith("Result(value=Review(stars=5, text='very very")
    assert len(shown) <= 5 * 80
    assert "usage=Usage(input_tokens=" in shown
    assert "cached=" not in shown
    asked_again = read_review.with_options(llm_interface=ScriptedLLM('{"stars":', long)).call("fine")
    assert repr(asked_again).startswith("Result(")


# --- for rooms above ---------------------------------------------------------------------------------------------


def test_every_kind_is_a_function_or_a_chat():
    there = {
        thing for name, thing in vars(decorated).items() if re.fullmatch("(Async)?LLM(Function|Stream|Chat)", name)
    }
    assert len(there) == 6
    assert {*FUNCTIONS, *CHATS} == there
    assert set(STREAMS) < set(FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "home", "listed", "offered"),
    [
        ("grade", "shop", None, True), ("grade", "shop.inner", None, True), ("grade", "shopping", None, False),
        ("grade", "elsewhere", None, False), ("_grade", "shop", None, False), ("grade", "elsewhere", ["grade"], True),
        ("_grade", "shop", ["_grade"], True), ("grade", "shop", ["other"], False),
    ],
)  # fmt: skip
def test_a_module_offers_what_it_lists_else_what_is_public_and_its_own(name, home, listed, offered):
    module = ModuleType("shop")
    if listed is not None:
        module.__all__ = listed
    assert is_offered(module, name, home) is offered


@dataclasses.dataclass
class Plain:
    beside: "list[Plain]"
    url: ImgUrl


class Folder(BaseModel, Generic[T]):
    inside: "list[Folder[T]]"
    first: tuple[T, File | None]


@pytest.mark.parametrize(
    ("hint", "takes"),
    [(ImgPath, True), (list[Audio], True), (dict[str, File | None], True), (list[Folder[int]], True), (Folder[str], True),
     (NewType("Picture", ImgPath), True), (TypeAliasType("Pictures", list[ImgPath]), True),
     (ImgUrl, False), (str, False), (list, False), (Plain, False)],
    ids=str,
)  # fmt: skip
def test_what_takes_the_path_of_a_file(hint, takes):
    assert takes_a_file(hint) is takes
