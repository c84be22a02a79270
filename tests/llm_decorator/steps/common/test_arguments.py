"""Arguments are checked against their annotations before anything is sent."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import IO, Annotated, Any, Literal, Protocol, Unpack

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from SimpleLLMFunc import ImgPath, ImgUrl, Message, SignatureError, Text, UsageError, llm_chat, llm_function
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import async_decorated, decorated


class Colour(Enum):
    RED = "red"


class Plain:
    """A class that pydantic knows nothing about."""


class Speaks(Protocol):
    def speak(self) -> str: ...


@dataclass
class Holder:
    plain: Plain


class Breaks(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def look(cls, name: str) -> str:
        raise RuntimeError("a validator with a mistake in it")


class Rest(TypedDict):
    depth: int


def checked(hint: Any, value: Any) -> None:
    def ask(given):
        """Say it."""

    ask.__annotations__ = {"given": hint, "return": str}
    llm_function(ScriptedLLM("a"))(ask)(value)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, "x"), (int, "3"), (float, 3), (date, "2026-01-31"), (Colour, "red"), (bool, "true"), (list[int], (1, "2")),
        (str | None, None), (Any, object()), (Annotated[str, Field(min_length=2)], "xy"), (Breaks, {"name": "x"}),
        (Text, Text("x")), (list[Text | ImgUrl], [Text("x"), ImgUrl("https://example.com/a.png")]), (Plain, Plain()),
        (Plain | None, None), (list[Plain], [Plain()]), (Holder, Holder(Plain())), (Speaks, 3), (IO[str], io.StringIO("x")),
        (Annotated[Holder, "who"], Holder(Plain())),
    ],
)  # fmt: skip
def test_what_fits_as_pydantic_reads_it_passes(hint, value):
    checked(hint, value)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, None), (str, 5), (int, "three"), (int, 1.5), (list[int], ["x"]), (list[int], 3), (Literal["a", "b"], "c"),
        (Annotated[str, Field(min_length=2)], "x"), (Text, "x"), (ImgUrl | None, {"url": "https://example.com/a.png"}),
        (list[Text | ImgUrl], ({"content": "x"},)), (Plain, 3), (Plain | None, 3), (list[Plain], [3]), (Holder, 3),
        (AsyncIterator[int], 3), (str, iter("x")),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error(hint, value):
    with pytest.raises(
        SignatureError, match=r"ask\(\) takes other arguments. given: .*; the signature is \(given: [^.]+\) -> str$"
    ):
        checked(hint, value)


def test_a_dict_opens_no_file():
    with pytest.raises(SignatureError, match=r"should be an instance of ImgPath, got \{'path': 'no-such.png'\}"):
        checked(ImgPath, {"path": "no-such.png"})


@llm_function(ScriptedLLM("a", repeat=True))
def ask(text: str, times: int = "often", free=None, *more: int, **rest: str) -> str:  # type: ignore[assignment]
    """Say it."""


@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [
        ((None,), {}, "text: "), (("x", "y"), {}, "times: "), (("x", 1, object(), 2, "z"), {}, r"more: 1: "),
        (("x",), {"other": 3}, "rest: other: "), ((1, "y"), {}, "text: .*; times: "),
    ],
)  # fmt: skip
def test_each_that_does_not_fit_is_named(args, kwargs, named):
    with pytest.raises(SignatureError, match=named):
        ask(*args, **kwargs)


def test_defaults_and_parameters_without_annotation_are_not_checked():
    assert ask("x", "often", object(), 3, "4", other="y") == "a"


def test_keywords_by_a_typed_dict_are_checked():
    @llm_function(ScriptedLLM("a"))
    def dig(**rest: Unpack[Rest]) -> str:
        """Dig."""

    with pytest.raises(SignatureError, match="depth"):
        dig(depth="deep")
    assert dig(depth=3) == "a"


def test_the_prompt_shows_what_was_given():
    @llm_function(ScriptedLLM("a"))
    def count(number: int, day: date) -> str:
        """Count."""

    assert "03" in str(count.preview("03", "2026-01-31").messages)


@pytest.mark.parametrize("hint", [Iterator[int], Iterable[int], list[int]])
def test_an_iterator_is_not_read(hint):
    items = iter([1, 2])
    with pytest.raises(UsageError, match="Give a list"):
        checked(hint, items)
    assert list(items) == [1, 2]


async def test_every_view_of_a_function():
    llm = ScriptedLLM("a", repeat=True)
    say = async_decorated(str, llm)
    tell = decorated(Iterator[str], llm)
    for view in (say, say.call, say.stream, say.events, say.preview, tell, tell.call, tell.preview):
        with pytest.raises(SignatureError, match="text: "):
            view(None)  # type: ignore[arg-type]
    assert llm.calls == []
    with pytest.raises(SignatureError, match="text: "):
        await say.as_tool().run(text=None)
    assert llm.calls == []


async def test_a_row_that_does_not_fit_is_the_error_of_that_row():
    llm = ScriptedLLM("a", repeat=True)
    report = await async_decorated(str, llm).map([{"text": "x"}, {"text": None}, {"text": "y"}], progress=False)
    assert [type(result.error).__name__ for result in report.rows] == ["NoneType", "SignatureError", "NoneType"]
    assert (len(llm.calls), report.counts.invalid) == (2, 1)


def test_a_chat_but_not_its_history():
    llm = ScriptedLLM("a", repeat=True)

    @llm_chat(llm)
    def talk(history: list[Message], message: str) -> Iterator[tuple[str, list[Message]]]:
        """Talk."""

    for view in (talk, talk.events, talk.preview):
        with pytest.raises(SignatureError, match="message: "):
            view([], None)  # type: ignore[arg-type]
    assert [text for text, _ in talk(None, "x")] == ["a", ""]  # type: ignore[arg-type]


def test_it_can_be_left_out():
    llm = ScriptedLLM("a", repeat=True)
    for unchecked in (
        decorated(str, llm, check_arguments=False),
        decorated(str, llm).with_options(check_arguments=False),
    ):
        assert unchecked(5) == "a"


def test_a_secret_is_not_shown():
    with pytest.raises(SignatureError) as caught:
        checked(int, "sk-CANARY0123456789abcdefghij")
    assert "CANARY" not in str(caught.value)
