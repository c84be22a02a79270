"""The worker of a map on a Ray cluster: an actor with one event loop, and many rows under way in it.

Driver and worker write each other letters, many at a time: a call of an actor costs half a millisecond, a letter in it
next to nothing. Letters may be sent again after a failure; nobody acts on one twice.

========  =====================================  ==========================================================
to        letter                                 meaning
========  =====================================  ==========================================================
worker    ``("ask", ticket, row, s)``            ask for this row, in at most s seconds (None: any number)
worker    ``("drop", ticket)``                   nobody wants the row any more
worker    ``("may", ticket, number, error)``     the answer to a question about the budget; None: it may
driver    ``("done", ticket, outcome)``          what came of the row
driver    ``("may?", ticket, number, needed, spent)``  may the row send a request that takes so much?
========  =====================================  ==========================================================
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.base.mappable import Answer, Mappable
from SimpleLLMFunc.base.result import OutputMode
from SimpleLLMFunc.batch.codec import decode_error, encode_answer, encode_error
from SimpleLLMFunc.batch.ray_cluster import packed, unpacked
from SimpleLLMFunc.batch.ray_limits import Gate, GatedLLM, Needed, share_limits
from SimpleLLMFunc.errors import ConfigError, RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.interface.budget import Spent, budget
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.interface.deadline import deadline_scope
from SimpleLLMFunc.interface.guard import forbid_real_calls
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.threads import in_thread
from SimpleLLMFunc.type.usage import NO_USAGE, Usage

__all__ = ["Outcome", "RowWorker", "Rules", "linger_seconds"]

_LINGER_SECONDS = 0.01
_LINGER_A_WORKER = 0.005
_LONGEST = 5.0


def linger_seconds(workers: int) -> float:
    """Return how long letters are gathered: nothing beside the time that a model takes, where workers are few.

    Where they are many, what the driver spends on exchanges stays a fifth of its time.
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
    """The actor; it is made without arguments, so that it can be made again whatever has become of them."""

    def __init__(self) -> None:
        self._rules = Rules(1)
        self._incarnation = uuid.uuid4().hex
        self._function: Mappable[Any] | None = None
        self._llm: LLM_Interface | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._known: set[int] = set()
        self._answers: dict[tuple[int, int], asyncio.Future[None]] = {}
        self._out: deque[tuple[int, tuple[Any, ...]]] = deque()
        self._numbers = 0
        self._has_letters = asyncio.Event()
        self._loading = asyncio.Lock()

    async def hello(self, function: bytes, limiter: Any, rules: Rules) -> tuple[str, bytes | None]:
        """Load the function; return who this is, and what went wrong.

        Args:
            function: pickled.
            limiter: the actor that keeps the rates.
            rules: what holds for every row.
        """
        async with self._loading:
            if self._function is None:
                self._rules = rules
                try:
                    self._function = await in_thread(self._load, function, limiter)
                except Exception as error:  # noqa: BLE001 - the driver raises it
                    return self._incarnation, encode_error(_loading_error(error))
        return self._incarnation, None

    async def give(self, incarnation: str, letters: bytes) -> None:
        """Take letters of the driver; those that were meant for a worker that is no more are not read."""
        if incarnation != self._incarnation or self._function is None:
            return
        for kind, ticket, *rest in unpacked(letters):
            if kind == "ask":
                if ticket not in self._known:
                    self._known.add(ticket)
                    self._tasks[ticket] = asyncio.create_task(self._ask(self._function, ticket, *rest))
            elif kind == "drop":
                if (task := self._tasks.get(ticket)) is not None:
                    task.cancel()
            else:
                number, error = rest
                answer = self._answers.pop((ticket, number), None)
                if answer is None or answer.done():
                    continue
                if error is None:
                    answer.set_result(None)
                else:
                    answer.set_exception(decode_error(error, NO_USAGE))

    async def take(self, incarnation: str, seen: int) -> bytes | None:
        """Return the letters after number `seen`, as soon as there are some; None where another worker was meant.

        What the driver has seen is forgotten.
        """
        if incarnation != self._incarnation:
            return None
        while self._out and self._out[0][0] <= seen:
            _, letter = self._out.popleft()
            if letter[0] == "done":
                self._known.discard(letter[1])
        while not self._out:
            self._has_letters.clear()
            await self._has_letters.wait()
        await asyncio.sleep(linger_seconds(self._rules.workers))
        return packed(list(self._out))

    # --- inside ----------------------------------------------------------------------------------------------

    def _load(self, pickled: bytes, limiter: Any) -> Mappable[Any]:
        function = unpacked(pickled)
        llm: LLM_Interface = function.llm
        share_limits(function.models, limiter, self._rules.workers)
        self._llm = GatedLLM(llm) if self._rules.has_budget else llm
        if self._rules.is_forbidden:
            forbid_real_calls()
        loaded: Mappable[Any] = function
        return loaded

    def _write(self, letter: tuple[Any, ...]) -> None:
        self._numbers += 1
        self._out.append((self._numbers, letter))
        self._has_letters.set()

    async def _ask(self, function: Mappable[Any], ticket: int, row: bytes, seconds: float | None) -> None:
        spent: Spent | None = None
        data: bytes
        answer: Answer[Any] | None = None
        usage, tries = NO_USAGE, 0
        assert self._llm is not None, "the function was loaded"
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
                self._known.discard(ticket)
                raise
            data = encode_error(RunAborted("something in it was cancelled"))
        except Exception as error:  # noqa: BLE001 - one row's failure is its value
            usage, tries = getattr(error, "usage", None) or NO_USAGE, getattr(error, "tries", 0)
            data = encode_error(error)
        finally:
            self._tasks.pop(ticket, None)
        mode: OutputMode = "text" if answer is None else answer.mode
        self._write(("done", ticket, Outcome(answer is not None, data, mode, usage, tries, _spent(spent))))

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


def _spent(spent: Spent | None) -> Needed:
    return (0, 0, 0.0) if spent is None else (spent.requests, spent.tokens, spent.usd)


def _loading_error(error: Exception) -> SimpleLLMFuncError:
    if isinstance(error, SimpleLLMFuncError):
        return error
    return ConfigError(
        f"the function cannot be loaded where the workers are ({type(error).__name__}: {error}). Whatever it needs must "
        "be installed there, or be sent along: ray.init(runtime_env={'working_dir': '.'})."
    )
