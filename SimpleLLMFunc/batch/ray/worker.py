"""The worker of a map on a Ray cluster: an actor of Ray Data with one event loop, and many rows under way in it.

Its letters are those of the hub, see `ray_hub`.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.run import Answer, Mappable
from SimpleLLMFunc.batch.checkpoint import decode_error, encode_answer, encode_error
from SimpleLLMFunc.batch.ray.cluster import packed, ray_package, unpacked
from SimpleLLMFunc.batch.ray.guard import Guard
from SimpleLLMFunc.batch.ray.limits import Gate, GatedLLM, Needed, share_limits
from SimpleLLMFunc.errors import ConfigError, RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import forbid_real_calls
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Spent, budget, deadline_scope
from SimpleLLMFunc.type import NO_USAGE, Usage

__all__ = ["Outcome", "RowWorker", "Rules", "linger_seconds"]

_LINGER_SECONDS = 0.01
_LINGER_A_WORKER = 0.005
_LONGEST = 5.0
_PAUSE_SECONDS = 0.2


def linger_seconds(workers: int) -> float:
    """Return how long letters are gathered: nothing beside the time that a model takes, where workers are few.

    Where they are many, what the hub spends on exchanges stays a quarter of its time.
    """
    return min(_LONGEST, max(_LINGER_SECONDS, _LINGER_A_WORKER * workers))


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every row.

    Attributes:
        workers: how many there are, to share what the service allows.
        has_budget, has_usd_budget: the driver is to be asked before each request.
        is_forbidden: no real call may be made.
    """

    workers: int
    has_budget: bool = False
    has_usd_budget: bool = False
    is_forbidden: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a row.

    Attributes:
        data: the value or the error, as a checkpoint keeps it.
        spent: what the budget of the row came to.
    """

    is_value: bool
    data: bytes
    mode: OutputMode
    usage: Usage
    tries: int
    spent: Needed


class RowWorker:
    """The class for `map_batches`: asks for the rows of a block, and gives a receipt for it.

    Args:
        hub: where rows and letters go through.
        function: pickled.
        limiter: the actor that keeps the rates.
        rules: what holds for every row.
    """

    def __init__(self, hub: Any, function: bytes, limiter: Any, rules: Rules) -> None:
        Guard(hub).start()
        self._hub = hub
        self._rules = rules
        self._name = uuid.uuid4().hex
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._starts: dict[int, asyncio.Future[float | None]] = {}
        self._dropped: set[int] = set()
        self._answers: dict[tuple[int, int], asyncio.Future[None]] = {}
        self._out = _Bag()
        self._has_letters = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._function: Mappable[Any] | None = None
        self._failure = b""
        self._is_over = False
        try:
            self._load(function, limiter)
        except Exception as error:  # noqa: BLE001 - the driver raises it
            self._failure = encode_error(_loading_error(error))
        hub.join.remote(self._name)

    async def __call__(self, block: Any) -> AsyncGenerator[dict[str, list[int]], None]:
        """Ask for those rows of a block that are wanted, and return when the hub has what came of them.

        A block that was run in this worker before does no harm, and one that was run in another costs what is open.
        """
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        tickets = block.column("tickets")[0].as_py()
        if tickets:
            wanted: list[tuple[int, bool, float | None]] = await self._called("accept", tickets)
            rows = dict(zip(tickets, block.column("rows")[0].as_py(), strict=True))
            for ticket, is_asked, seconds in wanted:
                if ticket not in self._tasks and ticket not in self._dropped and not self._is_over:
                    self._tasks[ticket] = asyncio.create_task(self._ask(ticket, rows[ticket]))
                    self._tasks[ticket].add_done_callback(partial(self._forget, ticket))
                if is_asked and ticket in self._tasks:
                    self._read("ask", ticket, seconds)
            asked = [task for ticket, *_ in wanted if (task := self._tasks.get(ticket)) is not None]
            del rows  # each of them is kept as long as it is under way
            if asked:
                await asyncio.wait(asked)
        yield {"rows": [len(tickets)]}

    def _forget(self, ticket: int, _: object) -> None:
        del self._tasks[ticket]
        self._starts.pop(ticket, None)

    def _start_of(self, ticket: int) -> asyncio.Future[float | None]:
        """Return what is done when the row is to be asked; the word may come before the row."""
        if ticket not in self._starts:
            self._starts[ticket] = asyncio.get_running_loop().create_future()
        return self._starts[ticket]

    # --- letters -------------------------------------------------------------------------------------------------

    async def _called(self, method: str, *args: Any) -> Any:
        """Call the hub; again where nobody knows whether the call arrived."""
        while True:
            try:
                return await getattr(self._hub, method).remote(self._name, *args)
            except ray_package().exceptions.ActorUnavailableError:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _send(self) -> None:
        number = 0
        while True:
            await self._has_letters.wait()
            await asyncio.sleep(linger_seconds(self._rules.workers))
            self._has_letters.clear()
            bag, self._out = self._out, _Bag()
            number += 1
            await self._called("report", number, bag.ended, packed(bag.letters))
            bag.is_sent.set()

    async def _listen(self) -> None:
        """Read letters, and have others written, until the hub says that it is over."""
        sending = asyncio.create_task(self._send())
        seen = 0
        try:
            while not self._is_over:
                for number, letter in await self._called("orders", seen):
                    seen = number
                    self._read(*letter)
        except ray_package().exceptions.RayActorError:
            self._read("end")  # without a hub nobody wants anything
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    def _read(self, kind: str, ticket: int = 0, *rest: Any) -> None:
        if kind == "ask":
            start = self._start_of(ticket)
            if not start.done():
                start.set_result(*rest)
        elif kind == "may":
            number, error = rest
            answer = self._answers.pop((ticket, number), None)
            if answer is None or answer.done():
                return
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(decode_error(error, NO_USAGE))
        elif kind == "end":
            self._is_over = True
            for task in self._tasks.values():
                task.cancel()
        elif (task_of_row := self._tasks.get(ticket)) is not None:
            task_of_row.cancel()
        else:
            self._dropped.add(ticket)  # before the word came that it is wanted

    def _write(self, letter: tuple[Any, ...]) -> _Bag:
        self._out.letters.append(letter)
        self._has_letters.set()
        return self._out

    # --- inside ----------------------------------------------------------------------------------------------

    def _load(self, pickled: bytes, limiter: Any) -> None:
        function = unpacked(pickled)
        llm: LLM_Interface = function.llm
        share_limits(function.models, limiter, self._rules.workers)
        self._llm = GatedLLM(llm) if self._rules.has_budget else llm
        if self._rules.is_forbidden:
            forbid_real_calls()
        self._function = function

    async def _ask(self, ticket: int, row: bytes) -> None:
        """Ask for a row when it may be, and return when the hub has what came of it: until then the block is not done."""
        if self._function is None or self._llm is None:
            await self._write(("failed", self._failure)).is_sent.wait()
            return
        function = self._function
        spent: Spent | None = None
        data: bytes
        answer: Answer[Any] | None = None
        usage, tries = NO_USAGE, 0
        seconds = await self._start_of(ticket)
        try:
            with ExitStack() as stack:
                stack.enter_context(use_llm(self._llm))
                stack.enter_context(deadline_scope(seconds))
                if self._rules.has_budget:
                    # Limits nothing, but counts, and has the prices looked up where the driver wants to know them.
                    spent = stack.enter_context(budget(usd=math.inf if self._rules.has_usd_budget else None))
                    stack.enter_context(Gate(self._asker(ticket, spent)))
                args, kwargs = unpacked(row)
                answer = await function.ask(args, kwargs)
            data, usage, tries = encode_answer(answer, function.output, function.repair), answer.usage, answer.tries
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            data = encode_error(RunAborted("something in it was cancelled"))
        except Exception as error:  # noqa: BLE001 - one row's failure is its value
            usage, tries = getattr(error, "usage", None) or NO_USAGE, getattr(error, "tries", 0)
            data = encode_error(error)
        mode: OutputMode = "text" if answer is None else answer.mode
        bag = self._write(("done", ticket, Outcome(answer is not None, data, mode, usage, tries, _spent(spent))))
        bag.ended.append(ticket)
        await bag.is_sent.wait()

    def _asker(self, ticket: int, spent: Spent) -> Any:
        number = 0

        async def ask(requests: int, tokens: int, usd: float) -> None:
            nonlocal number
            number += 1
            answer = self._answers[ticket, number] = asyncio.get_running_loop().create_future()
            self._write(("may?", ticket, number, (requests, tokens, usd), _spent(spent)))
            try:
                await answer
            finally:
                self._answers.pop((ticket, number), None)

        return ask


class _Bag:
    """Letters that go together.

    Attributes:
        ended: the rows that are answered with them.
    """

    def __init__(self) -> None:
        self.letters: list[tuple[Any, ...]] = []
        self.ended: list[int] = []
        self.is_sent = asyncio.Event()


def _spent(spent: Spent | None) -> Needed:
    return (0, 0, 0.0) if spent is None else (spent.requests, spent.tokens, spent.usd)


def _loading_error(error: Exception) -> SimpleLLMFuncError:
    if isinstance(error, SimpleLLMFuncError):
        return error
    return ConfigError(
        f"the function cannot be loaded where the workers are ({type(error).__name__}: {error}). Whatever it needs must "
        "be installed there, or be sent along: ray.init(runtime_env={'working_dir': '.'})."
    )
