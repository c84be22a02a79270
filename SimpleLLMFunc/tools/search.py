"""Tool search: of a large toolkit a model is offered one tool, which finds the others; and which texts are like another one."""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import mul
from typing import Any, Final, TypeAlias

from SimpleLLMFunc.errors import ConfigError, UsageError, cut
from SimpleLLMFunc.runtime import in_thread, off_loop_if_large
from SimpleLLMFunc.tools.running import run_callable
from SimpleLLMFunc.tools.tool import Tool
from SimpleLLMFunc.type import Message, ToolCall, content_text

FIND_TOOLS: Final = "find_tools"
_MOST_FOUND: Final = 8
_LEAST: Final = 0.4
"""Share of the best score that a tool must have: the others share some common word with the query."""
_MOST_CHARS: Final = 300

_K1 = 1.2
_B = 0.75
_LONGEST = 5_000
"""Characters of a text that are looked at."""

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+)")


Embed: TypeAlias = Callable[[Sequence[str]], Awaitable[list[list[float]]]]
"""``await embed(texts)`` gives a vector for each."""


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


# --- similar texts, without a model: for tools, and for examples in the prompt ---


class TextIndex:
    """Texts, scored by how like another one they are: by their vectors where there is an `embed`, else by their words.

    Of words are compared the word and its three-letter pieces, so that endings matter little; of Chinese, Japanese and
    Korean text, which has no spaces, single characters and pairs. A piece that many of the texts have says little. The
    same texts and the same question always give the same order.

    Source: BM25, Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), section 3.
    """

    def __init__(self, texts: Sequence[str], embed: Embed | None = None) -> None:
        self._texts = texts
        self._embed = embed
        self._vectors: list[list[float]] | None = None

    async def scores(self, text: str) -> list[float]:
        """Return a score for each of the texts, the higher the more alike; what is asked for first embeds them all."""
        if self._embed is None:
            return await off_loop_if_large(sum(map(len, self._texts)), lambda: self.by_words(text))
        if self._vectors is None:
            self._vectors = [_unit(vector) for vector in await self._embed(self._texts)]
        (asked,) = await self._embed([text])
        vectors, unit = self._vectors, _unit(asked)
        return await in_thread(lambda: [sum(map(mul, unit, vector)) for vector in vectors])

    def by_words(self, text: str) -> list[float]:
        """Return the scores by BM25; 0 for nothing in common."""
        scores = [0.0] * len(self._texts)
        for piece in dict.fromkeys(_pieces(text)):
            for number, weight in self._weights.get(piece, ()):
                scores[number] += weight
        return scores

    @cached_property
    def _weights(self) -> dict[str, list[tuple[int, float]]]:
        """What each piece says for the texts that have it, by their numbers."""
        counted = [Counter(_pieces(text)) for text in self._texts]
        lengths = [sum(counts.values()) for counts in counted]
        mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
        found_in = Counter(piece for counts in counted for piece in counts)
        weights: dict[str, list[tuple[int, float]]] = {}
        for number, counts in enumerate(counted):
            room = _K1 * (1 - _B + _B * lengths[number] / mean)
            for piece, times in counts.items():
                rarity = math.log(1 + (len(counted) - found_in[piece] + 0.5) / (found_in[piece] + 0.5))
                weights.setdefault(piece, []).append((number, rarity * times * (_K1 + 1) / (times + room)))
        return weights


def _unit(vector: list[float]) -> list[float]:
    length = math.hypot(*vector) or 1.0
    return [number / length for number in vector]


def best_of(scores: Sequence[float], count: int) -> list[int]:
    """Return the numbers of the `count` highest scores, the highest first; of equals the earlier one."""
    return heapq.nlargest(count, range(len(scores)), key=lambda number: (scores[number], -number))


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text[:_LONGEST]).casefold()):
        for number, part in enumerate(_CJK.split(word)):
            if number % 2:
                pieces += part
                pieces += (part[at : at + 2] for at in range(len(part) - 1))
            elif part:
                pieces.append(f" {part} ")
                framed = f" {part} "
                pieces += (framed[at : at + 3] for at in range(len(framed) - 2))
    return pieces
