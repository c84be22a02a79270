"""What a run leaves in the user's hand, `Result` and `Preview`, which show themselves in notebooks and on terminals."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from SimpleLLMFunc.base.events import Attempt
from SimpleLLMFunc.base.parsing import OutputMode, Repair
from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.interface.wires import Citation, ServerTool
from SimpleLLMFunc.type import Message, ToolCall, ToolSpec, Usage
from SimpleLLMFunc.utils import set_fields

if TYPE_CHECKING:
    from rich.console import RenderableType

R = TypeVar("R")

AnswerSource: TypeAlias = Literal["model", "first", "fallback"]
"""Who answered a call: the model, or the function's plain code."""


KEY_VARIABLE = re.compile(r"(?:Authorization: Bearer|[a-z-]{1,40}:) \$[A-Z_]+")
"""A header with the name of a variable in place of a key: a shell puts the key in."""


_NO_ADDRESS: Final = "$BASE_URL/chat/completions"


def curl_command(url: str, headers: Mapping[str, str] | None, body: Any) -> str:
    """Return a request as a shell command.

    Args:
        url: of the service.
        headers: as `LLM_Interface.shown_headers` gives them; None for those of OpenAI.
        body: JSON data.
    """
    lines = [f"{name}: {value}" for name, value in (headers or {"Authorization": "Bearer $OPENAI_API_KEY"}).items()]
    quoted = [f'"{line}"' if KEY_VARIABLE.fullmatch(line) else shlex.quote(line) for line in lines]
    return " \\\n".join(
        [
            f'curl "{url}"' if url == _NO_ADDRESS else f"curl {shlex.quote(url)}",
            *(f"  -H {line}" for line in [*quoted, "'Content-Type: application/json'"]),
            f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}",
        ]
    )


class Shown:
    """Shows itself as a card of `display`, a room above: it is loaded when the card is shown.

    Attributes:
        card: ``module:function``, which makes the card of an object of this class.
    """

    __slots__ = ()

    card: ClassVar[str]

    def _repr_html_(self) -> str:
        html: str = _display("as_html")(resolve_name(self.card)(self))
        return html

    def __rich__(self) -> RenderableType:
        shown: RenderableType = _display("as_rich")(resolve_name(self.card)(self))
        return shown


def _display(name: str) -> Any:
    return resolve_name(f"SimpleLLMFunc.display.cards:{name}")


@dataclass(frozen=True, slots=True)
class Result(Shown, Generic[R]):
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
        downgrades: what was asked for in another way, or left out, because the service or the model does not take it:
            `(what, said)`, `said` being the words of the service, or why. `what` begins with "output mode: ", "tools: ",
            "wire: ", "sampling: ", "confidence: ", "thinking: " or "provider state: ".
        thinking: what the model thought before the accepted answer, as far as the service shows it; empty for nothing.
        replayed: the steps that a `durable` block gave again, in order: "reply 1", "tool refund". They cost nothing.
        server_tools: the tools that the service ran by itself, such as a web search, in order: `type`, `input` and `output`
            as it tells them.
        citations: where the accepted answer comes from, as far as the service says it: `url`, `title` and the quoted `text`
            of the answer or of the source.
    """

    card: ClassVar[str] = "SimpleLLMFunc.display.results:result_card"

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
    downgrades: list[tuple[str, str]] = field(default_factory=list)
    thinking: str = ""
    replayed: list[str] = field(default_factory=list)
    server_tools: list[ServerTool] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)

    __setstate__ = set_fields

    def __repr__(self) -> str:
        """Return what `__rich_repr__` tells, in at most five lines of a terminal; every field is an attribute."""
        told = [
            f"{name}={cut(repr(value), 200 if name in ('value', 'downgrades') else 80)}"
            for name, value, usual in self.__rich_repr__()
            if usual is ... or value != usual
        ]
        return f"Result({', '.join(told)})"

    def __rich_repr__(self) -> Iterator[tuple[str, Any, Any]]:
        # Inside of a list, say: what tells it from others. The third is what is not worth showing.
        yield "value", self.value, ...
        yield "repairs", self.repairs, []
        yield "usage", self.usage, ...
        yield "cost", self.cost, None
        yield "seconds", round(self.seconds, 3), ...
        yield "cached", self.cached, False
        yield "finish_reason", self.finish_reason, "stop"
        yield "thinking", self.thinking, ""
        yield "downgrades", self.downgrades, []
        yield "replayed", self.replayed, []
        yield "trace_id", self.trace_id, ""


@dataclass(frozen=True, slots=True)
class Preview(Shown):
    """The exact request that a call would send.

    Attributes:
        params: what goes to the provider besides the messages, the tools and the response format.
        input_tokens: an estimate, without a download.
        cost: an estimate of the input's price in USD, None when unknown.
        body: the body on the wire.
        headers: that the service asks for, with the name of a variable in place of the key.
        model: the name of the model.
        improvement: the file of the improvement that the function was given, and what it changes; empty without one.
    """

    card: ClassVar[str] = "SimpleLLMFunc.display.results:preview_card"
    __setstate__ = set_fields

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
    headers: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    improvement: str = ""

    def as_curl(self) -> str:
        """Return the request as a shell command; the key is read from a variable, never written out.

        For a model inside this process, which has no address, the command asks the server that `BASE_URL` names.
        """
        return curl_command(self.url or _NO_ADDRESS, self.headers, self.body)

    def __rich_repr__(self) -> Iterator[tuple[str, Any, Any]]:
        yield "model", self.model, ""
        yield "messages", self.messages, ...
        yield "tools", self.tools, None
        yield "output_mode", self.output_mode, ...
        yield "input_tokens", self.input_tokens, ...
        yield "cost", self.cost, None
        yield "improvement", self.improvement, ""
