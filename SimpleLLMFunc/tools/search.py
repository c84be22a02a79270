"""Tool search: of a large toolkit a model is offered one tool, which finds the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from SimpleLLMFunc.errors import ConfigError, UsageError, cut
from SimpleLLMFunc.tools.running import run_callable
from SimpleLLMFunc.tools.similar_texts import Embed, TextIndex, best_of
from SimpleLLMFunc.tools.tool import Tool
from SimpleLLMFunc.type import Message, ToolCall, content_text

FIND_TOOLS: Final = "find_tools"
_MOST_FOUND: Final = 8
_LEAST: Final = 0.4
"""Share of the best score that a tool must have: the others share some common word with the query."""
_MOST_CHARS: Final = 300


class ToolSearch:
    """Finds tools by what they do, and knows from a conversation which ones were found in it.

    Args:
        tools: those that can be found, by their names on the wire.
        how: True for a search of names and descriptions; or a function ``(query, tools) -> [tool or name, …]``, sync or
            async, the best first.
        embed: compares texts by vectors; None by BM25.

    Attributes:
        tool: what the model is offered.
    """

    def __init__(self, tools: Mapping[str, Tool], how: bool | Callable[..., Any], embed: Embed | None = None) -> None:
        if how is not True and not callable(how):
            raise ConfigError(f"toolkit_search is True or a function (query, tools), not {how!r}.")
        self._tools = tools
        self._how = None if isinstance(how, bool) else how
        self._index = TextIndex([_text_of(name, tool) for name, tool in tools.items()], embed)
        self.tool = Tool(
            self.find,
            FIND_TOOLS,
            f"Find tools by what they do: there are {len(tools)}, and only those found can be called, from the next turn "
            "on. Say what you want to do.",
        )

    async def find(self, query: str) -> str:
        """Return a line for each tool found, the best first: its name, a colon, its description."""
        if self._how is not None:
            found = self._names(await run_callable(self._how, [query, list(self._tools.values())], {}))
        else:
            scores, names = await self._index.scores(query), list(self._tools)
            least = _LEAST * max(scores)
            found = [names[number] for number in best_of(scores, _MOST_FOUND) if scores[number] > least]
        lines = [f"{name}: {cut(' '.join(self._tools[name].description.split()), _MOST_CHARS)}" for name in found]
        return "\n".join(lines) or "No tool fits. Say it in other words, or answer without a tool."

    def found_in(self, messages: Iterable[Message]) -> list[str]:
        """Return the names of the tools that searches in the conversation found, and of those that were called."""
        found: dict[str, None] = {}
        searches: set[str] = set()
        for message in messages:
            told: Mapping[str, Any] = message
            for call in map(ToolCall.from_dict, told.get("tool_calls") or ()):
                found[call.function.name] = None
                if call.function.name == FIND_TOOLS:
                    searches.add(call.id)
            if told.get("tool_call_id") in searches:
                lines = (content_text(told.get("content")) or "").splitlines()
                found |= dict.fromkeys(line.partition(":")[0] for line in lines)
        return [name for name in found if name in self._tools]

    def _names(self, found: Any) -> list[str]:
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise UsageError(
                f"toolkit_search returned a {type(found).__name__}. It must return a list of tools or of their names."
            )
        own = {tool.name: name for name, tool in self._tools.items()}
        names = [each.name if isinstance(each, Tool) else each for each in found]
        unknown = [name for name in names if name not in own and name not in self._tools]
        if unknown:
            raise UsageError(f"toolkit_search returned {unknown[0]!r}, which is not in the toolkit.")
        return [own.get(name, name) for name in names]


def _text_of(name: str, tool: Tool) -> str:
    parameters = [f"{each} {about.get('description', '')}" for each, about in tool.parameters["properties"].items()]
    return " ".join((name, tool.description, *parameters)).replace("_", " ")
