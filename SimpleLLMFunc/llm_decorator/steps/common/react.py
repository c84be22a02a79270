"""Step 4, shared: the tools of a call, and the raw view of the one loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from SimpleLLMFunc.base.ReAct import execute_llm
from SimpleLLMFunc.base.request import ToolMap
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.utils import process_tools
from SimpleLLMFunc.tools import Tool
from SimpleLLMFunc.type import Message, ToolSpec

__all__ = ["execute_llm_call", "prepare_tools_for_execution"]


def prepare_tools_for_execution(
    toolkit: Sequence[Tool | Callable[..., Any]] | None, func_name: str
) -> tuple[list[ToolSpec] | None, dict[str, Tool]]:
    """Return the tools in wire form (None where there are none) and what runs, by the name on the wire."""
    return process_tools(toolkit, func_name)


def execute_llm_call(
    llm_interface: LLM_Interface,
    messages: list[Message],
    tools: list[ToolSpec] | None,
    tool_map: ToolMap,
    max_tool_calls: int,
    stream: bool = False,
    **llm_kwargs: Any,
) -> AsyncGenerator[Any, None]:
    """Return the stream of raw responses of one run; `messages` grows by what the run adds."""
    return execute_llm(
        llm_interface=llm_interface,
        messages=messages,
        tools=tools,
        tool_map=tool_map,
        max_tool_calls=max_tool_calls,
        stream=stream,
        **llm_kwargs,
    )
