"""The engine "ray": the rows of a map go through a Ray dataset, to actors that ask; everything else is as ever.

The driver runs the same map as the engine "local": it reads the rows, decides how many are under way, keeps budget and
deadline, and alone writes the checkpoint. What is under way is the dataset: its rows are read at the `Hub` as the driver
puts them there, an actor pool asks for them, and its results are receipts. A dataset hands its results on in blocks, so
what came of a row does not wait for them: it comes back through the hub at once, and is committed before the place of
the row is given to another one, here too.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from SimpleLLMFunc.base.run import Abort, Answer, Mappable, RunLimits
from SimpleLLMFunc.batch.checkpoint import decode_error, decode_value
from SimpleLLMFunc.batch.options import RayEngine
from SimpleLLMFunc.batch.pace import MOST_AT_A_TIME, Concurrency
from SimpleLLMFunc.batch.ray.cluster import connected, packed, ray_package, shipped, unpacked
from SimpleLLMFunc.batch.ray.dataset import DatasetRun
from SimpleLLMFunc.batch.ray.guard import guarded
from SimpleLLMFunc.batch.ray.hub import MOST_LOSSES, Hub
from SimpleLLMFunc.batch.ray.limits import Charges, Limiter
from SimpleLLMFunc.batch.ray.worker import Outcome, Rules
from SimpleLLMFunc.batch.relayed import Relayed
from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded, RunError, SignatureError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.attempts import check_real_call_allowed
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import (
    Deadline,
    charge_question,
    current_deadline,
    is_limited,
    strictest_time_limit,
)
from SimpleLLMFunc.logger import mask_known, push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import Usage

__all__ = ["asked_on_ray"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_MOST_WORKERS = 1_000
"""More of them one driver cannot feed; a number that is given counts all the same."""

_MOST_RUNS = 3
"""So often the dataset is started again when the process that runs it dies."""

_LINGER_SECONDS = 0.01
_PAUSE_SECONDS = 0.2
_GRACE_SECONDS = 3.0
"""How long the workers may take to end; they are killed then."""


class ShippedFunction(Mappable[R_co], Protocol[R_co]):
    """A function that can be pickled, and may be aborted."""

    @property
    def abort(self) -> Abort | None:
        """What may end its runs."""
        ...

    @property
    def models(self) -> Sequence[LLM_Interface]:
        """All models that it may ask, the first one first."""
        ...

    @property
    def reducers(self) -> Mapping[type, Any]:
        """How what belongs to it is pickled, as in `copyreg`."""
        ...


@asynccontextmanager
async def asked_on_ray(
    function: ShippedFunction[R], engine: RayEngine, pace: Concurrency
) -> AsyncGenerator[_OnRay[R], None]:
    """Give the function, asked by the workers of a cluster; they are started with its first row, and gone afterwards.

    Args:
        function: what is asked.
        engine: the cluster, and how many workers.
        pace: told how many rows the workers bear.
    """
    asked = _OnRay(function, engine, pace)
    try:
        yield asked
    finally:
        await asked.close()


@dataclass(slots=True, eq=False)
class _Place:
    """A row that is under way.

    Attributes:
        worker: who has it since one died with it.
        losses: how many workers died with it.
    """

    outcome: asyncio.Future[Outcome]
    charges: Charges
    worker: str = ""
    losses: int = 0


class _OnRay(Relayed[R], Generic[R]):
    """The function, asked by workers; see `asked_on_ray`."""

    def __init__(self, function: ShippedFunction[R], engine: RayEngine, pace: Concurrency) -> None:
        super().__init__(function)
        self._shipped = function
        self._engine = engine
        self._pace = pace
        self._starting: asyncio.Task[_Rows] | None = None
        self._rows: _Rows | None = None
        self._foreseen: list[tuple[tuple[Any, ...], Mapping[str, Any]]] = []
        self._stack = AsyncExitStack()

    def foresee(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Have a row go to its worker, which will be asked with just these objects."""
        if self._rows is None:
            self._foreseen.append((args, kwargs))
        else:
            self._rows.foresee(args, kwargs)

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R]:
        """Have one of the workers ask."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        clock, limited = current_deadline() or Deadline.after(None), strictest_time_limit()
        strictest = clock.stricter(None if limited is None else Deadline.after(limited.left()))
        limits = RunLimits(strictest, self._shipped.abort)
        try:
            rows = await limits.wait(asyncio.shield(self._starting), "starting the workers")
            return self._answer(await rows.outcome(args, kwargs, limits))
        except DeadlineExceeded as error:
            if limited is not None and limited.left() == 0:
                raise limited.out_of_time() from error
            told = clock.retold(error)
            told.usage = error.usage
            raise told from error

    def _answer(self, outcome: Outcome) -> Answer[R]:
        # The worker does not know all secrets that are known here.
        data = mask_known(outcome.data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if outcome.is_value:
            value = decode_value(data, self.output)
            return Answer(value, "", outcome.mode, outcome.usage, outcome.tries, encoded=data)
        raise decode_error(data, outcome.usage)

    async def close(self) -> None:
        """End the workers, and the cluster where it is ours."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._stack.aclose()

    async def _start(self) -> _Rows:
        ray = await self._stack.enter_async_context(connected(self._engine.address))
        resources: Mapping[str, float] = await in_thread(ray.cluster_resources)
        room = int(resources.get("CPU", 1) // max(self._engine.cpus, 0.01))
        count = self._engine.workers or min(max(1, room), _MOST_WORKERS)
        if self._pace.is_fixed:
            count = min(count, self._pace.limit)
        self._pace.most = MOST_AT_A_TIME * count
        rules = Rules(count, is_limited(), is_limited("usd"), _is_forbidden())
        function = await in_thread(shipped, self._shipped, self._shipped.reducers)
        making = asyncio.create_task(in_thread(_started, ray, count))
        self._stack.push_async_callback(_killed, ray, making)
        limiter, hub, dataset = await asyncio.shield(making)
        options = {"num_cpus": self._engine.cpus, **self._engine.options}
        rows = _Rows(ray, hub, _run(ray, dataset, hub, (function, limiter, rules), count, options), self.name)
        self._stack.push_async_callback(rows.close)
        self._rows = rows
        for row in self._foreseen:
            rows.foresee(*row)
        self._foreseen.clear()
        return rows


class _Rows:
    """The rows under way: the driver's end of the hub.

    Args:
        run: returns when the dataset has ended.
    """

    def __init__(self, ray: Any, hub: Any, run: Coroutine[Any, Any, int], name: str) -> None:
        self._ray = ray
        self._hub = hub
        self._run = asyncio.create_task(run)
        self._name = name
        self._tickets = itertools.count(1)
        self._ahead: dict[int, tuple[int, Mapping[str, Any]]] = {}
        self._places: dict[int, _Place] = {}
        self._failure: SimpleLLMFuncError | None = None
        self._letters: list[tuple[Any, ...]] = []
        self._has_letters = asyncio.Event()
        self._successors: set[str] = set()
        self._tasks = [asyncio.create_task(work) for work in (self._send(), self._listen(), self._watch())]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def foresee(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Have a row go to its worker."""
        with suppress(UsageError):  # it is raised when the row is asked
            self._ahead[id(kwargs)] = self._sent(args, kwargs), kwargs

    async def outcome(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], limits: RunLimits) -> Outcome:
        """Return what comes of a row; one that nobody waits for any more is cancelled."""
        if self._failure is not None:
            raise self._failure
        ticket, _ = self._ahead.pop(id(kwargs), None) or (self._sent(args, kwargs), None)
        place = _Place(asyncio.get_running_loop().create_future(), Charges(charge_question(0).scopes))
        self._places[ticket] = place
        self._write(("ask", ticket, limits.clock.left()))
        try:
            return await limits.wait(place.outcome, "waiting for a worker")
        finally:
            if self._places.pop(ticket, None) is not None:
                place.charges.end(None)
                self._write(("drop", ticket))

    def _sent(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
        """Write down a row for the dataset, and return its ticket."""
        data = _row(args, kwargs)
        ticket = next(self._tickets)
        self._write(("row", ticket, data))
        return ticket

    async def close(self) -> None:
        """End the dataset, and whoever works for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            with suppress(TimeoutError, self._ray.exceptions.RayError):
                async with asyncio.timeout(_GRACE_SECONDS):
                    await self._hub.end.remote()
                    await asyncio.shield(self._run)
        finally:
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)

    # --- letters, see `ray_hub` ----------------------------------------------------------------------------------

    def _write(self, letter: tuple[Any, ...]) -> None:
        self._letters.append(letter)
        self._has_letters.set()

    async def _send(self) -> None:
        number = 0
        while True:
            await self._has_letters.wait()
            await asyncio.sleep(_LINGER_SECONDS)
            self._has_letters.clear()
            letters, self._letters = self._letters, []
            number += 1
            await self._called("give", number, packed(letters))

    async def _listen(self) -> None:
        seen = 0
        while True:
            for number, (worker, letters) in await self._called("take", seen):
                seen = number
                for letter in unpacked(letters):
                    self._read(worker, *letter)

    async def _called(self, method: str, *args: Any) -> Any:
        """Call the hub; again where nobody knows whether the call arrived."""
        while True:
            try:
                return await getattr(self._hub, method).remote(*args)
            except self._ray.exceptions.ActorUnavailableError as error:
                push_warning(f"the hub of the map of {self._name!r} does not answer ({type(error).__name__}).")
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _watch(self) -> None:
        """Say why the dataset ended, which it does not do by itself."""
        try:
            await asyncio.shield(self._run)
        except self._ray.exceptions.RayError as error:
            raise ConfigError(
                f"the workers of the map of {self._name!r} cannot be started, or cannot go on: {_told(error)}"
            ) from error
        raise RunError(f"the dataset of the map of {self._name!r} ended before its rows did.")

    def _read(self, worker: str, kind: str, *rest: Any) -> None:
        if kind == "failed":
            raise decode_error(rest[0], Usage())
        ticket, *rest_of_it = rest
        place = self._places.get(ticket)
        if kind == "may?":
            number, needed, spent = rest_of_it
            # A row without a place was dropped, and what asks for it is cancelled; another worker has died since.
            if place is not None and place.worker in {"", worker}:
                self._write(("may", ticket, number, place.charges.let(needed, spent), worker))
        elif place is not None and kind == "lost":
            self._lose(ticket, place, worker)
        elif place is not None:
            (outcome,) = rest_of_it
            del self._places[ticket]
            place.charges.end(outcome.spent)
            if not place.outcome.done():
                place.outcome.set_result(outcome)

    def _lose(self, ticket: int, place: _Place, worker: str) -> None:
        """Take note that a worker has died with a row."""
        if worker not in self._successors:
            self._successors.add(worker)
            push_warning(
                f"a worker of the map of {self._name!r} died and is there again; the rows that it had are asked anew."
            )
        place.worker = worker
        place.losses += 1
        place.charges.lose()
        if place.losses > MOST_LOSSES:
            del self._places[ticket]
            if not place.outcome.done():
                place.outcome.set_exception(
                    RunError(
                        f"the worker that asked died {place.losses} times. What kills it may be this row or one that "
                        "was under way with it: look at the memory and at the logs of the workers."
                    )
                )

    # --- failures ------------------------------------------------------------------------------------------------

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._failure = self._failure or (error if isinstance(error, SimpleLLMFuncError) else _unexpected(error))
        places, self._places = self._places, {}
        for place in places.values():
            place.charges.end(None)
            if not place.outcome.done():
                place.outcome.set_exception(self._failure)


def _row(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    try:
        return shipped((args, dict(kwargs)))
    except UsageError as error:
        raise SignatureError(f"the row: {error}") from error  # of this row, not of all


def _started(ray: Any, count: int) -> list[Any]:
    """Return the limiter, the hub and who runs the dataset; exporting their classes takes its time.

    They take no processor from the workers, and live where the driver does.
    """
    here = ray_package("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=True
    )
    light = {"num_cpus": 0, "scheduling_strategy": here}
    again = {"max_restarts": -1, "max_task_retries": -1}
    limiter = ray.remote(**light, **again)(guarded(Limiter)).remote()
    hub = ray.remote(**light, max_concurrency=100 + 8 * count)(guarded(Hub)).remote(count)
    dataset = ray.remote(**light, max_restarts=_MOST_RUNS)(DatasetRun).remote()
    return [limiter, hub, dataset]


async def _killed(ray: Any, making: asyncio.Task[list[Any]]) -> None:
    """Kill the actors, the last one first; a thread that makes them cannot be stopped, and must not go on without Ray."""
    await asyncio.wait([making])
    if making.exception() is None:
        for actor in reversed(making.result()):
            ray.kill(actor)


async def _run(ray: Any, dataset: Any, *told: Any) -> int:
    """Run the dataset to its end, again where the process that runs it dies; Ray would tell about it."""
    for _ in range(_MOST_RUNS):
        with suppress(ray.exceptions.RayActorError):
            return int(await dataset.run.remote(*told))
        await asyncio.sleep(_PAUSE_SECONDS)
    return int(await dataset.run.remote(*told))


def _unexpected(error: BaseException) -> SimpleLLMFuncError:
    return RunError(f"a map on a cluster failed: {_told(error)}")


def _told(error: BaseException) -> str:
    """Return what Ray says went wrong, without the way it took."""
    cause = getattr(error, "cause", None) or error
    first, *more = str(cause).strip().splitlines() or [""]
    return mask_known(" … ".join([f"{type(cause).__name__}: {first}", *more[-1:]]))


def _is_forbidden() -> bool:
    try:
        check_real_call_allowed("")
    except UsageError:
        return True
    return False
