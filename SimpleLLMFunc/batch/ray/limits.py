"""What the workers of a cluster share: rates, in an actor that all ask; and the budget, which the driver keeps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

from SimpleLLMFunc.batch.checkpoint import encode_error
from SimpleLLMFunc.errors import RunError, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import HttpModel, Limits, LimitSettings, TokenBucket, Told, told_limits
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Deadline, Spent, count_request
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message, Usage

__all__ = ["Charges", "Gate", "GatedLLM", "Limiter", "Needed", "share_limits"]

_PART = 1 / 16
"""Of a bucket: more than this no worker takes at once, so that none waits long for another."""


class Limiter:
    """The actor that holds the buckets of all workers."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}

    async def take(self, name: str, capacity: float, rate: float, count: float) -> None:
        """Return when `count` tokens of a bucket have been taken for the caller."""
        await self._bucket(name, capacity, rate).acquire(count)

    async def adjust(self, name: str, capacity: float, rate: float, count: float) -> None:
        """Correct an estimate afterwards."""
        self._bucket(name, capacity, rate).adjust(count)

    async def limit_to(self, name: str, capacity: float, rate: float, level: float) -> None:
        """Hold at most so many now: the service said that no more are left."""
        self._bucket(name, capacity, rate).limit_to(level)

    def _bucket(self, name: str, capacity: float, rate: float) -> TokenBucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = TokenBucket(capacity, rate)
        return bucket


class SharedBucket(TokenBucket):
    """A bucket that lies with the `Limiter`; all that wait here together take their tokens in one request."""

    def __init__(self, limiter: Any, name: str, bucket: TokenBucket) -> None:
        super().__init__(bucket.capacity, bucket.refill_rate)
        self._limiter = limiter
        self._facts = (name, bucket.capacity, bucket.refill_rate)
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._stock = 0.0
        self._fetching: asyncio.Task[None] | None = None
        self._least: float | None = None

    async def acquire(self, count: float = 1, timeout: float | None = None) -> bool:
        """Take `count` tokens, waiting for them at most `timeout` seconds."""
        self._check(count)
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, granted))
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch())
        try:
            async with asyncio.timeout(timeout):
                await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self._stock += count  # they came, and nobody wants them any more
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def adjust(self, count: float) -> None:
        """Correct an estimate afterwards."""
        self._limiter.adjust.remote(*self._facts, count)

    def limit_to(self, level: float) -> None:
        """Pass on how many the service says are left: the least of those that come together."""
        if self._least is None:
            asyncio.get_running_loop().call_later(0.05, self._pass_on)
        self._least = level if self._least is None else min(level, self._least)

    def _pass_on(self) -> None:
        level, self._least = self._least, None
        if level is not None and level < self.capacity:
            self._limiter.limit_to.remote(*self._facts, level)

    async def _fetch(self) -> None:
        await asyncio.sleep(0)  # who asks in the same round of the loop goes along
        try:
            while self._waiting:
                first = self._waiting[0][0]
                wanted = sum(count for count, granted in self._waiting if not granted.done()) - self._stock
                if wanted > 0:
                    count = min(self.capacity, max(first, min(wanted, self.capacity * _PART)))
                    await self._limiter.take.remote(*self._facts, count)
                    self._stock += count
                self._hand_out()
        except Exception as error:  # noqa: BLE001 - raised where the tokens are waited for
            for _, granted in self._waiting:
                if not granted.done():
                    granted.set_exception(RunError(f"the rate limit cannot be kept: its keeper is gone ({error})"))
            self._waiting.clear()
        finally:
            self._fetching = None

    def _hand_out(self) -> None:
        while self._waiting:
            count, granted = self._waiting[0]
            if not granted.done():
                if self._stock < count - 1e-9:
                    return
                self._stock -= count
                granted.set_result(None)
            self._waiting.popleft()


class SharedLimits(Limits):
    """The limits of one model in one of several workers.

    What the user said is kept by the `Limiter`. What the service tells is for all workers together: each takes its part.
    """

    def __init__(self, settings: LimitSettings, limiter: Any, name: str, workers: int) -> None:
        super().__init__(settings)
        self._workers = workers
        self._requests = [
            SharedBucket(limiter, f"{name}/requests/{number}", bucket) for number, bucket in enumerate(self._requests)
        ]
        if self._tokens is not None:
            self._tokens = SharedBucket(limiter, f"{name}/tokens", self._tokens)

    def takes_off(self, tokens: int) -> bool:  # noqa: ARG002 - as of others
        """Return False: whoever may leave has to ask elsewhere first."""
        return False

    async def wait(self, model_name: str, tokens: int, deadline: Deadline) -> None:
        """Wait until a request may leave, as far as rates and the budget go."""
        await super().wait(model_name, tokens, deadline)
        gate = _gate.get()
        if gate is not None:
            await gate.let_try()

    def learn(self, headers: Mapping[str, str], now: float) -> None:
        """Take in this worker's part of what a reply says is left."""
        requests, tokens = told_limits(headers, now)
        if requests is not None:
            for bucket in self._requests:
                bucket.limit_to(requests.left)
            self._learned_requests.learn(self._part(requests))
        if tokens is not None:
            if self._tokens is not None:
                self._tokens.limit_to(tokens.left)
            self._learned_tokens.learn(self._part(tokens))

    def _part(self, told: Told) -> Told:
        limit = None if told.limit is None else max(1.0, told.limit / self._workers)
        return replace(told, left=told.left / self._workers, limit=limit)


def share_limits(models: Iterable[LLM_Interface], limiter: Any, workers: int) -> None:
    """Let these models, and those that they ask in their turn, keep their rates together with the other workers."""
    waiting = list(models)
    number = 0
    while waiting:
        each = waiting.pop()
        waiting += each.members
        if isinstance(each, HttpModel):
            settings = each._limits.settings  # noqa: SLF001 - its limits are ours to replace, and nobody else's
            each._limits = SharedLimits(settings, limiter, f"{number}/{each.model_name}", workers)  # noqa: SLF001
            number += 1


# --- the budget ----------------------------------------------------------------------------------------------


Needed = tuple[int, int, float]
"""Requests, tokens and USD."""


@dataclass(slots=True)
class Charges:
    """What one row has reserved of the budgets around the map, and has spent of them."""

    scopes: tuple[Spent, ...]
    reserved: Needed = (0, 0, 0.0)
    noted: Needed = (0, 0, 0.0)

    def let(self, needed: Needed, spent: Needed) -> bytes | None:
        """Reserve what a request needs; return why not, where it may not be sent."""
        self._settle(spent)
        requests, tokens, usd = needed
        taken: list[Spent] = []
        try:
            for scope in self.scopes:
                scope.reserve(requests=requests, tokens=tokens, usd=usd)
                taken.append(scope)
        except SimpleLLMFuncError as error:
            for scope in taken:
                scope.settle(reserved=tokens, usage=None, requests=-requests, reserved_usd=usd)
            return encode_error(error)
        self.reserved = (self.reserved[0] + requests, tokens, usd)
        return None

    def end(self, spent: Needed | None) -> None:
        """Settle with what it really came to; None where nobody knows."""
        if spent is None:
            self.lose()
            return
        requests = spent[0] - self.reserved[0]
        self._settle(spent)
        for scope in self.scopes:
            scope.settle(reserved=0, usage=None, requests=requests)

    def lose(self) -> None:
        """Give back what a worker had reserved that is no more; its requests have probably left."""
        self._settle(self.noted)
        self.reserved, self.noted = (0, 0, 0.0), (0, 0, 0.0)

    def _settle(self, spent: Needed) -> None:
        _, tokens, usd = self.reserved
        used = Usage(input_tokens=max(0, spent[1] - self.noted[1]), cost=max(0.0, spent[2] - self.noted[2]))
        for scope in self.scopes:
            scope.settle(reserved=tokens, usage=used, reserved_usd=usd)
        self.reserved, self.noted = (self.reserved[0], 0, 0.0), spent


class Asks(Protocol):
    """Asks the driver whether something may be sent; raises what it says to the contrary."""

    def __call__(self, requests: int, tokens: int, usd: float) -> Awaitable[None]: ...


class Gate:
    """What a row has to pass before each of its requests."""

    def __init__(self, ask: Asks) -> None:
        self._ask = ask
        self._paid = 0

    async def let_question(self, tokens: int, usd: float) -> None:
        """Return when a question may be asked; its first request is paid with it.

        Raises:
            BudgetExceeded: it may not.
        """
        await self._ask(1, tokens, usd)
        self._paid += 1

    async def let_try(self) -> None:
        """Return when one HTTP request may leave.

        Raises:
            BudgetExceeded: it may not.
        """
        if self._paid:
            self._paid -= 1
        else:
            await self._ask(1, 0, 0.0)

    def __enter__(self) -> None:
        _gate.set(self)

    def __exit__(self, *_: object) -> None:
        _gate.set(None)


_gate: ContextVar[Gate | None] = ContextVar("SimpleLLMFunc.ray_gate", default=None)


class GatedLLM(LLM_Interface):
    """A model that asks the driver's budget before each question."""

    def __init__(self, llm: LLM_Interface) -> None:
        self.members = (llm,)
        self.model_name = llm.model_name
        self.provider = llm.provider
        self.profile = llm.profile
        self.context_window = llm.context_window
        self.base_url = llm.base_url

    async def chat(self, messages: Sequence[Message], **arguments: Any) -> ChatCompletion:
        """Ask once and return the whole reply."""
        llm, gate = self.members[0], _gate.get()
        if gate is not None:
            tokens = await count_request(messages, arguments.get("tools"), arguments.get("response_format"))
            await gate.let_question(tokens, llm.price(Usage(input_tokens=tokens)) or 0.0)
        return await llm.chat(messages, **arguments)

    def chat_stream(self, messages: Sequence[Message], **arguments: Any) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield the reply in pieces; no row asks for it so."""
        return self.members[0].chat_stream(messages, **arguments)

    def render(self, messages: Sequence[Message], **arguments: Any) -> dict[str, Any]:
        """Return the body that goes out on the wire."""
        return self.members[0].render(messages, **arguments)

    def price(self, usage: Usage, model: str = "") -> float | None:
        """Return what `usage` costs in USD."""
        return self.members[0].price(usage, model)
