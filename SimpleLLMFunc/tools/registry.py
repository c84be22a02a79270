"""`ToolRegistry`: tools by name, for code that runs a conversation by hand."""

from __future__ import annotations

from typing import Any

from SimpleLLMFunc.errors import ToolDefinitionError, ToolFailed, UsageError
from SimpleLLMFunc.logger import redacted_cause, shown_error
from SimpleLLMFunc.tools.running import run_callable
from SimpleLLMFunc.tools.tool import Tool, as_tool
from SimpleLLMFunc.tools.wire import wire_names
from SimpleLLMFunc.type import ToolSpec


class ToolRegistry:
    """Tools, each under its own name."""

    def __init__(self, *tools: Any) -> None:
        self._tools: dict[str, Tool] = {}
        for candidate in tools:
            self.register(candidate)

    def register(self, candidate: Any, /, *, replace: bool = False) -> Tool:
        """Add a tool, a decorated function or a plain callable, and return it as a `Tool`.

        Args:
            candidate: the tool.
            replace: it takes the place of one that has its name.

        Raises:
            ToolDefinitionError: not usable as a tool, or the name is taken.
        """
        made = as_tool(candidate, where="registry")
        if made.name in self._tools and not replace:
            raise ToolDefinitionError(made.name, "a tool of this name is registered already. Give it another `name=`.")
        self._tools[made.name] = made
        return made

    def names(self) -> list[str]:
        """Return the names, in the order of registration."""
        return list(self._tools)

    def get_tool_definitions(self, *, strict: bool = False) -> list[ToolSpec]:
        """Return the tools as providers want them, each under a name they take; `invoke` knows both names.

        With `strict` a tool that has one shows the form that holds a model to its schema.
        """
        definitions = [made.to_openai_tool(strict=strict) for made in self._tools.values()]
        for definition, name in zip(definitions, wire_names(self._tools).values(), strict=True):
            definition["function"]["name"] = name
        return definitions

    def tool_map(self) -> dict[str, Tool]:
        """Return the tools by their names on the wire: what a run takes as its `tool_map`."""
        return {wire: self._tools[own] for own, wire in wire_names(self._tools).items()}

    async def invoke(self, name: str, /, **arguments: Any) -> Any:
        """Run a tool and return what it returns; the arguments are validated and converted first.

        The caller has decided: `confirm` and `timeout` are for the calls of a model. The name is
        positional-only, so that a tool may have a parameter called `name`.

        Raises:
            UsageError: no tool has this name.
            ArgumentsError: the arguments do not fit.
            ToolFailed: the tool raised; its own exception is the `__cause__`.
        """
        made = self._tools.get(name, self.tool_map().get(name))
        if made is None:
            raise UsageError(f"no tool is named {name!r}. There are: {', '.join(self._tools) or 'none'}.")
        args, kwargs = made.bind(arguments)
        try:
            return await run_callable(made.func, args, kwargs)
        except Exception as error:  # noqa: BLE001 - raised again below, as ours
            failure = ToolFailed(name, shown_error(error))
            cause = redacted_cause(error)
        # Not inside the block above: the original would stay as the context, secrets and all.
        raise failure from cause
