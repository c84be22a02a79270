"""Step 4 of `@llm_chat`: the one loop, read as the stream of its raw responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.base.ReAct import raw_responses
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.steps.common.react import (
    Prepared,
    execute_llm_call,
    prepare_tools_for_execution,
    react_loop_events,
)
from SimpleLLMFunc.type import Message


def execute_react_loop_streaming(
    llm_interface: LLM_Interface,
    messages: list[Message],
    toolkit: Sequence[Any] | None,
    max_tool_calls: int,
    stream: bool,
    llm_kwargs: Mapping[str, Any],
    func_name: str,
    *,
    prepared: Prepared | None = None,
) -> AsyncGenerator[Any, None]:
    """Return the raw responses of one run: whole replies, or chunks when streaming.

    The run adds to `messages` before the next response. A call gives `prepared`, which holds what is in the other
    arguments; without it nothing is asked again.

    Args:
        llm_interface: the model.
        messages: the conversation.
        toolkit: tools and plain callables.
        max_tool_calls: rounds.
        stream: yield chunks.
        llm_kwargs: go to the provider.
        func_name: for messages.
        prepared: by a call.
    """
    if prepared is not None:
        return raw_responses(react_loop_events(*prepared), messages, stream=stream)
    specs, tool_map = prepare_tools_for_execution(toolkit, func_name)
    return execute_llm_call(llm_interface, messages, specs, tool_map, max_tool_calls, stream=stream, **dict(llm_kwargs))
