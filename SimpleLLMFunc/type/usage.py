"""How many tokens a request took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from SimpleLLMFunc.type.wire import count, mapping, mappings
from SimpleLLMFunc.utils import set_fields


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several requests; adds up with ``+``.

    Attributes:
        input_tokens: tokens the model read, cached ones included.
        output_tokens: tokens the model wrote, reasoning ones included.
        cached_tokens: the part of `input_tokens` that came from the provider's cache.
        reasoning_tokens: the part of `output_tokens` that was reasoning.
        cost: USD, None when unknown. A sum is unknown as soon as one part is, parts without tokens excepted.
        cache_write_tokens: the part of `input_tokens` that was written into the provider's cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    cache_write_tokens: int = 0

    __setstate__ = set_fields

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return Usage(cost=_sum_of_costs(self, other), **counts)

    def __radd__(self, other: object) -> Usage:
        # sum() starts from 0
        return self if other == 0 else NotImplemented


_COUNTS = [each.name for each in fields(Usage) if each.name != "cost"]


def _sum_of_costs(*parts: Usage) -> float | None:
    costs = [part.cost for part in parts if part.total_tokens or part.cost is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


_READ = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")
"""The tokens of the cache, in the words of OpenAI and those who follow it: Moonshot, Together, DeepSeek, LiteLLM, DashScope."""

NO_USAGE = Usage()
"""Usage of a run that has not asked yet."""


@dataclass(frozen=True, slots=True)
class CompletionUsage:
    """Token counts with the names of the wire; `tokens` gives them as a `Usage`.

    Attributes:
        cost: USD, where the maker of the reply knows it; never on the wire.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    cache_write_tokens: int = 0

    __setstate__ = set_fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompletionUsage:
        """Read the usage of a reply; what is missing counts as 0."""
        prompt, completion = count(data, "prompt_tokens"), count(data, "completion_tokens")
        read, written = data.get("prompt_tokens_details"), data.get("completion_tokens_details")
        return cls(
            prompt,
            completion,
            total_tokens=count(data, "total_tokens") or prompt + completion,
            cached_tokens=max(count(place, name) for place in (read, data) for name in _READ),
            reasoning_tokens=count(written, "reasoning_tokens") or count(data, "reasoning_tokens"),
            cache_write_tokens=max(count(place, name) for place in (read, data) for name in _WRITTEN),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as a reply holds it."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
            "prompt_tokens_details": {
                "cached_tokens": self.cached_tokens,
                **({"cache_write_tokens": self.cache_write_tokens} if self.cache_write_tokens else {}),
            },
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }

    @property
    def tokens(self) -> Usage:
        """The same counts under our names.

        Some services (Gemini, xAI) leave the reasoning out of `completion_tokens` and show it in the total alone; it is
        written and paid like the rest.
        """
        unnamed = max(0, self.total_tokens - self.prompt_tokens - self.completion_tokens)
        written, thought = self.completion_tokens + unnamed, self.reasoning_tokens or unnamed
        return Usage(self.prompt_tokens, written, self.cached_tokens, thought, self.cost, self.cache_write_tokens)


def usage_of(data: Mapping[str, Any]) -> CompletionUsage | None:
    """Return the usage of a reply or chunk, from the places where providers put it."""
    # Groq puts it under its own field, Moonshot into the last choice of a stream.
    for place in (data, mapping(data.get("x_groq")), *mappings(data.get("choices"))):
        if isinstance(usage := place.get("usage"), Mapping):
            return CompletionUsage.from_dict(usage)
    return None
