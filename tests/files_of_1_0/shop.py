"""The functions with which the files of 1.0 were written; their versions stand in `versions.json`."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from SimpleLLMFunc import ChatPair, Confident, Message, OpenAICompatible, Quoted, llm_chat, llm_function, tool

ADDRESS = "http://127.0.0.1:47113/v1"
"""Where the answers came from when the files were written; nothing listens there any more."""

llm = OpenAICompatible("m-1.0", api_key="sk-files-of-1.0-0123456789", base_url=ADDRESS, profile="openai", max_retries=0)


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Line(BaseModel):
    """A line of an order."""

    name: str = Field(description="What was bought.")
    price: Decimal
    mood: Mood = Mood.GOOD


@dataclass
class Point:
    x: float
    y: float = 0.0


class Excerpt(BaseModel):
    quote: Quoted[str]


@tool
def weather(city: str, days: int = 1) -> str:
    """Tell the weather.

    Args:
        city: where.
        days: how many days ahead.
    """
    return f"{city}: rain"


@llm_function(llm_interface=llm)
async def summary(text: str) -> str:
    """Sum up."""


@llm_function(llm_interface=llm, temperature=0.2)
async def line_of(text: str, *, strict: bool = False) -> Line:
    """Read the line.

    Args:
        text: as it was printed.
    """


@llm_function(llm_interface=llm, toolkit=[weather], max_tool_calls=2)
async def advise(city: str) -> Literal["coat", "hat"]:
    """Say what to wear."""


@llm_function(llm_interface=llm, output_mode="prompt", system_prompt_template="Do: {function_description}")
def points(text: str, around: Point | None = None) -> list[Point]:
    """Find the points."""


@llm_function(llm_interface=llm, examples=[("sun", Mood.GOOD), ("rain", Mood.BAD)], max_examples=2)
async def mood(text: str) -> Mood:
    """Tell the mood."""


@llm_function(llm_interface=llm, votes=3, vote_on=["name"])
async def sure(text: str) -> Confident[Line]:
    """Read the line, three times."""


@llm_function(llm_interface=llm)
async def excerpt(report: str) -> Excerpt:
    """Find it."""


@llm_function(llm_interface=llm)
def lines(text: str) -> AsyncIterator[Annotated[Line, "one"]]:
    """List the lines."""


@llm_function
async def anything(a: dict[str, Any], b: tuple[int, ...] = (), *rest: str, **more: int) -> Any:
    """Do something."""


@llm_chat(llm_interface=llm, toolkit=[weather], stream=True)
async def talk(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
    """You are a guide."""


class Shop:
    @llm_function(llm_interface=llm)
    async def name(self, text: str) -> str:
        """Name it."""
