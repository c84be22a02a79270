"""`LLMCaller`: how the assistant asks its model; `ToolInvoker`: its tools, by name; `Turn`: what its user sees of one question."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, TypeAlias, assert_never, cast

from SimpleLLMFunc.assistant.search.search import SearchReview
from SimpleLLMFunc.assistant.words import WORDS
from SimpleLLMFunc.base.events import (
    AnswerReviewed,
    MessageAppended,
    ReActEvent,
    ReplyDelta,
    ReplyReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TryFailed,
    TurnStarted,
)
from SimpleLLMFunc.base.ReAct import model_turn, react_events
from SimpleLLMFunc.base.request import TOOL_WORDS, ModelRequest, Review, ToolPolicy, Toolset
from SimpleLLMFunc.base.run import Run, downgrades_of, json_actions
from SimpleLLMFunc.base.tool_result import render_result
from SimpleLLMFunc.errors import ToolDefinitionError, ToolFailed, cut
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.steps.chat.message import fitted
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.logger import async_log_context, push_warning, redact
from SimpleLLMFunc.runtime import run_sync
from SimpleLLMFunc.tools import ArgumentsError, NotConfirmed, Tool, ToolRegistry, read_arguments
from SimpleLLMFunc.type import Message, ToolCall, ToolSpec
from SimpleLLMFunc.utils import get_last_item_of_async_generator

FUNC_NAME = "assistant"
MAX_RESULT_CHARS = 65536

StreamItem: TypeAlias = str | ToolCallStarted | ToolCallFinished | dict[str, Any]
"""What `stream_query` yields: pieces of text, starts and ends of tools, and last the result."""


@dataclass(eq=False)
class LLMCaller:
    """Asks the assistant's model.

    Attributes:
        llm: the model; None takes the current one at each call.
        params: go to the provider with each request.
        max_tool_rounds: rounds of tool calls in one answer.
        confirm: asked before a tool marked `confirm=True` runs.
    """

    llm: LLM_Interface | None = None
    _: KW_ONLY
    params: Mapping[str, Any] = field(default_factory=dict)
    max_tool_rounds: int = 5
    confirm: Any = None

    async def invoke(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None) -> dict[str, Any]:
        """Ask once and return the reply: ``{"content": text, "tool_calls": [{"id", "name", "arguments"}, …]}``.

        Arguments that are no JSON object are given as their text. No tool runs.

        Raises:
            ProviderError: the service failed or refused.
        """
        request = ModelRequest(resolve_llm(self.llm), list(messages), list(tools or ()) or None, params=self.params)
        event = await get_last_item_of_async_generator(model_turn(Run(FUNC_NAME), request, 1))
        assert isinstance(event, ReplyReceived), "a turn that raises nothing ends with its reply"
        return {"content": event.reply.text, "tool_calls": [shown_call(call) for call in event.reply.tool_calls]}

    def toolset(self, invoker: ToolInvoker, context: Any = None) -> Toolset:
        """Return the tools of one run; their `ToolContext` has `context`."""
        policy = ToolPolicy(confirm=self.confirm, context=context, words=invoker.words)
        specs = invoker.get_tool_definitions() or None
        return Toolset(invoker.tool_map(), specs, max_rounds=self.max_tool_rounds, policy=policy)

    async def events(
        self, run: Run, messages: list[Message], tools: Toolset, review: Review
    ) -> AsyncGenerator[ReActEvent, None]:
        """Yield the events of one whole run: tools run, their results go back, up to the answer.

        Args:
            run: takes in what happens.
            messages: the conversation with the new question.
            tools: what is offered.
            review: judges an answer.
        """
        async with async_log_context(run.trace_id, run.func_name), run:
            llm = resolve_llm(self.llm)
            actions = json_actions(llm, tools.specs)
            request = ModelRequest(llm, messages, tools.specs, params=self.params, actions=actions)
            request = await fitted(request, Options(), FUNC_NAME)
            request = replace(request, downgrades=downgrades_of(request, tools.specs))
            async with aclosing(react_events(request, tools, review, run)) as events:
                async for event in events:
                    yield event


def shown_call(call: ToolCall) -> dict[str, Any]:
    """Return a call as ``{"id", "name", "arguments"}``; arguments that are no JSON object stay text."""
    arguments: Any = call.function.arguments
    with suppress(ArgumentsError):
        arguments = read_arguments(arguments)
    return {"id": call.id, "name": call.function.name, "arguments": arguments}


class Turn:
    """Reads the events of one question: what the user is shown, and what is left of it.

    Attributes:
        owner: who asks.
        is_forgotten: the user was deleted meanwhile, and nothing is to be remembered.
        review: of the answers.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.is_forgotten = False
        self.review: SearchReview | None = None
        self.grown: list[Message] = []
        self.answer = ""
        self._held: list[str] = []
        self._results: list[dict[str, Any]] = []

    def read(self, event: ReActEvent) -> Iterator[StreamItem]:
        """Take in one event and yield what may be shown."""
        match event:
            case TurnStarted():
                self._held.clear()  # a reply that was sent back, or a stream that began again
            case ReplyDelta(text=text):
                if text and self.review is not None and self.review.may_search:
                    self._held.append(text)
                elif text:
                    yield text
            case ToolCallStarted():
                yield from self.release()
                yield event
            case ToolCallFinished(call=call, content=content, failed=failed):
                self._results.append({**shown_call(call), "result": content, "failed": failed})
                yield event
            case MessageAppended(message=message):
                self.grown.append(message)
            case RunFinished(reply=reply):
                self.answer = reply.text
            case RunStarted() | ReplyReceived() | ToolCallProgress() | TryFailed() | AnswerReviewed() | RunFailed():
                pass
            case _:
                assert_never(event)

    def release(self) -> Iterator[str]:
        """Yield the text that was held back: it stands."""
        held, self._held = self._held, []
        yield from held

    def result(self, session_id: str) -> dict[str, Any]:
        """Return what the question came to."""
        return {
            "response": self.answer,
            "session_id": session_id,
            "has_tool_calls": bool(self._results),
            "tool_results": self._results,
            "sources": self.review.sources if self.review is not None else [],
        }


# --- tools by name ---


class ToolInvoker(ToolRegistry):
    """Tools that are registered by name, told to the model, and run.

    Args:
        tools: to begin with: `Tool` objects, decorated functions, plain callables.
        language: of what the model reads of a failure, "zh" or "en".
    """

    def __init__(self, tools: Iterable[Any] = (), *, language: Literal["zh", "en"] = "zh") -> None:
        super().__init__()
        self.words: Mapping[str, str] = {**TOOL_WORDS, **WORDS["tool calls"]["zh" if language == "zh" else "en"]}
        for candidate in tools:
            self.register(candidate, replace=True)

    def register_tool(
        self,
        name: str,
        func: Callable[..., Any],
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Tool:
        """Register a tool; one that has this name already is replaced.

        Args:
            name: what the model calls it by.
            func: sync or async.
            description: what the model reads; None takes the docstring.
            parameters: ``{"city": {"type": "string", "description": "…"}, "date": {…, "optional": True}}``, where
                each parameter is required that is not optional; or a whole JSON Schema of an object. None reads
                them from the signature.

        Raises:
            ToolDefinitionError: it cannot be told to a model.
        """
        schema = None if parameters is None else _schema(name, parameters)
        return self.register(Tool(func, name, description, schema), replace=True)

    def invoke_tool(self, tool_name: str, /, **kwargs: Any) -> str:
        """Run a tool and return its result as text, or a text that says why there is no result."""
        return run_sync(self.invoke(tool_name, **kwargs))

    async def invoke(self, tool_name: str, /, **kwargs: Any) -> str:
        """Run a tool and return its result as text; what goes wrong is a text too, without secrets."""
        names = self.names()
        if tool_name not in names and tool_name not in self.tool_map():
            return self._told("unknown", name=tool_name, known=", ".join(names) or "-")
        try:
            content = render_result(await super().invoke(tool_name, **kwargs), MAX_RESULT_CHARS)
        except ToolFailed as error:
            if isinstance(error.__cause__, NotConfirmed):
                return self._told("not confirmed", name=tool_name)
            problem = error.problem
            push_warning(lambda: f"tool {tool_name} failed: {problem}")
            return self._told("failed", name=tool_name, problem=problem)
        except ArgumentsError as error:
            return self._told("failed", name=tool_name, problem=error)
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)

    def _told(self, what: str, **facts: object) -> str:
        return cut(redact(self.words[what].format(**facts)))


def _schema(name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters as a JSON Schema; the form of design note 001 is read where it is not one already."""
    # A parameter of the note's form is described by a dictionary, so one called "type" is no string.
    if isinstance(parameters.get("type"), str):
        return parameters
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter, described in parameters.items():
        if not isinstance(described, Mapping):
            raise ToolDefinitionError(
                name,
                f'the parameter {parameter!r} must be described by a dictionary such as {{"type": "string"}}, '
                f"not by {cut(repr(described), 60)}.",
            )
        own = dict(cast("Mapping[str, Any]", described))
        is_optional = own.pop("optional", False)
        is_required = own.pop("required", True) if isinstance(own.get("required"), bool) else True
        properties[parameter] = own
        if is_required and not is_optional:
            required.append(parameter)
    return {"type": "object", "properties": properties, "required": required}
