"""The engine "ray": the rows of a map asked by actors on a cluster, and everything else as ever.

The driver runs the same map as the engine "local": it reads the rows, decides how many are under way, keeps budget and
deadline, and alone writes the checkpoint. Only the asking is done by others. So a row is committed before its place is
given to another one, here too; that is why the rows do not go through a Ray dataset, which hands its results on in
blocks. `f.as_ray_actor()` is for datasets.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from SimpleLLMFunc.base.abort import Abort, Limits
from SimpleLLMFunc.base.mappable import Answer, Mappable
from SimpleLLMFunc.batch.codec import decode_error, decode_value
from SimpleLLMFunc.batch.options import RayEngine
from SimpleLLMFunc.batch.pace import MOST_AT_A_TIME, Concurrency
from SimpleLLMFunc.batch.ray_cluster import connected, packed, shipped, unpacked
from SimpleLLMFunc.batch.ray_limits import Charges, Limiter
from SimpleLLMFunc.batch.ray_worker import Outcome, RowWorker, Rules, linger_seconds
from SimpleLLMFunc.batch.relayed import Relayed
from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded, RunError, SignatureError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.budget import charge_question, is_limited, strictest_time_limit
from SimpleLLMFunc.interface.deadline import Deadline, current_deadline
from SimpleLLMFunc.interface.guard import check_real_call_allowed
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.logger.known import mask_known
from SimpleLLMFunc.logger.records import push_warning
from SimpleLLMFunc.threads import in_thread
from SimpleLLMFunc.type.usage import Usage

__all__ = ["asked_on_ray"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_MOST_LOSSES = 3
"""So often a row is asked again after its worker died; a row that kills its worker must not do so for ever."""

_MOST_WORKERS = 1_000
"""More of them one driver cannot feed; a number that is given counts all the same."""

_PAUSE_SECONDS = 0.2
_STARTING_SECONDS = 120.0
"""How long a worker that was there may be away."""


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
) -> AsyncGenerator[Mappable[R], None]:
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
    """A row that a worker has.

    Attributes:
        losses: how many workers died with it.
    """

    letter: tuple[Any, ...]
    outcome: asyncio.Future[Outcome]
    charges: Charges
    losses: int = 0


class _OnRay(Relayed[R], Generic[R]):
    """The function, asked by workers; see `asked_on_ray`."""

    def __init__(self, function: ShippedFunction[R], engine: RayEngine, pace: Concurrency) -> None:
        super().__init__(function)
        self._shipped = function
        self._engine = engine
        self._pace = pace
        self._tickets = itertools.count(1)
        self._workers: list[_Worker] = []
        self._starting: asyncio.Task[None] | None = None
        self._stack = AsyncExitStack()

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R]:
        """Ask one of the workers."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        clock, limited = current_deadline() or Deadline.after(None), strictest_time_limit()
        strictest = clock.stricter(None if limited is None else Deadline.after(limited.left()))
        limits = Limits(strictest, self._shipped.abort)
        try:
            await limits.wait(asyncio.shield(self._starting), "starting the workers")
            return self._answer(await self._outcome(_row(args, kwargs), limits))
        except DeadlineExceeded as error:
            if limited is not None and limited.left() == 0:
                raise limited.out_of_time() from error
            told = clock.retold(error)
            told.usage = error.usage
            raise told from error

    async def _outcome(self, row: bytes, limits: Limits) -> Outcome:
        there = [worker for worker in self._workers if worker.is_there.is_set()]
        worker = min(there or self._workers, key=lambda worker: len(worker.places))
        ticket = next(self._tickets)
        letter = ("ask", ticket, row, limits.clock.left())
        place = _Place(letter, asyncio.get_running_loop().create_future(), Charges(charge_question(0).scopes))
        worker.put(ticket, place)
        try:
            return await limits.wait(place.outcome, "waiting for a worker")
        finally:
            worker.give_up(ticket)

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

    # --- starting --------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        ray = await self._stack.enter_async_context(connected(self._engine.address))
        resources: Mapping[str, float] = await in_thread(ray.cluster_resources)
        room = int(resources.get("CPU", 1) // max(self._engine.cpus, 0.01))
        count = self._engine.workers or min(max(1, room), _MOST_WORKERS)
        if self._pace.is_fixed:
            count = min(count, self._pace.limit)
        self._pace.most = MOST_AT_A_TIME * count
        rules = Rules(count, is_limited(), is_limited("usd"), _is_forbidden())
        function = await in_thread(shipped, self._shipped, self._shipped.reducers)
        limiter, *actors = await in_thread(_started, ray, self._engine, count)
        self._stack.callback(ray.kill, limiter)
        self._workers = [_Worker(ray, actor, (function, limiter, rules), self.name) for actor in actors]
        for worker in self._workers:
            self._stack.push_async_callback(worker.close)
        waiting = [asyncio.create_task(worker.is_there.wait()) for worker in self._workers]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        for worker in self._workers:
            if worker.failure is not None:
                raise worker.failure


class _Worker:
    """The driver's end of one worker."""

    def __init__(self, ray: Any, actor: Any, told: tuple[Any, ...], name: str) -> None:
        self._ray = ray
        self._actor = actor
        self._told = told
        self._linger = linger_seconds(told[-1].workers)
        self._name = name
        self.places: dict[int, _Place] = {}
        self.is_there = asyncio.Event()
        self.failure: SimpleLLMFuncError | None = None
        self._letters: list[tuple[Any, ...]] = []
        self._has_letters = asyncio.Event()
        self._incarnation = ""
        self._seen = 0
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._send())]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def put(self, ticket: int, place: _Place) -> None:
        """Have a row asked."""
        if self.failure is not None:
            raise self.failure
        self.places[ticket] = place
        self._write(place.letter)

    def give_up(self, ticket: int) -> None:
        """Forget a row; one that is under way is cancelled."""
        place = self.places.pop(ticket, None)
        if place is not None:
            place.charges.end(None)
            self._write(("drop", ticket))

    async def close(self) -> None:
        """End the worker at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._ray.kill(self._actor)

    def _write(self, letter: tuple[Any, ...]) -> None:
        self._letters.append(letter)
        self._has_letters.set()

    async def _send(self) -> None:
        while True:
            await self._has_letters.wait()
            await self.is_there.wait()
            await asyncio.sleep(self._linger)
            self._has_letters.clear()
            # A row may have been answered since it was written down: it must not be asked again.
            letters = [letter for letter in self._letters if letter[0] != "ask" or letter[1] in self.places]
            self._letters = []
            if not letters:
                continue
            try:
                await self._actor.give.remote(self._incarnation, packed(letters))
            except self._ray.exceptions.RayTaskError as error:
                raise _unexpected(error) from error
            except self._ray.exceptions.RayError:
                # Whether they arrived nobody knows: sent again they do no harm.
                self._letters[:0] = letters
                self._has_letters.set()
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _listen(self) -> None:
        while True:
            await self._hello()
            while await self._hear():
                pass
            self.is_there.clear()

    async def _hello(self) -> None:
        """Return when the worker is there; a new one gets the rows that the one before had.

        Raises:
            ConfigError: it cannot load the function, or does not come back.
        """
        until = None if not self._incarnation else asyncio.get_running_loop().time() + _STARTING_SECONDS
        while True:
            try:
                incarnation, error = await self._actor.hello.remote(*self._told)
                break
            except self._ray.exceptions.RayTaskError as failure:
                raise _unexpected(failure) from failure
            except self._ray.exceptions.RayError as failure:
                if self._is_gone_for_good(failure) or (until and asyncio.get_running_loop().time() > until):
                    raise ConfigError(
                        f"a worker of the map of {self._name!r} cannot be started: {mask_known(str(failure))}"
                    ) from failure
                await asyncio.sleep(_PAUSE_SECONDS)
        if error is not None:
            raise decode_error(error, Usage())
        if self._incarnation not in {"", incarnation}:
            self._lose()
        if incarnation != self._incarnation:
            self._incarnation, self._seen = incarnation, 0
        # Known ones are ignored there.
        waiting = {letter[1] for letter in self._letters if letter[0] == "ask"}
        self._letters[:0] = [place.letter for ticket, place in self.places.items() if ticket not in waiting]
        self._has_letters.set()
        self.is_there.set()

    async def _hear(self) -> bool:
        """Take in what the worker writes; return False where it does not answer."""
        try:
            letters = await self._actor.take.remote(self._incarnation, self._seen)
        except self._ray.exceptions.RayTaskError as error:
            raise _unexpected(error) from error
        except self._ray.exceptions.RayError as error:
            push_warning(f"a worker of the map of {self._name!r} does not answer ({type(error).__name__}).")
            return False
        if letters is None:
            return False
        for number, letter in unpacked(letters):
            if number > self._seen:
                self._seen = number
                self._read(letter)
        return True

    def _read(self, letter: tuple[Any, ...]) -> None:
        kind, ticket, *rest = letter
        place = self.places.get(ticket)
        if kind == "may?":
            number, needed, spent = rest
            error = None if place is None else place.charges.let(needed, spent)
            self._write(("may", ticket, number, error))
        elif place is not None:
            (outcome,) = rest
            del self.places[ticket]
            place.charges.end(outcome.spent)
            if not place.outcome.done():
                place.outcome.set_result(outcome)

    def _lose(self) -> None:
        """Take note that a worker has died with the rows that it had."""
        again = 0
        unsent = {letter[1] for letter in self._letters if letter[0] == "ask"}
        for ticket, place in list(self.places.items()):
            if ticket in unsent:
                continue
            place.losses += 1
            place.charges.lose()
            if place.losses > _MOST_LOSSES:
                del self.places[ticket]
                if not place.outcome.done():
                    place.outcome.set_exception(
                        RunError(
                            f"the worker that asked died {place.losses} times. What kills it may be this row or one that "
                            "was under way with it: look at the memory and at the logs of the workers."
                        )
                    )
            else:
                again += 1
        push_warning(f"a worker of the map of {self._name!r} died and is there again; it asks for {again} rows anew.")

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error if isinstance(error, SimpleLLMFuncError) else _unexpected(error))

    def _fail(self, error: SimpleLLMFuncError) -> None:
        self.failure = self.failure or error
        self.is_there.set()
        places, self.places = self.places, {}
        for place in places.values():
            if not place.outcome.done():
                place.outcome.set_exception(self.failure)

    def _is_gone_for_good(self, error: Exception) -> bool:
        exceptions = self._ray.exceptions
        if isinstance(error, exceptions.ActorUnavailableError):
            return False
        never = (exceptions.RuntimeEnvSetupError, exceptions.ActorUnschedulableError)
        return isinstance(error, never) or (
            isinstance(error, exceptions.ActorDiedError) and (not self._incarnation or "creation task" in str(error))
        )


def _row(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    try:
        return shipped((args, dict(kwargs)))
    except UsageError as error:
        raise SignatureError(f"the row: {error}") from error  # of this row, not of all


def _started(ray: Any, engine: RayEngine, count: int) -> list[Any]:
    """Return the limiter and the workers; exporting their classes takes its time."""
    options: dict[str, Any] = {"num_cpus": engine.cpus, **engine.options, "max_restarts": -1}
    limiter = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Limiter).remote()
    actor = ray.remote(**options)(RowWorker)
    return [limiter, *(actor.remote() for _ in range(count))]


def _unexpected(error: BaseException) -> SimpleLLMFuncError:
    return RunError(f"a worker failed: {mask_known(str(error))}")


def _is_forbidden() -> bool:
    try:
        check_real_call_allowed("")
    except UsageError:
        return True
    return False
