"""The options of a map, checked when they are given."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, TypeAlias, TypedDict, cast

from SimpleLLMFunc.batch.pace import concurrency_of
from SimpleLLMFunc.batch.progress import Progress
from SimpleLLMFunc.errors import SignatureError, UsageError, did_you_mean
from SimpleLLMFunc.interface.spending import Deadline, Spent, deadline_scope
from SimpleLLMFunc.interface.spending import budget as budget_scope

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


class RunOptions(TypedDict, total=False):
    """The options of every run over many rows.

    Attributes:
        concurrency: rows at a time; "auto", the default, finds out what the service bears.
        checkpoint: the path of a SQLite file, which the run creates if it is missing.
        budget: USD, limits by name, or a `budget(...)`; the run stops before the request that would break it.
        progress: None, the default, shows it on a terminal and in a notebook, True always, False never; or a function.
        deadline: seconds for all of it.
    """

    concurrency: int | Literal["auto"]
    checkpoint: str | PathLike[str] | None
    budget: Budget | None
    progress: Progress
    deadline: float | None


class MapOptions(RunOptions, total=False):
    """The options of `f.map`: also all of `RunOptions`.

    Attributes:
        on_error: "keep", the default, makes an error the result of its row; "raise" stops the map and raises the first.
        engine: "local", the default, is this process; "ray", or a `RayEngine` with its settings, the workers of a Ray
            cluster; "openai-batch" sends the rows as batches of the service, at half the price.
        retry_errors: which rows with an error in the checkpoint are asked again: None, the default, for those that
            failed because of the service or the run (`ProviderError`, `RunError`), not those whose answer did not
            fit; True for all, False for none.
        column: the column that goes to a function with one required parameter, where it is not called like that.
    """

    on_error: Literal["keep", "raise"]
    engine: Engine
    retry_errors: bool | None
    column: str | None


def check_options(options: Mapping[str, Any], known: type = MapOptions) -> None:
    """Return if a run can be told these options.

    Raises:
        SignatureError: one of them is not known.
        UsageError: one has a value that it cannot have.
    """
    names = [*known.__annotations__]
    for name in options:
        if name not in names:
            hint = did_you_mean(name, names) or f" Known: {', '.join(names)}."
            raise SignatureError(f"there is no option {name!r}.{hint}")
    concurrency_of(options.get("concurrency", "auto"))
    if (on_error := options.get("on_error", "keep")) not in {"keep", "raise"}:
        raise UsageError(f'on_error is "keep" or "raise", not {on_error!r}.')
    if (retry_errors := options.get("retry_errors")) not in {None, True, False}:
        raise UsageError(f"retry_errors is None, True or False, not {retry_errors!r}.")


@contextmanager
def limits(options: RunOptions) -> Generator[Deadline, None, None]:
    """Keep the budget and the deadline of a run.

    Raises:
        UsageError: one of them has an impossible value.
    """
    with _budget_scope(options.get("budget")), deadline_scope(options.get("deadline")) as clock:
        yield clock


def _budget_scope(given: Any) -> AbstractContextManager[object]:
    if given is None:
        return nullcontext()
    if isinstance(given, AbstractContextManager):
        return given
    if isinstance(given, Mapping):
        if unknown := sorted(map(str, given.keys() - {"usd", "tokens", "requests", "seconds"})):
            raise UsageError(f"a budget has usd, tokens, requests and seconds, not {', '.join(unknown)}.")
        return budget_scope(**given)
    return budget_scope(usd=given)
