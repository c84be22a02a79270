"""Step 4 of `@llm_function`: the doors of note 002 onto the one loop, asking again after an empty answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc.base.events import RunFinished
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ToolMap
from SimpleLLMFunc.base.run import EmptyReview, RunRecord
from SimpleLLMFunc.errors import RunError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.steps.common.react import execute_llm_call, prepare_tools_for_execution
from SimpleLLMFunc.llm_decorator.steps.common.response import extract_response_content
from SimpleLLMFunc.tools import Tool
from SimpleLLMFunc.type import ChatCompletion, Message, ToolSpec
from SimpleLLMFunc.utils import get_last_item_of_async_generator

__all__ = [
    "check_response_content_empty",
    "execute_llm_call",
    "execute_react_loop",
    "get_final_response",
    "prepare_tools_for_execution",
    "retry_llm_call",
]

DEFAULT_RETRY_TIMES = 2
"""Further attempts after an empty answer."""


async def get_final_response(response_stream: AsyncGenerator[Any, None]) -> Any:
    """Return the last response of a stream of raw responses."""
    return await get_last_item_of_async_generator(response_stream)


def check_response_content_empty(response: Any, func_name: str) -> bool:
    """Say whether a response has neither text (white space is none) nor a tool call."""
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

    Only the model is asked again, from the conversation as it stands: a tool that has run is not run twice.

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
    events = react_events(
        llm_interface,
        messages,
        tools,
        tool_map,
        max_tool_calls=max_tool_calls,
        review=EmptyReview(record := RunRecord(func_name, ""), retry_times),
        params=llm_kwargs,
        func_name=func_name,
    )
    async with aclosing(events):
        async for event in events:
            record.note(event)
            if isinstance(event, RunFinished):
                return event.reply
    raise RunError(f"{func_name}: the stream ended before the run did")


async def execute_react_loop(
    llm_interface: LLM_Interface,
    messages: list[Message],
    toolkit: Sequence[Tool | Callable[..., Any]] | None,
    max_tool_calls: int,
    llm_kwargs: Mapping[str, Any],
    func_name: str,
) -> ChatCompletion:
    """Run the loop with `toolkit` and return the final response.

    Args:
        llm_interface: the model.
        messages: the conversation; not changed.
        toolkit: tools and plain callables.
        max_tool_calls: rounds.
        llm_kwargs: go to the provider; `retry_times` among them (default 2) is ours and does not.
        func_name: for messages.

    Raises:
        EmptyResponseError: every answer was empty.
    """
    params = dict(llm_kwargs)
    retry_times = params.pop("retry_times", DEFAULT_RETRY_TIMES)
    tools, tool_map = prepare_tools_for_execution(toolkit, func_name)
    return await retry_llm_call(
        llm_interface, messages, tools, tool_map, max_tool_calls, retry_times, func_name, **params
    )
