"""The five steps of a call of an `@llm_chat`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import EmptyReview
from SimpleLLMFunc.errors import ConfigError, RunAborted
from SimpleLLMFunc.interface.http.openai_client import to_openai
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.definition import Definition
from SimpleLLMFunc.llm_decorator.pipeline import Pipeline
from SimpleLLMFunc.llm_decorator.steps.chat import message, react, response
from SimpleLLMFunc.llm_decorator.steps.common import log_context
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.react import Prepared, react_loop_events
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.runtime import import_module, run_sync
from SimpleLLMFunc.type import Message
from SimpleLLMFunc.utils import in_context


class ChatPipeline(Pipeline):
    """An `@llm_chat`: the five steps, and the two views of them.

    Step 1 binds the arguments where the chat is called; the others follow when a view is read.
    """

    kind = "chat"

    def __init__(self, definition: Definition, options: Options) -> None:
        super().__init__(definition, options)
        if options.return_mode == "raw" and self.guards.judge_values:
            raise ConfigError(
                "guards of the value see the whole text first; leave out return_mode='raw', or the guards."
            )

    @property
    def history_param(self) -> str | None:
        """The parameter that takes the history, or None."""
        return message.find_history_param(self.definition.signature.parameters)

    # --- steps 2 to 5 ---

    async def _events(self, run: FunctionRun) -> AsyncGenerator[ReActEvent, None]:
        async with log_context.setup_log_context(run.func_name, run.trace_id, run.arguments), run:  # 2
            await self.guard(run)
            request = await message.first_request(run, self.options, self.tools)  # 3
            review = EmptyReview(run, self.tools, retry_times=self.options.retry_times, guards=self.guards)
            async with aclosing(react_loop_events(run, request, self.tools, review)) as events:  # 4
                async for event in events:
                    yield event

    async def _pairs(self, run: FunctionRun) -> AsyncGenerator[tuple[Any, list[Message]], None]:
        options, messages = self.options, list[Message]()
        is_raw = options.return_mode == "raw"
        if is_raw:
            await import_module("openai.types.chat")  # takes the better part of a second
        try:
            async with log_context.setup_log_context(run.func_name, run.trace_id, run.arguments), run:  # 2
                await self.guard(run)
                request = await message.first_request(run, options, self.tools)  # 3
                messages += request.messages
                review = EmptyReview(run, self.tools, retry_times=options.retry_times, guards=self.guards)
                responses = react.execute_react_loop_streaming(  # 4
                    request.llm,
                    messages,
                    options.toolkit,
                    options.max_tool_calls,
                    options.stream,
                    run.params,
                    run.func_name,
                    prepared=Prepared(run, request, self.tools, review),
                )
                pairs = response.process_chat_response_stream(  # 5
                    responses, options.return_mode, messages, run.func_name, options.stream
                )
                async with aclosing(pairs):
                    async for content, history in pairs:
                        if not self.guards.judge_values:
                            yield (to_openai(content) if is_raw else content), history
            if self.guards.judge_values and run.reply is not None:
                yield run.reply.text, copied(messages)  # a guard had to see all of it first
                yield "", copied(messages)
        except RunAborted:
            if not is_raw:
                # Ended, not failed: the history holds what had arrived, or is as it was where a guard was still looking.
                yield "", copied(messages or message.extract_conversation_history(run.arguments, run.func_name) or [])

    # --- the views ---

    def events_of(self, run: FunctionRun) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of a run that `start` gave."""
        return in_context(self._events(run), run.context)

    def pairs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Return the ``(content, history)`` pairs of a call."""
        run = self.start(args, kwargs, stream=self.options.stream)
        return in_context(self._pairs(run), run.context)

    def planned(self, run: FunctionRun, llm: LLM_Interface) -> ModelRequest:
        """Return what the run would send first."""
        request = message.build_request(run, self.options, self.tools, llm)
        if llm.context_window is None:
            return request
        return run_sync(message.fitted(request, self.options, run.func_name))
