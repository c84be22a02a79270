"""`LLMCaller`: how the assistant asks its model, two views of the one loop; `Turn`: what its user sees of one question."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, TypeAlias, assert_never

from SimpleLLMFunc.assistant.search.search import SearchReview
from SimpleLLMFunc.assistant.tools import ToolInvoker
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
from SimpleLLMFunc.base.metadata import RunMetadata, function_version
from SimpleLLMFunc.base.ReAct import model_turn, react_events
from SimpleLLMFunc.base.request import ModelRequest, Review, ToolPolicy, Toolset
from SimpleLLMFunc.base.run import Run, downgrades_of, generate_trace_id, json_actions
from SimpleLLMFunc.errors import RunError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.steps.chat.message import fitted
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.logger import async_log_context
from SimpleLLMFunc.tools import read_arguments
from SimpleLLMFunc.tools.schemas import ArgumentsError
from SimpleLLMFunc.type import Message, ToolCall, ToolSpec

FUNC_NAME = "assistant"

StreamItem: TypeAlias = str | ToolCallStarted | ToolCallFinished | dict[str, Any]
"""What `stream_query` yields: pieces of text, starts and ends of tools, and last the result."""


class LLMCaller:
    """Asks the assistant's model.

    Args:
        llm: the model; None takes the current one at each call.
        params: go to the provider with each request.
        max_tool_rounds: rounds of tool calls in one answer.
        confirm: asked before a tool marked `confirm=True` runs.
    """

    def __init__(
        self,
        llm: LLM_Interface | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        max_tool_rounds: int = 5,
        confirm: Any = None,
    ) -> None:
        self.llm = llm
        self.params = dict(params or {})
        self.max_tool_rounds = max_tool_rounds
        self.confirm = confirm

    async def invoke(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None) -> dict[str, Any]:
        """Ask once and return the reply: ``{"content": text, "tool_calls": [{"id", "name", "arguments"}, …]}``.

        Arguments that are no JSON object are given as their text. No tool runs.

        Raises:
            ProviderError: the service failed or refused.
        """
        request = ModelRequest(resolve_llm(self.llm), list(messages), list(tools or ()) or None, params=self.params)
        async with aclosing(model_turn(Run(FUNC_NAME), request, 1)) as events:
            async for event in events:
                if isinstance(event, ReplyReceived):
                    return {
                        "content": event.reply.text,
                        "tool_calls": [shown_call(call) for call in event.reply.tool_calls],
                    }
        raise RunError(f"{FUNC_NAME}: the reply did not arrive")

    def toolset(self, invoker: ToolInvoker, context: Any = None) -> Toolset:
        """Return the tools of one run; their `ToolContext` has `context`."""
        policy = ToolPolicy(confirm=self.confirm, context=context, words=invoker.words)
        specs = invoker.get_tool_definitions() or None
        return Toolset(invoker.tool_map(), specs, max_rounds=self.max_tool_rounds, policy=policy)

    def run(self, about: RunMetadata, tools: Toolset, *, stream: bool) -> Run:
        """Return the run of one question.

        Args:
            about: the question and whose it is, for those who watch; the tools are filled in.
            tools: what is offered.
            stream: ask for the answer in pieces.
        """
        specs = tools.specs or []
        version = function_version(about.function.docstring, "", None, specs)
        about = replace(about, function=replace(about.function, tools=specs, version=version))
        return Run(FUNC_NAME, generate_trace_id(FUNC_NAME), stream=stream, about=about)

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
            case RunStarted() | ReplyReceived() | ToolCallProgress():
                pass
            case TryFailed() | AnswerReviewed() | RunFailed():
                pass  # shown to sinks only
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
