"""`LLMCaller`: how the assistant asks its model; two views of the one loop."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from SimpleLLMFunc.assistant.tools import ToolInvoker
from SimpleLLMFunc.base.events import ReActEvent, ReplyReceived
from SimpleLLMFunc.base.metadata import FunctionFacts, RunFacts, function_version
from SimpleLLMFunc.base.ReAct import model_turn, react_events
from SimpleLLMFunc.base.request import ModelRequest, Review, ToolPolicy
from SimpleLLMFunc.base.run import Recording, RunRecord, json_actions, names_refusal, remember_refusal
from SimpleLLMFunc.errors import BadRequest, RunError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.llm_decorator.steps.chat.fit import fits, room_for_input, trimmed
from SimpleLLMFunc.tools import read_arguments
from SimpleLLMFunc.tools.schemas import ArgumentsError
from SimpleLLMFunc.type import Message, ToolCall, ToolSpec
from SimpleLLMFunc.utils import in_context

__all__ = ["LLMCaller"]

FUNC_NAME = "assistant"


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
        request = ModelRequest(list(messages), list(tools or ()) or None, params=self.params)
        async with aclosing(model_turn(resolve_llm(self.llm), request, 1, stream=False)) as events:
            async for event in events:
                if isinstance(event, ReplyReceived):
                    return {
                        "content": event.reply.text,
                        "tool_calls": [_shown(call) for call in event.reply.tool_calls],
                    }
        raise RunError(f"{FUNC_NAME}: the reply did not arrive")

    def events(
        self,
        messages: list[Message],
        invoker: ToolInvoker,
        record: RunRecord,
        review: Review,
        *,
        stream: bool,
        context: Any = None,
        about: RunFacts | None = None,
    ) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of one whole run: tools run, their results go back, up to the answer.

        Args:
            messages: the conversation with the new question.
            invoker: its tools are offered.
            record: reads the events.
            review: judges an answer.
            stream: ask for the answer in pieces.
            context: what the tools' `ToolContext` has as `context`.
            about: the question and whose it is, for those who watch; the tools are filled in.
        """

        async def begin(clock: Deadline) -> AsyncGenerator[ReActEvent, None]:
            llm = resolve_llm(self.llm)
            specs = invoker.get_tool_definitions() or None
            fitting = messages
            if llm.context_window is not None:
                room = room_for_input(llm.context_window, self.params)
                fitting = messages if fits(messages, specs, room) else trimmed(messages, specs, room, FUNC_NAME)

            def refused(error: BadRequest, request: ModelRequest) -> ModelRequest | None:
                if request.tools is None or request.actions or not names_refusal(error, "tool"):
                    return None
                remember_refusal(llm, "tools")
                return replace(request, actions=json_actions(llm, specs))

            return react_events(
                llm,
                fitting,
                specs,
                invoker.tool_map(),
                max_tool_calls=self.max_tool_rounds,
                stream=stream,
                review=review,
                refused=refused,
                actions=json_actions(llm, specs),
                params=self.params,
                policy=ToolPolicy(confirm=self.confirm, context=context, words=invoker.words),
                deadline=clock,
                trace_id=record.trace_id,
                func_name=FUNC_NAME,
            )

        def facts() -> RunFacts:
            told = about or RunFacts(FunctionFacts(FUNC_NAME, "assistant"))
            tools = invoker.get_tool_definitions()
            version = function_version(told.function.docstring, "", None, tools)
            return replace(told, function=replace(told.function, tools=tools, version=version))

        return in_context(Recording(record, begin, facts=facts).events(), contextvars.copy_context())


def _shown(call: ToolCall) -> dict[str, Any]:
    arguments: Any = call.function.arguments
    with suppress(ArgumentsError):
        arguments = read_arguments(arguments)
    return {"id": call.id, "name": call.function.name, "arguments": arguments}
