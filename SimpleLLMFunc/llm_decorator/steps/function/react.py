"""Step 4 of `@llm_function`: the one loop, read to its last reply."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.base.events import ReActEvent, RunFinished, RunStarted
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.request import ModelRequest, Review, ToolMap, Toolset
from SimpleLLMFunc.base.run import AnswerReview, EmptyReview, Run, generate_trace_id
from SimpleLLMFunc.errors import RunError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.steps.common.log_context import create_log_context_manager
from SimpleLLMFunc.llm_decorator.steps.common.react import (
    Prepared,
    execute_llm_call,  # noqa: F401 - design note 002 names it in this step
    prepare_tools_for_execution,
    react_loop_events,
)
from SimpleLLMFunc.llm_decorator.steps.common.response import extract_response_content
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, ChatMessage, Choice, Message, ToolSpec
from SimpleLLMFunc.utils import get_last_item_of_async_generator

DEFAULT_RETRY_TIMES = 2
"""Further attempts after an empty answer."""


async def get_final_response(response_stream: AsyncGenerator[Any, None]) -> Any:
    """Return the last item of a stream: of raw responses, or of events."""
    return await get_last_item_of_async_generator(response_stream)


def check_response_content_empty(response: Any, func_name: str) -> bool:
    """Say whether a response has neither text (white space does not count) nor a tool call."""
    choices = getattr(response, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    return not extract_response_content(response, func_name).strip() and not getattr(message, "tool_calls", None)


async def retry_llm_call(
    llm_interface: LLM_Interface,
    messages: list[Message],
    tools: list[ToolSpec] | None,
    tool_map: ToolMap,
    max_tool_calls: int,
    retry_times: int,
    func_name: str,
    **llm_kwargs: Any,
) -> ChatCompletion:
    """Ask until the answer is not empty and return it.

    Only the model is asked again, from the current conversation: a tool that has run is not run twice.

    Args:
        llm_interface: the model.
        messages: the conversation; not changed.
        tools: in wire form.
        tool_map: what runs, by the name on the wire.
        max_tool_calls: rounds.
        retry_times: further attempts; 2 is at most three, 0 is one.
        func_name: for messages.
        **llm_kwargs: go to the provider.

    Raises:
        EmptyResponseError: every answer was empty.
    """
    trace_id = generate_trace_id(func_name)
    async with create_log_context_manager(func_name, trace_id), Run(func_name, trace_id) as run:
        request = ModelRequest(llm_interface, messages, tools, params=llm_kwargs)
        toolset = Toolset(tool_map, tools, max_rounds=max_tool_calls)
        return await _final_reply(Prepared(run, request, toolset, EmptyReview(run, toolset, retry_times=retry_times)))


async def execute_react_loop(
    llm_interface: LLM_Interface,
    messages: list[Message],
    toolkit: Sequence[Any] | None,
    max_tool_calls: int,
    llm_kwargs: Mapping[str, Any],
    func_name: str,
    *,
    prepared: Prepared | None = None,
) -> ChatCompletion:
    """Run the loop with the tools and return the final response.

    A call gives `prepared`, which holds what is in the other arguments; without it the loop asks again for nothing but an
    empty answer.

    Args:
        llm_interface: the model.
        messages: the conversation; not changed.
        toolkit: tools and plain callables.
        max_tool_calls: rounds.
        llm_kwargs: go to the provider; `retry_times` among them (default 2) is ours and does not.
        func_name: for messages.
        prepared: by a call.

    Raises:
        EmptyResponseError: every answer was empty.
    """
    if prepared is not None:
        return await _final_reply(prepared)
    params = dict(llm_kwargs)
    retry_times = params.pop("retry_times", DEFAULT_RETRY_TIMES)
    specs, tool_map = prepare_tools_for_execution(toolkit, func_name)
    return await retry_llm_call(
        llm_interface, messages, specs, tool_map, max_tool_calls, retry_times, func_name, **params
    )


def answer_events(run: Run, request: ModelRequest, tools: Toolset, review: Review) -> AsyncGenerator[ReActEvent, None]:
    """Return the events of the one loop; where there is but one label to choose, nothing is asked."""
    if request.output_mode == "choice" and isinstance(review, AnswerReview) and len(review.spec.labels) == 1:
        return _only_label(run, request, review)
    return react_loop_events(run, request, tools, review)


async def _only_label(run: Run, request: ModelRequest, review: AnswerReview) -> AsyncGenerator[ReActEvent, None]:
    reply = ChatCompletion((Choice(ChatMessage(content=next(iter(review.spec.labels))), 0, "stop"),), tries=0)
    run.asks(request)
    yield run.tell(RunStarted(run.trace_id, copied(request.messages)))
    await review(reply, request.messages)
    yield run.tell(RunFinished(reply, copied(request.messages), NO_USAGE, 0))


async def _final_reply(prepared: Prepared) -> ChatCompletion:
    """Return the reply that the run ended with."""
    found = await get_final_response(answer_events(*prepared))
    if not isinstance(found, RunFinished):
        raise RunError(f"{prepared.run.func_name}: the stream ended before the run did")
    return found.reply
