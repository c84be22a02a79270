"""Scenarios of `contract`, and the requests in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from SimpleLLMFunc.type import Message


@dataclass(frozen=True)
class Answer:
    """Every request is answered with this text."""

    text: str = "It will rain tomorrow, so take an umbrella."


@dataclass(frozen=True)
class Echo:
    """Every request is answered with the text of its last message."""


@dataclass(frozen=True)
class CallTool:
    """A request without tool results is answered with this call, one with them with the text `then`."""

    name: str = "weather"
    arguments: dict[str, Any] = field(default_factory=lambda: {"city": "Paris", "days": 2})
    then: str = "Sunny in Paris."


@dataclass(frozen=True)
class Fill:
    """A request with `response_format` is answered with this value as JSON."""

    value: dict[str, Any] = field(default_factory=lambda: {"city": "Paris", "days": 2})


@dataclass(frozen=True)
class Refuse:
    """The service refuses every request, as for a wrong key."""


@dataclass(frozen=True)
class Hang:
    """No answer comes within a second."""


Scenario: TypeAlias = Answer | Echo | CallTool | Fill | Refuse | Hang
"""The behaviour of the provider under test."""


@dataclass(frozen=True)
class Request:
    """A request of the suite: the messages, and further parameters of `chat`."""

    messages: list[Message]
    params: dict[str, Any] = field(default_factory=dict)


FILL_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}

WEATHER_TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Tell the weather.", "parameters": FILL_SCHEMA},
}


def response_format(schema: dict[str, Any], name: str = "value") -> dict[str, Any]:
    """Return `schema` as a strict response format."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
