"""Step 4, shared: the tools of a function, the one loop, and its raw view."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.ReAct import execute_llm, react_events
from SimpleLLMFunc.base.request import ModelRequest, Review, ToolMap, ToolPolicy, Toolset
from SimpleLLMFunc.base.run import Run
from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.utils import process_tools
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.tools import FIND_TOOLS, Tool, ToolSearch
from SimpleLLMFunc.type import Message, ToolSpec

MANY_TOOLS: Final = 40
"""A larger toolkit is a warning, unless `toolkit_search` is set."""


def prepare_tools_for_execution(
    toolkit: Sequence[Any] | None, func_name: str
) -> tuple[list[ToolSpec] | None, dict[str, Tool]]:
    """Return the tools in wire form (None without tools) and what runs, by the name on the wire."""
    return process_tools(toolkit, func_name)


def prepare_toolset(options: Options, func_name: str) -> Toolset:
    """Return the tools of a function, made ready once for all of its calls.

    Raises:
        ToolDefinitionError: one of them cannot be offered to a model.
    """
    toolkit, search = list(options.toolkit or ()), None
    specs, tool_map = prepare_tools_for_execution(toolkit, func_name)
    if options.toolkit_search and tool_map:
        if FIND_TOOLS in tool_map:
            told = f"toolkit_search= adds a tool of this name to {func_name}. Give yours another `name=`."
            raise ToolDefinitionError(FIND_TOOLS, told)
        embed = None if options.embeddings is None else options.embeddings.embed
        search = ToolSearch(tool_map, options.toolkit_search, embed)
        toolkit.append(search.tool)
        specs, tool_map = prepare_tools_for_execution(toolkit, func_name)
    elif len(tool_map) > MANY_TOOLS and options.toolkit_search is None:
        _warn_of_many(func_name, len(tool_map))
    strict_specs, _ = process_tools(toolkit, func_name, strict=True)
    policy = ToolPolicy(options.on_tool_error, options.max_result_chars, options.toolkit_confirm, options.tool_context)
    return Toolset(tool_map, specs, strict_specs, options.max_tool_calls, options.tools, policy, search)


@lru_cache(maxsize=1_000)
def _warn_of_many(func_name: str, count: int) -> None:
    """Say once that a toolkit is large."""
    push_warning(
        f"{func_name!r} has {count} tools, and each request holds them all. toolkit_search=True offers one tool that finds "
        "the others; toolkit_search=False leaves it at that."
    )


class Prepared(NamedTuple):
    """The arguments of the loop, as a call has prepared them.

    Attributes:
        run: in force; takes in what happens.
        request: what is sent first.
        tools: the toolkit made ready.
        review: judges every answer.
    """

    run: Run
    request: ModelRequest
    tools: Toolset
    review: Review


def react_loop_events(
    run: Run, request: ModelRequest, tools: Toolset, review: Review
) -> AsyncGenerator[ReActEvent, None]:
    """Return the events of the one loop: the request, the rounds of tools, the answer that the review accepts."""
    return react_events(request, tools, review, run)


def execute_llm_call(
    llm_interface: LLM_Interface,
    messages: list[Message],
    tools: list[ToolSpec] | None,
    tool_map: ToolMap,
    max_tool_calls: int,
    stream: bool = False,
    **llm_kwargs: Any,
) -> AsyncGenerator[Any, None]:
    """Return the stream of raw responses of one run, which adds to `messages`."""
    return execute_llm(llm_interface, messages, tools, tool_map, max_tool_calls, stream, **llm_kwargs)
