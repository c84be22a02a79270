"""What a turn sends, and what may change it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.base.json_action import JsonActions
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.tools import NotConfirmed, Tool
from SimpleLLMFunc.type import ChatCompletion, Message, ToolSpec, quickly_made

__all__ = ["ModelRequest", "Refused", "Review", "ToolMap", "ToolPolicy", "ToolWords"]

ToolMap: TypeAlias = Mapping[str, Tool | Callable[..., Any]]
"""What runs, by the name on the wire."""

Review: TypeAlias = Callable[[ChatCompletion, list[Message]], Awaitable[list[Message] | None]]
"""``await review(reply, messages)``: None accepts the reply; a list is what the next request holds."""


@quickly_made
@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a turn sends.

    Attributes:
        tools: what is offered beside `answer_tool`, None for nothing.
        response_format: the shape of the answer, in the provider's form.
        params: go to the provider as they are.
        answer_tool: a tool whose arguments are the answer (output mode "tool"); it is never run.
        actions: the tools are offered as JSON actions; None for native tool calls.
    """

    messages: list[Message]
    tools: list[ToolSpec] | None = None
    response_format: dict[str, Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    answer_tool: ToolSpec | None = None
    actions: JsonActions | None = None

    @property
    def answer_name(self) -> str | None:
        """The name of the answer tool, None where there is none."""
        return self.answer_tool["function"]["name"] if self.answer_tool else None

    def with_messages(self, messages: list[Message]) -> ModelRequest:
        """Return the same request with another conversation."""
        return ModelRequest(messages, self.tools, self.response_format, self.params, self.answer_tool, self.actions)

    def wire(self, llm: LLM_Interface, *, is_last: bool, shares: bool = False) -> dict[str, Any]:
        """Return the arguments of `LLM_Interface.chat`; the last turn offers no tool but the answer.

        The messages are a copy, unless it `shares` them: what an interface does to them is not seen by the run.
        """
        if self.actions:
            params = dict(self.params)
            params.pop("parallel_tool_calls", None)
            choice = params.pop("tool_choice", None)
            actions = replace(self.actions, choice="none" if is_last else choice)
            return {
                **params,
                "messages": copied(actions.messages(self.messages)),
                "tools": None,
                "response_format": actions.response_format,
            }
        messages = list(self.messages) if shares else copied(self.messages)
        if not self.params and self.answer_tool is None:
            tools = list(self.tools) if self.tools and not is_last else None
            return {"messages": messages, "tools": tools, "response_format": self.response_format}
        offered = [] if is_last else list(self.tools or ())
        params = dict(self.params)
        if self.answer_tool:
            if llm.profile.tool_choice and "tool_choice" not in params:
                params["tool_choice"] = (
                    "required" if offered else {"type": "function", "function": {"name": self.answer_name}}
                )
            offered.append(self.answer_tool)
        elif not offered:
            params.pop("tool_choice", None)
            params.pop("parallel_tool_calls", None)
        return {
            **params,
            "messages": messages,
            "tools": offered or None,
            "response_format": self.response_format,
        }


Refused: TypeAlias = Callable[[BadRequest, ModelRequest], ModelRequest | None]
"""Called when the provider did not accept a request; gives the one to try instead, or None to raise."""


class ToolWords:
    """How a model is told that a call came to nothing; a subclass says it in another language."""

    def unknown(self, name: str, known: str) -> str:
        """Say that no tool has this name; `known` lists those there are."""
        return f"There is no tool {name!r}. The tools are: {known}."

    def failed(self, name: str, problem: str) -> str:
        """Say that the tool `name` failed; `problem` is the type and the text of what it raised."""
        return f"The tool {name} failed: {problem}"

    def unfit(self, name: str, problem: str) -> str:
        """Say that the arguments do not fit the tool `name`; `problem` says which and why."""
        return f"The arguments do not fit the tool {name}: {problem}. Call it again with others."

    def not_confirmed(self, name: str) -> str:
        """Say that nobody has agreed to a call of the tool `name`."""
        return str(NotConfirmed(name))

    def too_slow(self, seconds: float) -> str:
        """Say what the problem is of a tool that was stopped after its time."""
        return f"it took longer than {seconds:g} s and was stopped"


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """How tools run during a whole run; the fields are arguments of `process_tool_calls`."""

    on_tool_error: Literal["report", "raise"] = "report"
    max_result_chars: int = 65536
    confirm: Callable[..., Any] | None = None
    context: Any = None
    words: ToolWords = field(default_factory=ToolWords)
