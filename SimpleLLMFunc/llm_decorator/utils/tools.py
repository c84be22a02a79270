"""A toolkit → its wire form, and the tools that run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.tools import Tool, ToolRegistry, as_tool
from SimpleLLMFunc.type import ToolSpec


def process_tools(
    toolkit: Sequence[Any] | None, func_name: str, *, strict: bool = False
) -> tuple[list[ToolSpec] | None, dict[str, Tool]]:
    """Return the tools as the provider wants them, and the tools by their names on the wire.

    Args:
        toolkit: tools, decorated functions, plain callables, and dicts: what the service has and runs by itself, in its
            own form. None and the empty list offer nothing.
        func_name: whose toolkit it is, for messages.
        strict: show the form that holds a model to the schema, where a tool has one.

    Raises:
        ToolDefinitionError: one is not usable as a tool, or two have one name.
    """
    tools = ToolRegistry()
    own: list[ToolSpec] = []
    for candidate in toolkit or ():
        is_bare = isinstance(candidate, dict) and candidate and "function" not in candidate
        if is_bare and candidate.get("type") != "function":
            own += copied([candidate])  # the service's, which it runs by itself
            continue
        made = as_tool(candidate, where=f"toolkit of {func_name}" if func_name else "toolkit")
        if made.name in tools.names():
            raise ToolDefinitionError(made.name, f"{func_name} has two tools of this name. Rename one: @tool(name=…).")
        tools.register(made)
    return [*tools.get_tool_definitions(strict=strict), *own] or None, tools.tool_map()
