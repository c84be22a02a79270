"""What a run leaves in the user's hand: `Result`, its `Attempt` s, `Preview`, `Parsed`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from SimpleLLMFunc.base.run.cards import Card, Part, as_html, as_rich, conversation, counted, plainly
from SimpleLLMFunc.errors import Violation
from SimpleLLMFunc.type.completion import ToolCall
from SimpleLLMFunc.type.message import Message, ToolSpec
from SimpleLLMFunc.type.quick import quickly_made
from SimpleLLMFunc.type.usage import Usage

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["AnswerSource", "Attempt", "OutputMode", "Parsed", "Preview", "Repair", "RepairLevel", "Result"]

R = TypeVar("R")

OutputMode: TypeAlias = Literal["auto", "native", "tool", "prompt", "text"]
"""How a typed answer is asked for; "text" is what "auto" chooses for a function that returns `str`."""

AnswerSource: TypeAlias = Literal["model", "first", "fallback"]
"""Who answered a call: the model, or the plain code beside it."""

RepairLevel: TypeAlias = Literal["off", "syntax", "coerce"]
"""How far an answer that is not strict JSON may be read."""

Repair: TypeAlias = tuple[str, str]
"""``(path, what was done)``, such as ``("items[2].price", "number taken from '3 EUR'")``."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Parsed(Generic[R]):
    """A value read from text.

    Attributes:
        value: of the wanted type.
        repairs: a line for every step beyond strict JSON, in the order they were taken; empty when strict JSON fitted.
    """

    value: R
    repairs: list[Repair] = field(default_factory=list)


@quickly_made
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
        source: who answered: the model, or the plain code given as `first=` or `fallback=`.
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
    source: AnswerSource = "model"

    def _repr_html_(self) -> str:
        return as_html(_result_card(self))

    def __rich__(self) -> RenderableType:
        return as_rich(_result_card(self))

    def __rich_repr__(self) -> Iterator[tuple[str, Any, Any]]:
        # Inside of a list, say: what tells it from others. The third is what is not worth showing.
        yield "value", self.value, ...
        yield "repairs", self.repairs, []
        yield "usage", self.usage, ...
        yield "cost", self.cost, None
        yield "seconds", round(self.seconds, 3), ...
        yield "cached", self.cached, False
        yield "finish_reason", self.finish_reason, "stop"
        yield "trace_id", self.trace_id, ""


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

    def _repr_html_(self) -> str:
        return as_html(_preview_card(self))

    def __rich__(self) -> RenderableType:
        return as_rich(_preview_card(self))

    def __rich_repr__(self) -> Iterator[tuple[str, Any, Any]]:
        yield "model", self.body.get("model"), None
        yield "messages", self.messages, ...
        yield "tools", self.tools, None
        yield "output_mode", self.output_mode, ...
        yield "input_tokens", self.input_tokens, ...
        yield "cost", self.cost, None


def _result_card(result: Result[Any]) -> Card:
    usage = result.usage
    value = plainly(result.value)
    facts = [
        ("value", value),
        ("answer", result.text if result.text != value else ""),
        ("tokens", f"{usage.input_tokens} read, {usage.output_tokens} written"),
        ("cost", _usd(result.cost)),
        ("seconds", f"{result.seconds:.2f}{' (from a cache)' if result.cached else ''}"),
        ("asked for", result.output_mode_reason or result.output_mode),
        ("ended", result.finish_reason if result.finish_reason not in {None, "stop", "tool_calls"} else ""),
        ("trace", result.trace_id),
    ]
    rejected = [
        (path or "the answer", expected, got)
        for attempt in result.attempts
        for path, expected, got in attempt.violations
    ]
    calls = [(call.function.name, call.function.arguments) for call in result.tool_calls]
    parts = [
        Part(counted(len(result.repairs), "repair"), [(path or "the answer", what) for path, what in result.repairs]),
        Part(counted(len(rejected), "violation") + " of rejected answers", rejected, ("where", "expected", "got")),
        Part(counted(len(calls), "tool call"), calls, ("tool", "arguments")),
        conversation(result.messages),
    ]
    return Card("Result", [(name, text or "") for name, text in facts], parts)


def _preview_card(preview: Preview) -> Card:
    facts = [
        ("model", str(preview.body.get("model", ""))),
        ("address", preview.url),
        ("asked for", preview.output_mode_reason or preview.output_mode),
        ("input", f"about {preview.input_tokens} tokens"),
        ("price", _usd(preview.cost)),
        *((name, plainly(value)) for name, value in preview.params.items()),
    ]
    tools = [
        (tool["function"]["name"], plainly(tool["function"].get("parameters", {}))) for tool in preview.tools or ()
    ]
    schema = [] if preview.response_format is None else [(plainly(preview.response_format),)]
    parts = [
        conversation(preview.messages),
        Part(counted(len(tools), "tool"), tools, ("tool", "parameters")),
        Part("response format", schema),
        Part("as curl", [(preview.as_curl(),)]),
    ]
    return Card("Preview: nothing has been sent", facts, parts)


def _usd(cost: float | None) -> str:
    return "" if cost is None else f"{cost:.6f} USD"
