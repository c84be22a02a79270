"""What a turn sends and to whom, the tools of a run, and what may change a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from SimpleLLMFunc.base.json_action import JsonActions
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, given_to
from SimpleLLMFunc.interface.wires import STATE
from SimpleLLMFunc.tools import FIND_TOOLS, NotConfirmed, Tool, ToolSearch
from SimpleLLMFunc.type import ChatCompletion, Message, ToolSpec, mapping, spec_name

ToolMap: TypeAlias = Mapping[str, Tool | Callable[..., Any]]
"""What runs, by the name on the wire."""

Review: TypeAlias = Callable[[ChatCompletion, list[Message]], Awaitable[list[Message] | None]]
"""``await review(reply, messages)``: None accepts the reply; a list is what the next request holds.

A review may also have a method ``refused(error, request)``, called with a `BadRequest` and the first request of the run (what
has come since left out): it gives another first request to go on from, or None to raise.
"""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a turn sends, and to whom.

    Attributes:
        llm: the model that is asked.
        tools: tools offered besides `answer_tool`; None for no tools.
        response_format: the shape of the answer, in the provider's form.
        params: go to the provider as they are.
        answer_tool: a tool whose arguments are the answer (output mode "tool"); it is never run.
        actions: the tools are offered as JSON actions; None for native tool calls.
        output_mode, output_mode_reason: how the answer is asked for, and why so.
        downgrades: what is asked for in another way because the model refused the first one, and what it said.
        wanted_schema: of the wanted type, None for text; for interfaces with `wants_schema`.
    """

    llm: LLM_Interface
    messages: list[Message]
    tools: list[ToolSpec] | None = None
    response_format: dict[str, Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    answer_tool: ToolSpec | None = None
    actions: JsonActions | None = None
    output_mode: OutputMode = "text"
    output_mode_reason: str = ""
    wanted_schema: dict[str, Any] | None = None
    downgrades: tuple[tuple[str, str], ...] = ()

    @property
    def answer_name(self) -> str | None:
        """The name of the answer tool; None without one."""
        return self.answer_tool["function"]["name"] if self.answer_tool else None

    @property
    def _keeps_tools(self) -> bool:
        """Whether the last turn says that no tool may be called, instead of leaving the tools out."""
        if self.answer_tool or not (self.llm.keeps_tools and self.llm.profile.tool_choice):
            return False
        # State may be bound to the tools as well.
        return bool(self.tools) and any("tool_calls" in message or STATE in message for message in self.messages)

    def with_messages(self, messages: list[Message]) -> ModelRequest:
        """Return the same request with another conversation."""
        return replace(self, messages=messages)

    def wire(self, *, is_last: bool) -> dict[str, Any]:
        """Return the arguments of `LLM_Interface.chat`; in the last turn no tool may be called but the answer.

        The messages are a copy: what an interface does to them is not seen by the run.
        """
        params = dict(given_to(self.llm, self.params))
        if self.actions:
            params.pop("parallel_tool_calls", None)
            choice = params.pop("tool_choice", None)
            actions = replace(self.actions, choice="none" if is_last else choice)
            return {
                **params,
                "messages": copied(actions.messages(self.messages)),
                "tools": None if is_last else [spec for spec in self.tools or () if "function" not in spec] or None,
                "response_format": actions.response_format,
            }
        keeps = is_last and self._keeps_tools
        offered = [] if is_last and not keeps else list(self.tools or ())
        if self.answer_tool:
            if self.llm.profile.tool_choice and self.llm.profile.forces_tools and "tool_choice" not in params:
                params["tool_choice"] = (
                    "required" if offered else {"type": "function", "function": {"name": self.answer_name}}
                )
            offered.append(self.answer_tool)
        elif keeps or not offered:
            params.pop("tool_choice", None)
            params.pop("parallel_tool_calls", None)
            if keeps:
                params["tool_choice"] = "none"
        return {
            **params,
            "messages": copied(self.messages),
            "tools": offered or None,
            "response_format": self.response_format,
        }


TOOL_WORDS: Final[Mapping[str, str]] = {
    "unknown": "There is no tool {name!r}. The tools are: {known}.",
    "failed": "The tool {name} failed: {problem}",
    "unfit": "The arguments do not fit the tool {name}: {problem}. Call it again with others.",
    "not confirmed": str(NotConfirmed("{name}")),
    "repeated": "The tool {name} was not run: it was called with the same arguments twice in a row and gave the same result "
    "both times. Use that result, call it with other arguments, or answer now.",
    "too slow": "it took longer than {seconds:g} s and was stopped",
}
"""What a model is told of a call that came to nothing; the last one is the problem of a tool that failed."""


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """How the tools of a run are run.

    Attributes:
        on_tool_error: "report" tells the model, "raise" ends the run.
        max_result_chars: a longer result is cut.
        confirm: asked before a tool marked `confirm=True` runs; None refuses.
        context: the `context` of every `ToolContext`.
        words: what the model is told of a call that came to nothing, by the names of `TOOL_WORDS`.
    """

    on_tool_error: Literal["report", "raise"] = "report"
    max_result_chars: int = 65536
    confirm: Callable[..., Any] | None = None
    context: Any = None
    words: Mapping[str, str] = field(default_factory=lambda: TOOL_WORDS)

    def told(self, what: str, **facts: object) -> str:
        """Return one of the words, with the facts filled in."""
        return self.words[what].format(**facts)


@dataclass(frozen=True, slots=True)
class Toolset:
    """The tools of a run.

    Attributes:
        tool_map: what runs, by the name on the wire.
        specs: their descriptions for the model, in wire form; None without tools.
        strict_specs: the form that holds a model to the schemas, for the providers that want it.
        max_rounds: how often they are run; the calls of one reply are one round. 0 offers none.
        offered: "native" calls, "json" actions, or "auto": what suits the model.
        policy: how they run.
        search: of a large toolkit it alone is offered at first, and what it finds from then on.
    """

    tool_map: ToolMap = field(default_factory=dict)
    specs: list[ToolSpec] | None = None
    strict_specs: list[ToolSpec] | None = None
    max_rounds: int = 5
    offered: Literal["auto", "native", "json"] = "auto"
    policy: ToolPolicy = field(default_factory=ToolPolicy)
    search: ToolSearch | None = None

    def specs_for(self, llm: LLM_Interface) -> list[ToolSpec] | None:
        """Return the form of the specs that this provider wants."""
        return self.strict_specs if llm.profile.strict and not llm.wants_schema else self.specs

    def shown(self, specs: list[ToolSpec] | None, messages: Sequence[Message] = ()) -> list[ToolSpec] | None:
        """Return those of the specs that a conversation is offered: of a large toolkit the search, and what it found."""
        if self.search is None:
            return specs
        names = {FIND_TOOLS, *self.search.found_in(messages)}
        offered = [each for each in specs or () if "function" not in each or spec_name(each) in names]
        return sorted(offered, key=lambda each: "function" not in each or spec_name(each) != FIND_TOOLS)

    def named(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters of a request; a tool that they demand by its own name has that of the wire."""
        demanded = mapping(mapping(params.get("tool_choice")).get("function")).get("name")
        names = [name for name, run in self.tool_map.items() if isinstance(run, Tool) and run.name == demanded]
        return {**params, "tool_choice": {"type": "function", "function": {"name": names[0]}}} if names else params

    def searched(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the tools that its conversation is offered."""
        if self.search is None:
            return request
        found = self.shown(self.specs_for(request.llm), request.messages)
        if request.actions is not None:
            called = [each for each in found or () if "function" in each]
            request = replace(request, actions=replace(request.actions, tools=called))
        return replace(request, tools=found)
