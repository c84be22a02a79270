"""A small program as its author would have it: what the tests and the screenshots of the page look at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from SimpleLLMFunc import AIAssistant, ChatPair, Confident, Message, llm_chat, llm_function, tool
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls


class PricedLLM(ScriptedLLM):
    """A scripted model with the price of a small real one."""

    provider = "openai"

    def price(self, usage: Any, model: str = "") -> float | None:
        return usage.input_tokens * 0.25e-6 + usage.output_tokens * 2e-6


class Line(BaseModel):
    item: str
    quantity: int = Field(ge=1)
    price: float = Field(description="Of one piece, in euros.")


class Order(BaseModel):
    customer: str
    lines: list[Line]
    urgency: Literal["low", "normal", "high"] = "normal"


@dataclass
class Mood:
    label: Literal["happy", "neutral", "angry"]
    confidence: float


LETTER = (
    "Hello, this is Ines from Porto. Please send two green teapots (24.50 each) and 1 tray for 18 euros, it's urgent!"
)


@tool
def stock(item: str) -> str:
    """Say how many of an item are there.

    Args:
        item: In English, singular.
    """
    return {"teapot": "7 on the shelf, 12 on the way", "tray": "31 on the shelf"}.get(item, "unknown")


def order_json(price: Any = 24.5, quantity: int = 2) -> str:
    lines = [{"item": "teapot", "quantity": quantity, "price": price}, {"item": "tray", "quantity": 1, "price": 18}]
    return json.dumps({"customer": "Ines", "lines": lines, "urgency": "high"})


def slowly(seconds: float, reply: Any) -> Any:
    """A reply that takes its time; a function makes it of the request."""

    async def wait(request: Any) -> Any:
        await asyncio.sleep(seconds)
        return reply(request) if callable(reply) else reply

    return wait


def order_llm(pace: float = 0.0) -> PricedLLM:
    def answer(request: Any) -> str:
        quantity = 3 if "three" in str(request.messages) else 2
        return "Here is the order:\n```json\n" + order_json("24.50 EUR", quantity) + "\n```"

    return PricedLLM(
        slowly(0.9 * pace, tool_calls(("stock", {"item": "teapot"}), ("stock", {"item": "tray"}))),
        slowly(1.3 * pace, order_json("a lot")),
        slowly(1.1 * pace, answer),
        model_name="gpt-5-mini",
        repeat=True,
    )


def _first() -> Any:
    """What `read_order` was at first, and after that."""

    class Line(BaseModel):
        item: str
        quantity: int

    class Order(BaseModel):
        customer: str
        lines: list[Line]

    @llm_function(llm_interface=order_llm())
    async def read_order(letter: str) -> Order:
        """Read the order out of a letter.

        Args:
            letter: As it came.
        """

    return read_order


def _second() -> Any:
    class Line(BaseModel):
        item: str
        quantity: int = Field(ge=1)
        price: float

    class Order(BaseModel):
        customer: str
        lines: list[Line]

    @llm_function(llm_interface=order_llm())
    async def read_order(letter: str) -> Order:
        """Read the order out of a customer's letter.

        Prices are in euros.

        Args:
            letter: As it came.
        """

    return read_order


OLDER_READ_ORDER = [_first(), _second()]


@llm_function(llm_interface=order_llm(), toolkit=[stock])
async def read_order(letter: str, *, language: str = "English") -> Order:
    """Read the order out of a customer's letter.

    Look up every item before you note it. Prices are per piece, in euros.

    Args:
        letter: As it came.
        language: Of the names of the items.
    """


@llm_function(llm_interface=PricedLLM('{"label": "happy", "confidence": 0.92}', model_name="gpt-5-nano", repeat=True))
def mood(text: str, scale: int = 3) -> Mood:
    """Say in which mood a text was written."""


@llm_function(llm_interface=PricedLLM("The teapot holds one litre and keeps tea warm for an hour.", repeat=True))
async def describe(item: str, words: int = 20) -> str:
    """Describe an item of the shop in about so many words."""


@llm_function(llm_interface=PricedLLM('["small", "green", "round"]', repeat=True))
def adjectives(item: str) -> Iterator[str]:
    """Yield adjectives for an item."""


def talk(request: Any) -> str:
    asked = sum(message["role"] == "user" for message in request.messages)
    return f"Answer number {asked}: we open at nine. You said {request.text.removeprefix('message: ')!r}."


@llm_chat(llm_interface=PricedLLM(talk, model_name="gpt-5-mini", repeat=True), stream=True)
async def clerk(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
    """You are the clerk of a small shop for tea things. Be brief and kind."""


@tool
async def moods_of(letters: list[str]) -> str:
    """Say in which mood each letter was written.

    Args:
        letters: As they came.
    """
    report = await asyncio.to_thread(mood.map, letters, progress=False)
    return ", ".join(row.value.label for row in report.rows)


@tool
async def size_of(item: str) -> str:
    """Say how large an item is.

    Args:
        item: In English.
    """
    return (await size(item)).value


@llm_function(llm_interface=PricedLLM('"small"', repeat=True), votes=3)
async def size(item: str) -> Confident[Literal["small", "large"]]:
    """Say how large an item is."""


@llm_function(
    llm_interface=PricedLLM(
        tool_calls(("moods_of", {"letters": ["Thank you!", "Lovely."]}), ("size_of", {"item": "teapot"})),
        "Both are happy, and the pot is small.",
        repeat=True,
    ),
    toolkit=[moods_of, size_of],
)
async def clerk_agent(task: str) -> str:
    """Do what the task says."""


helper = AIAssistant(PricedLLM("I am the assistant of the shop.", repeat=True), tools=(), language="en")
