"""The options of a map, checked when they are given; and how many rows it asks at a time."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, TypeAlias, TypedDict, cast

from SimpleLLMFunc.batch.progress import Progress
from SimpleLLMFunc.errors import SignatureError, UsageError, did_you_mean
from SimpleLLMFunc.interface.spending import Deadline, Spent, deadline_scope
from SimpleLLMFunc.interface.spending import budget as budget_scope
from SimpleLLMFunc.utils import is_number

MOST_AT_A_TIME = 1_000
"""Rows that "auto" goes up to; a number may be higher."""

_FIRST = 8
_HOLDS = 1.5
"""While a round takes no more than so many times the fastest one, it is not the service that waits."""

_SUFFERS = 3.0
_CUT = 0.6
_SLACK = 0.02
"""Seconds that a round may always be slower; among very fast answers chance decides."""

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
        if workers is not None and not (is_number(workers, int) and workers >= 1):
            raise UsageError(f"workers is a whole number from 1 up, or None, not {workers!r}.")
        if not (is_number(cpus) and cpus >= 0):
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
    if (on_error := options.get("on_error", "keep")) not in ("keep", "raise"):
        raise UsageError(f'on_error is "keep" or "raise", not {on_error!r}.')
    if (retry_errors := options.get("retry_errors")) not in (None, True, False):
        raise UsageError(f"retry_errors is None, True or False, not {retry_errors!r}.")


@contextmanager
def limits(options: RunOptions) -> Generator[Deadline, None, None]:
    """Keep the budget and the deadline of a run.

    Raises:
        UsageError: one of them has an impossible value.
    """
    given: Any = options.get("budget")
    if isinstance(given, Mapping):
        if unknown := sorted(map(str, given.keys() - {"usd", "tokens", "requests", "seconds"})):
            raise UsageError(f"a budget has usd, tokens, requests and seconds, not {', '.join(unknown)}.")
        given = budget_scope(**given)
    elif not isinstance(given, AbstractContextManager):
        given = nullcontext() if given is None else budget_scope(usd=given)
    with given, deadline_scope(options.get("deadline")) as clock:
        yield clock


# --- how many rows at a time -----------------------------------------------------------------------------


class Concurrency:
    """A fixed number of rows at a time.

    Attributes:
        limit: how many.
        most: how many it may become.
        is_fixed: it stays what it is.
    """

    is_fixed = True

    def __init__(self, limit: int) -> None:
        self.limit = self.most = limit

    def finished(self, began: float, ended: float, *, is_refused: bool, is_full: bool) -> None:
        """Take note of a row: when it was asked and answered, and whether the service refused a try of it."""


class AutoConcurrency(Concurrency):
    """As many rows at a time as the service answers without getting slower.

    Twice as many with each round of answers while they come as fast as before and nothing is refused; then a few more
    with each round. After a refusal a good third less, once for all the rows that were on their way then. Calls that
    wait for the model's rate limits take longer, which is the same sign.

    Source: additive increase and multiplicative decrease as in RFC 5681; latency as the sign of a queue as in TCP Vegas.
    """

    is_fixed = False

    def __init__(self, most: int = MOST_AT_A_TIME) -> None:
        super().__init__(min(_FIRST, most))
        self.most = most
        self._is_doubling = True
        self._fastest = math.inf
        self._cut_at = -math.inf
        self._was_full = False
        self._begin_round()

    def finished(self, began: float, ended: float, *, is_refused: bool, is_full: bool) -> None:
        """Take note of a row; a round is over when as many have ended as may be on their way."""
        if began < self._cut_at:
            return  # asked when there were more on their way: no news
        if is_refused:
            self._shrink(ended, _CUT)
            return
        self._count += 1
        self._seconds += ended - began
        self._was_full = self._was_full or is_full
        if self._count >= self.limit:
            self._end_round(ended)

    def _end_round(self, now: float) -> None:
        mean = self._seconds / self._count
        # What was fast once need not be for ever.
        self._fastest = min(mean, self._fastest * 1.01)
        if mean > self._fastest * _SUFFERS + _SLACK:
            self._shrink(now, 0.8)
            return
        if mean > self._fastest * _HOLDS + _SLACK:
            self._is_doubling = False
        elif self._was_full:
            more = self.limit if self._is_doubling else max(1, self.limit // 16)
            self.limit = min(self.most, self.limit + more)
        self._begin_round()

    def _shrink(self, now: float, part: float) -> None:
        self.limit = max(1, int(self.limit * part))
        self._is_doubling = False
        self._cut_at = now
        self._begin_round()

    def _begin_round(self) -> None:
        self._count, self._seconds, self._was_full = 0, 0.0, False


def concurrency_of(value: int | Literal["auto"], most: int = MOST_AT_A_TIME) -> Concurrency:
    """Return what `concurrency=` asks for.

    Raises:
        UsageError: it is neither "auto" nor a whole number from 1 up.
    """
    given: Any = value
    if given == "auto":
        return AutoConcurrency(most)
    if not (is_number(given, int) and given >= 1):
        raise UsageError(f'concurrency is "auto" or a whole number from 1 up, not {value!r}.')
    return Concurrency(given)
