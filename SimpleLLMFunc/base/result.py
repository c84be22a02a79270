"""What a run leaves in the user's hand: `Result`, its `Attempt` s, `Preview`, `Parsed`."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from SimpleLLMFunc.errors import Violation
from SimpleLLMFunc.type.completion import ToolCall
from SimpleLLMFunc.type.message import Message, ToolSpec
from SimpleLLMFunc.type.usage import Usage

__all__ = ["Attempt", "OutputMode", "Parsed", "Preview", "Repair", "RepairLevel", "Result"]

R = TypeVar("R")

OutputMode: TypeAlias = Literal["auto", "native", "tool", "prompt", "text"]
"""How a typed answer is asked for; "text" is what "auto" chooses for a function that returns `str`."""

RepairLevel: TypeAlias = Literal["off", "syntax", "coerce"]
"""How far an answer that is not strict JSON may be read."""

Repair: TypeAlias = tuple[str, str]
"""``(path, what was done)``, such as ``("items[2].price", "number taken from '3 EUR'")``."""


@dataclass(frozen=True, slots=True)
class Parsed(Generic[R]):
    """A value read from text.

    Attributes:
        value: of the wanted type.
        repairs: a line for every step beyond strict JSON, in the order they were taken; empty when strict JSON fitted.
    """

    value: R
    repairs: list[Repair] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One time the model was asked for the answer; replies that only call tools are none.

    Attributes:
        text: what it wrote.
        violations: what did not fit; empty for the accepted answer.
        repairs: what was mended to read it.
        seconds: from the request to the end of the reply.
        usage: of this reply.
    """

    text: str
    violations: list[Violation] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Result(Generic[R]):
    """A value and everything that is known about how it came about.

    Attributes:
        value: what the plain call returns.
        text: the last raw answer.
        attempts: every answer the model gave, in order; the last one was accepted.
        repairs: of the accepted answer; empty when strict JSON fitted.
        output_mode, output_mode_reason: how the answer was asked for, and why so.
        tool_calls: the calls the model made, in order.
        messages: the conversation that led to the answer, the answer included, rejected answers not.
        usage: of all attempts, failed ones too.
        cost: USD, None when unknown.
        seconds: wall-clock time of the whole call.
        cached: the accepted answer came from a cache.
        finish_reason: why the model stopped; "length" means that a text was cut.
        tries: HTTP requests of the accepted answer.
    """

    value: R
    text: str
    attempts: list[Attempt]
    repairs: list[Repair]
    output_mode: OutputMode
    output_mode_reason: str
    tool_calls: list[ToolCall]
    messages: list[Message]
    usage: Usage
    seconds: float
    trace_id: str
    cost: float | None = None
    cached: bool = False
    finish_reason: str | None = None
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Preview:
    """The exact request that a call would send.

    Attributes:
        params: what goes to the provider beside the messages, the tools and the response format.
        input_tokens: an estimate, without a download.
        cost: an estimate of the input's price in USD, None when unknown.
        body: the body on the wire.
    """

    messages: list[Message]
    tools: list[ToolSpec] | None
    response_format: dict[str, Any] | None
    params: dict[str, Any]
    output_mode: OutputMode
    output_mode_reason: str
    input_tokens: int
    body: dict[str, Any]
    cost: float | None = None
    url: str = ""

    def as_curl(self) -> str:
        """Return the request as a shell command; the key is read from OPENAI_API_KEY, never written out."""
        body = json.dumps(self.body, ensure_ascii=False)
        return (
            f"curl {shlex.quote(self.url or 'https://api.openai.com/v1/chat/completions')} \\\n"
            '  -H "Authorization: Bearer $OPENAI_API_KEY" \\\n'
            "  -H 'Content-Type: application/json' \\\n"
            f"  -d {shlex.quote(body)}"
        )
