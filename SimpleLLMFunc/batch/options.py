"""What a map can be told, checked when it is told."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, TypeAlias, cast

from SimpleLLMFunc.batch.pace import concurrency_of
from SimpleLLMFunc.batch.progress import Progress
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.spending import Deadline, Spent
from SimpleLLMFunc.interface.spending import budget as budget_scope

__all__ = ["Budget", "Engine", "EngineName", "MapOptions", "RayEngine"]

EngineName: TypeAlias = Literal["local", "ray", "openai-batch"]
"""Where a map runs."""

Budget: TypeAlias = float | Mapping[str, float] | AbstractContextManager[Spent]
"""USD; or limits by name (usd, tokens, requests, seconds); or what `budget(...)` returns."""


@dataclass(frozen=True, slots=True)
class RayEngine:
    """A Ray cluster to map on: ``f.map(rows, engine=RayEngine(workers=8))``.

    Attributes:
        workers: actors that ask; None is as many as there are processors for them, and at most a thousand.
        cpus: processors that each takes for itself. A thousand calls in flight take about one.
        address: of the cluster; None is the one that is connected, else RAY_ADDRESS, else one on this machine, which
            ends with the map.
        options: further options of the actors, such as resources and runtime_env.
    """

    workers: int | None = None
    cpus: float = 1
    address: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        workers, cpus = cast("Any", self.workers), cast("Any", self.cpus)
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise UsageError(f"workers is a whole number from 1 up, or None, not {workers!r}.")
        if isinstance(cpus, bool) or not isinstance(cpus, (int, float)) or cpus < 0:
            raise UsageError(f"cpus is a number from 0 up, not {cpus!r}.")


Engine: TypeAlias = EngineName | RayEngine
"""An engine by name, or with its settings."""


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
