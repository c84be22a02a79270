"""Decorated functions of one text and dialogues of one message, for tests that are about something else than their source."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc import llm_chat, llm_function
from SimpleLLMFunc.interface.profile import PROFILES
from tests.support.server import Answer, completion, json_answer

NATIVE = PROFILES["openai"]


def async_decorated(returns: Any, llm: Any = None, /, *, name: str = "ask", **options: Any) -> Any:
    """Return an async function of one text that returns `returns`, decorated with these options."""

    async def ask(text: str):
        """Answer."""

    return _made(ask, returns, name, llm, options)


def decorated(returns: Any, llm: Any = None, /, *, name: str = "ask", **options: Any) -> Any:
    """Return the same as a `def`."""

    def ask(text: str):
        """Answer."""

    return _made(ask, returns, name, llm, options)


def async_function_of(llm: Any, returns: Any = str, name: str = "ask", **options: Any) -> Any:
    """Return what `async_decorated` does; the model comes first."""
    return async_decorated(returns, llm, name=name, **options)


def function_of(llm: Any, returns: Any = str, name: str = "ask", **options: Any) -> Any:
    """Return what `decorated` does; the model comes first."""
    return decorated(returns, llm, name=name, **options)


def _made(ask: Any, returns: Any, name: str, llm: Any, options: dict[str, Any]) -> Any:
    ask.__annotations__["return"] = returns
    ask.__name__ = ask.__qualname__ = name
    return llm_function(llm, **options)(ask)


def chat(llm: Any = None, /, **options: Any) -> Any:
    """Return an async dialogue of a history and a message, decorated with these options."""

    @llm_chat(llm, **options)
    async def talk(history: list[Any], message: str) -> Any:
        """Talk."""

    return talk


def weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"sun in {city}"


async def never(_: object) -> None:
    """Be a reply that never comes."""
    await asyncio.Event().wait()


async def every(stream: AsyncGenerator[Any, None]) -> list[Any]:
    """Read a stream to its end and close it."""
    async with aclosing(stream):
        return [item async for item in stream]


def plain_chat(llm: Any = None, /, **options: Any) -> Any:
    """Return the same as a `def`."""

    @llm_chat(llm, **options)
    def talk(history: list[Any], message: str) -> Any:
        """Talk."""

    return talk


async def drained(items: AsyncIterable[Any]) -> list[Any]:
    """Read to the end, and return all that came."""
    return [item async for item in items]


def true_answer(share: float) -> Answer:
    """Return the answer of a service that says "true" or "false", and shows that "true" has this probability."""
    shown = [{"token": text, "logprob": math.log(part)} for text, part in (("true", share), ("false", 1 - share))]
    first = shown[share <= 0.5]
    data = completion(first["token"])
    data["choices"][0]["logprobs"] = {"content": [{**first, "top_logprobs": shown}]}
    return json_answer(data)
