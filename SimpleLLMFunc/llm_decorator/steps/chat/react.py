"""Step 4 of `@llm_chat`: the stream of raw responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.steps.common.react import execute_llm_call, prepare_tools_for_execution
from SimpleLLMFunc.tools import Tool
from SimpleLLMFunc.type import Message

__all__ = ["execute_llm_call", "execute_react_loop_streaming", "prepare_tools_for_execution"]


async def execute_react_loop_streaming(
    llm_interface: LLM_Interface,
    messages: list[Message],
    toolkit: Sequence[Tool | Callable[..., Any]] | None,
    max_tool_calls: int,
    stream: bool,
    llm_kwargs: Mapping[str, Any],
    func_name: str,
) -> AsyncGenerator[Any, None]:
    """Yield the raw responses of one run: whole replies, or chunks when streaming.

    `messages` grows by what the run adds, before the response that follows.
    """
    tools, tool_map = prepare_tools_for_execution(toolkit, func_name)
    responses = execute_llm_call(
        llm_interface, messages, tools, tool_map, max_tool_calls, stream=stream, **dict(llm_kwargs)
    )
    async with aclosing(responses):
        async for response in responses:
            yield response
