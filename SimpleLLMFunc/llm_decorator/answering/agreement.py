"""Count how often plain code and a model agree."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from SimpleLLMFunc.runtime import ForkSafeLock

_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A call that plain code and the model answered differently."""

    arguments: Mapping[str, Any]
    code: Any
    model: Any
    source: Literal["first", "fallback"] = "first"


class Agreement:
    """Counts of the calls that plain code and the model answered, and of their agreement.

    Attributes:
        by_first, by_model, by_fallback: calls that each of them answered.
        compared: calls in which both were asked (a share of `sample`).
        agreed: those in which both said the same.
        failed: those in which the one that was only asked to compare failed.
        disagreements: the latest hundred.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self.by_first = self.by_model = self.by_fallback = 0
        self.compared = self.agreed = self.failed = 0
        self.disagreements: deque[Disagreement] = deque(maxlen=_SHOWN)

    @property
    def rate(self) -> float | None:
        """Share of the compared calls in which both said the same; None where none was compared."""
        return self.agreed / self.compared if self.compared else None

    def count(self, source: Literal["first", "model", "fallback"]) -> None:
        """Count a call that was answered."""
        with self._lock:
            name = f"by_{source}"
            setattr(self, name, getattr(self, name) + 1)

    def count_failure(self) -> None:
        """Count a comparison that could not be made."""
        with self._lock:
            self.failed += 1

    def compare(self, disagreement: Disagreement, *, is_same: bool) -> None:
        """Count a call that both answered."""
        with self._lock:
            self.compared += 1
            if is_same:
                self.agreed += 1
            else:
                self.disagreements.append(disagreement)

    def __repr__(self) -> str:
        rate = "" if self.rate is None else f", {self.agreed} of {self.compared} compared agree ({self.rate:.1%})"
        by = f"{self.by_first} by code, {self.by_model} by the model, {self.by_fallback} by the fallback"
        return f"<Agreement: {by}{rate}>"
