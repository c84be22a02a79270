"""The engine "ray": actors of a Ray cluster ask for the rows of a map.

The driver runs the same map as the engine "local": it reads the rows, decides how many are under way, keeps budget and
deadline, and alone writes the checkpoint. An actor that dies is started again by Ray, which runs its calls again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from SimpleLLMFunc.base.run import Answer, RunLimits
from SimpleLLMFunc.batch.checkpoint.codec import decode_error, decode_value
from SimpleLLMFunc.batch.options import MOST_AT_A_TIME, Concurrency, RayEngine
from SimpleLLMFunc.batch.ray.cluster import Amounts, Outcome, RowWorker, connection, ray_package, shipped
from SimpleLLMFunc.batch.relayed import Decorated, Relayed
from SimpleLLMFunc.errors import (
    BudgetExceeded,
    ConfigError,
    DeadlineExceeded,
    RunError,
    SignatureError,
    SimpleLLMFuncError,
    UsageError,
)
from SimpleLLMFunc.interface.attempts import are_real_calls_forbidden
from SimpleLLMFunc.interface.current import used_llm
from SimpleLLMFunc.interface.spending import Deadline, Spent, reserve, scopes_around, time_limits
from SimpleLLMFunc.logger import mask_known, push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import NO_USAGE, Usage

R = TypeVar("R")

_MOST_WORKERS = 1_000
"""More of them one driver cannot feed; a number that is given counts all the same."""

_MOST_RETRIES = 3
"""So often Ray asks for a row again whose worker died; a row that kills its worker must not do so for ever."""

_OTHERS_SECONDS = 5.0
"""How long the first worker waits for the others: else it would have the rows of all of them."""

Grant: TypeAlias = Mapping[str, float | None]
"""By unit; None is no limit."""

_UNITS = ("requests", "tokens", "usd")
_AS_MUCH_AGAIN = 2
"""A row may need so many times what the dearest one before it took."""


class OnRay(Relayed[R], Generic[R]):
    """A function, asked by the workers of a cluster; they are started with the first row, and gone after `aclose`.

    Args:
        function: what is asked.
        engine: the cluster, and how many workers.
        pace: told how many rows the workers bear.
    """

    def __init__(self, function: Decorated[R], engine: RayEngine, pace: Concurrency) -> None:
        super().__init__(function)
        self._engine = engine
        self._pace = pace
        self._grants = Grants(scopes) if (scopes := scopes_around()) else None
        self._starting: asyncio.Task[None] | None = None
        self._is_connected = False
        self._actors: list[Any] = []
        self._joining: list[asyncio.Task[None]] = []
        self._workers: Counter[Any] = Counter()  # actors that can ask, with the rows of each
        self._rows = 0

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R]:
        """Have one of the workers ask."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        self._rows += 1
        try:
            with time_limits() as clock:
                try:
                    asked = self._asked(args, kwargs, self._starting, clock)
                    return await RunLimits(clock, self._function.abort).wait(asked, "waiting for a worker")
                except DeadlineExceeded as error:
                    told = clock.retold(error)
                    told.usage = error.usage
                    raise told from error
        finally:
            self._rows -= 1

    async def _asked(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], starting: asyncio.Task[None], clock: Deadline
    ) -> Answer[R]:
        await asyncio.shield(starting)
        try:
            row = shipped((args, dict(kwargs)))
        except UsageError as error:
            raise SignatureError(f"the row: {error}") from error  # of this row, not of all
        if self._grants is None:
            return self._answer(await self._outcome(row, clock, None))
        while True:
            spent = None
            grant = await self._grants.take(self._rows)
            try:
                outcome = await self._outcome(row, clock, grant)
                spent = outcome.spent
            finally:
                self._grants.give_back(grant, spent)
            try:
                return self._answer(outcome)
            except BudgetExceeded as error:
                if not self._grants.has_more(error, outcome.spent):
                    raise self._grants.exceeded(error) from None

    async def _outcome(self, row: bytes, clock: Deadline, grant: Grant | None) -> Outcome:
        ray, actor = ray_package(), min(self._workers, key=self._workers.__getitem__)
        self._workers[actor] += 1
        call = actor.ask.remote(row, clock.left(), grant)
        try:
            outcome: Outcome = await call
        except ray.exceptions.RayActorError as error:
            raise RunError(
                f"the worker that asked died {_MOST_RETRIES + 1} times. What kills it may be this row or one that was "
                f"under way with it: look at the memory and at the logs of the workers. {_told(error)}"
            ) from error
        except ray.exceptions.RayError as error:
            raise RunError(f"the row was lost on the cluster: {_told(error)}") from error
        except asyncio.CancelledError:
            ray.cancel(call)
            raise
        finally:
            self._workers[actor] -= 1
        return outcome

    def _answer(self, outcome: Outcome) -> Answer[R]:
        # The worker does not know all secrets that are known here.
        data = mask_known(outcome.data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if outcome.is_value:
            value = decode_value(data, self.output)
            return Answer(value, "", outcome.mode, outcome.usage, outcome.tries, encoded=data)
        raise decode_error(data, outcome.usage)

    # --- the workers ---------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        """Start the workers, and return when there is one that can ask; others may join later."""
        await in_thread(ray_package)
        function = await in_thread(shipped, (self._function, used_llm()), self._function.reducers)
        self._is_connected = True
        await connection.thread.run(self._make, function, are_real_calls_forbidden())
        self._pace.most = MOST_AT_A_TIME * len(self._actors)
        self._joining = [asyncio.create_task(self._join(actor)) for actor in self._actors]
        done, _ = await asyncio.wait(self._joining, return_when=asyncio.FIRST_COMPLETED)
        if not self._workers:
            await done.pop()
        await asyncio.wait(self._joining, timeout=_OTHERS_SECONDS)

    def _make(self, function: bytes, is_forbidden: bool) -> None:
        """Make the actors; in the thread of the connection."""
        ray = connection.enter(self._engine.address)
        room = int(ray.cluster_resources().get("CPU", 1) // max(self._engine.cpus, 0.01))
        count = self._engine.workers or min(max(1, room), _MOST_WORKERS)
        most = MOST_AT_A_TIME
        if self._pace.is_fixed:
            count, most = min(count, self._pace.limit), max(most, self._pace.limit)
        told = {"num_cpus": self._engine.cpus, "max_restarts": -1, "max_task_retries": _MOST_RETRIES}
        told |= {"max_concurrency": most, **self._engine.options}
        try:
            kind = ray.remote(RowWorker).options(**told)
            for _ in range(count):
                self._actors.append(kind.remote(function, count, is_forbidden))
        except (ValueError, TypeError, ray.exceptions.RayError) as error:
            raise self._cannot_start(error) from error

    async def _join(self, actor: Any) -> None:
        try:
            failure = await actor.joined.remote()
        except ray_package().exceptions.RayError as error:
            problem: SimpleLLMFuncError = self._cannot_start(error)
        else:
            if not failure:
                self._workers[actor] = 0
                return
            problem = decode_error(failure, NO_USAGE)
        if self._workers:
            push_warning(f"a worker of the map of {self.name!r} cannot help the others: {problem}")
        raise problem

    def _cannot_start(self, error: Exception) -> ConfigError:
        return ConfigError(f"the workers of the map of {self.name!r} cannot be started: {_told(error)}")

    async def aclose(self) -> None:
        """End the workers, and the cluster where it is ours."""
        if self._starting is not None:
            tasks = [self._starting, *self._joining]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._is_connected:
            await connection.thread.run(connection.leave, self._actors)


def _told(error: BaseException) -> str:
    """Return what Ray says went wrong, without the way it took."""
    cause = getattr(error, "cause", None) or error
    first, *more = str(cause).strip().splitlines() or [""]
    return mask_known(" … ".join([f"{type(cause).__name__}: {first}", *more[-1:]]))


# --- budgets ---------------------------------------------------------------------------------------------


class Grants:
    """Divides the rest of the budgets into parts; all parts together never exceed it.

    Where little is left, fewer rows are under way, each with a part that will do.
    """

    def __init__(self, scopes: tuple[Spent, ...]) -> None:
        self._scopes = scopes
        self._least: dict[str, float] = dict.fromkeys(_UNITS, 0.0)
        self._count = 0
        self._came_back = asyncio.Event()

    async def take(self, rows: int) -> Grant:
        """Return a part for one row, as soon as there is enough for it.

        Args:
            rows: how many are under way, this one and those that wait for their part too.

        Raises:
            BudgetExceeded: nothing is left.
        """
        while self._count and any(left is not None and left < self._least[unit] for unit, left in self._left().items()):
            self._came_back.clear()
            await self._came_back.wait()
        waiting = max(1, rows - self._count)
        grant = {
            unit: None if left is None else min(left, max(self._least[unit], left / waiting))
            for unit, left in self._left().items()
        }
        for unit in ("requests", "tokens"):
            grant[unit] = None if (amount := grant[unit]) is None else float(max(1, int(amount)))
        reserve(self._scopes, **_reserved(grant))
        self._count += 1
        return grant

    def give_back(self, grant: Grant, spent: Amounts | None) -> None:
        """Settle with what a row has spent; None where that is not known: its first request has probably left."""
        amounts = spent or (1, 0, 0.0)
        reserved = _reserved(grant)
        requests, tokens, usd = amounts
        for scope in self._scopes:
            scope.settle(
                reserved=reserved["tokens"],
                usage=Usage(input_tokens=tokens, cost=usd),
                requests=requests - reserved["requests"],
                reserved_usd=reserved["usd"],
            )
        for unit, amount in zip(_UNITS, amounts, strict=True):
            self._least[unit] = max(self._least[unit], _AS_MUCH_AGAIN * amount)
        self._count -= 1
        self._came_back.set()

    def has_more(self, error: BudgetExceeded, spent: Amounts) -> bool:
        """Return whether a row to which its part did not suffice can have a larger one; it has not spent anything yet."""
        left = self._left().get(error.unit)
        if spent[0] or left is None or error.needed is None or not (self._count or error.needed <= left):
            return False
        self._least[error.unit] = max(self._least[error.unit], error.needed)
        return True

    def exceeded(self, error: BudgetExceeded) -> BudgetExceeded:
        """Return what a row raised, in the figures of the budget that its part was cut from."""
        limiting = [(left, scope) for scope in self._scopes if (left := scope.left_of(error.unit)) is not None]
        return min(limiting, key=lambda each: each[0])[1].exceeded(error.unit, error.needed) if limiting else error

    def _left(self) -> dict[str, float | None]:
        return {
            unit: min((left for each in self._scopes if (left := each.left_of(unit)) is not None), default=None)
            for unit in _UNITS
        }


def _reserved(grant: Grant) -> dict[str, Any]:
    return {"requests": int(grant["requests"] or 0), "tokens": int(grant["tokens"] or 0), "usd": grant["usd"] or 0.0}
