"""How many tokens a request took."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_USAGE", "Usage"]


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
