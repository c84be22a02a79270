"""How many tokens a request took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.type.wire import count, mappings

__all__ = ["NO_USAGE", "CompletionUsage", "Usage", "usage_of"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several requests; adds up with ``+``.

    Attributes:
        input_tokens: tokens the model read, cached ones included.
        output_tokens: tokens the model wrote, reasoning ones included.
        cached_tokens: the part of `input_tokens` that came from the provider's cache.
        reasoning_tokens: the part of `output_tokens` that was reasoning.
        cost: USD, None when unknown. A sum is unknown as soon as one part is, parts without tokens excepted.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            _sum_of_costs(self, other),
        )

    def __radd__(self, other: object) -> Usage:
        # sum() starts from 0
        return self if other == 0 else NotImplemented


def _sum_of_costs(left: Usage, right: Usage) -> float | None:
    known = [part.cost for part in (left, right) if part.cost is not None or part.total_tokens]
    if not known or None in known:
        return None
    return sum(cost for cost in known if cost is not None)


NO_USAGE = Usage()
"""Of whatever has taken nothing so far: one object for all."""


@dataclass(frozen=True, slots=True)
class CompletionUsage:
    """Token counts with the names of the wire; `tokens` gives them as a `Usage`.

    Attributes:
        cost: USD, where whoever made the reply knows it; never on the wire.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompletionUsage:
        """Read the usage of a reply; what is missing counts as 0."""
        prompt, completion = count(data, "prompt_tokens"), count(data, "completion_tokens")
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=count(data, "total_tokens") or prompt + completion,
            cached_tokens=count(data.get("prompt_tokens_details"), "cached_tokens")
            or count(data, "prompt_cache_hit_tokens"),
            reasoning_tokens=count(data.get("completion_tokens_details"), "reasoning_tokens"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as it stands in a reply."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }

    @property
    def tokens(self) -> Usage:
        """The same counts under our names.

        Some services (Gemini, xAI) leave the reasoning out of `completion_tokens` and show it in the total alone; it is
        written and paid like the rest.
        """
        output = max(self.completion_tokens, self.total_tokens - self.prompt_tokens)
        reasoning = self.reasoning_tokens or output - self.completion_tokens
        return Usage(self.prompt_tokens, output, self.cached_tokens, reasoning, self.cost)


def usage_of(data: Mapping[str, Any]) -> CompletionUsage | None:
    """Return the usage of a reply or chunk, from the places where providers put it."""
    usage = data.get("usage")
    if not isinstance(usage, Mapping):
        groq = data.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, Mapping) else None
    if not isinstance(usage, Mapping):
        # Moonshot puts it into the last choice of a stream.
        usage = next((choice["usage"] for choice in mappings(data.get("choices")) if choice.get("usage")), None)
    return CompletionUsage.from_dict(usage) if isinstance(usage, Mapping) else None
