"""What a map can be told, checked when it is told."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.batch.pace import concurrency_of
from SimpleLLMFunc.batch.progress import Progress
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.budget import Spent
from SimpleLLMFunc.interface.budget import budget as budget_scope
from SimpleLLMFunc.interface.deadline import Deadline

__all__ = ["Budget", "Engine", "MapOptions"]

Engine: TypeAlias = Literal["local", "ray", "openai-batch"]
"""Where a map runs."""

Budget: TypeAlias = float | Mapping[str, float] | AbstractContextManager[Spent]
"""USD; or limits by name (usd, tokens, requests, seconds); or what `budget(...)` returns."""


@dataclass(frozen=True, slots=True)
class MapOptions:
    """The arguments of a map, checked; see `map_rows`."""

    concurrency: int | Literal["auto"] = "auto"
    checkpoint: str | PathLike[str] | None = None
    on_error: Literal["keep", "raise"] = "keep"
    budget: Budget | None = None
    progress: Progress = None
    retry_errors: bool = False
    deadline: float | None = None

    def __post_init__(self) -> None:
        concurrency_of(self.concurrency)
        if self.on_error not in {"keep", "raise"}:
            raise UsageError(f'on_error is "keep" or "raise", not {self.on_error!r}.')
        Deadline.after(self.deadline)

    def budget_scope(self) -> AbstractContextManager[Spent | None]:
        """Return the scope that keeps the budget.

        Raises:
            UsageError: it is none.
        """
        given: Any = self.budget
        if given is None:
            return nullcontext()
        if isinstance(given, AbstractContextManager):
            return given
        if isinstance(given, Mapping):
            if unknown := sorted(map(str, given.keys() - {"usd", "tokens", "requests", "seconds"})):
                raise UsageError(f"a budget has usd, tokens, requests and seconds, not {', '.join(unknown)}.")
            return budget_scope(**given)
        return budget_scope(usd=given)
