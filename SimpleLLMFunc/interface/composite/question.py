"""How a model made of models asks those behind it: reasoning apart, each in turn, or a second one when the first is late.

The readers of our wires put the reasoning of a reply apart; of a user's own class that is done here. Of several answers
to one question a cache keeps one for each sample, and joins no two of them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, cut
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, given_to
from SimpleLLMFunc.interface.spending import Deadline, counting_tries
from SimpleLLMFunc.interface.wires import StreamedThoughts, answer_in, put_right
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message
from SimpleLLMFunc.utils import ScopedVar, is_number

HedgeAfter: TypeAlias = float | Literal["p95"] | None
"""Seconds, or "p95": as long as 95 of 100 answers have taken; None never asks twice."""

_REMEMBERED = 200
_FEWEST = 20
"""Answers that must be known before "p95" means anything; until then nothing is asked twice."""


async def reply_of(llm: LLM_Interface, messages: Sequence[Message], **asked: Any) -> ChatCompletion:
    """Return the whole reply of `llm`; takes what `LLM_Interface.chat` does."""
    with _partial_answer():
        return put_right(await llm.chat(messages, **asked))


async def chunks_of(
    llm: LLM_Interface, messages: Sequence[Message], **asked: Any
) -> AsyncGenerator[ChatCompletionChunk, None]:
    """Yield the stream of `llm`; takes what `LLM_Interface.chat_stream` does."""
    thoughts = StreamedThoughts()
    async with aclosing(llm.chat_stream(messages, **asked)) as chunks:
        with _partial_answer():
            async for chunk in chunks:
                yield thoughts.apart(chunk)
        if rest := thoughts.rest():
            yield rest


@contextmanager
def _partial_answer() -> Iterator[None]:
    """Take the reasoning out of the text that an error has got."""
    try:
        yield
    except SimpleLLMFuncError as error:
        if partial := getattr(error, "partial", ""):
            error.partial = answer_in(partial)  # type: ignore[attr-defined]
        raise


# --- each in turn ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Question:
    """What is asked, the same of each member, and what came of it so far.

    Attributes:
        left: members that may still be asked, in order.
        tries: HTTP requests of the members that failed or were not waited for.
        window: tokens of the largest member that found the request too long; 0 where none did.
    """

    messages: Sequence[Message]
    options: Mapping[str, Any]
    trace_id: str
    clock: Deadline
    left: deque[LLM_Interface]
    tries: int = 0
    window: int = 0
    errors: list[tuple[LLM_Interface, SimpleLLMFuncError]] = field(default_factory=list)

    def next_member(self) -> LLM_Interface | None:
        """Return the member to ask next, None after the last."""
        while self.left:
            member = self.left.popleft()
            if not self.window or member.context_window is None or member.context_window > self.window:
                return member
        return None

    def chat(self, member: LLM_Interface) -> Any:
        """Return the coroutine that asks `member`."""
        options = given_to(member, self.options)
        return reply_of(member, self.messages, trace_id=self.trace_id, deadline=self.clock.left(), **options)

    def stream(self, member: LLM_Interface) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Return the stream of `member`."""
        options = given_to(member, self.options)
        return chunks_of(member, self.messages, trace_id=self.trace_id, deadline=self.clock.left(), **options)

    def failure(self) -> SimpleLLMFuncError:
        """Return the error of the last member, whose notes tell of the others."""
        (_, last) = self.errors[-1]
        for member, error in self.errors[:-1]:
            last.add_note(
                f"Before that {member.model_name} ({member.provider}): {type(error).__name__}: {cut(str(error))}"
            )
        last.tries = self.tries
        return last


# --- a second one when the first is late -----------------------------------------------------------------


class HedgeTimer:
    """Knows after how many seconds a second request leaves.

    Raises:
        ConfigError: neither seconds above 0 nor "p95".
    """

    def __init__(self, after: HedgeAfter) -> None:
        given: Any = after
        if given is not None and given != "p95" and not (is_number(given) and 0 < given < math.inf):
            raise ConfigError(f'hedge_after is {after!r}; it must be seconds above 0, or "p95", or None.')
        self.after: HedgeAfter = after
        self._taken: deque[float] = deque(maxlen=_REMEMBERED)

    def note(self, seconds: float) -> None:
        """Take in how long an answer took; of one that was not waited for, how long it had taken by then."""
        self._taken.append(seconds)

    def delay(self) -> float | None:
        """Return the seconds after which a second request leaves, None where none does."""
        if self.after != "p95":
            return self.after
        taken = sorted(self._taken)
        return taken[math.ceil(0.95 * len(taken)) - 1] if len(taken) >= _FEWEST else None


class Racer:
    """One request among several for the same answer, in its own task: a stream begins, goes on and ends there.

    Attributes:
        answered: gives the whole reply; of a stream None, when it has shown something of its answer, or its end.
        member: the model it asks.
        is_second: it was started because another one is late.
    """

    def __init__(self, asked: Question, member: LLM_Interface, *, is_stream: bool, is_second: bool = False) -> None:
        self.member = member
        self.is_second = is_second
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.started = time.monotonic()
        self._count: Callable[[], int] = int
        self._begun: list[ChatCompletionChunk] = []
        self._further: asyncio.Queue[ChatCompletionChunk | BaseException | None] = asyncio.Queue(maxsize=1)
        self._task = asyncio.create_task(self._ask(asked, is_stream=is_stream))
        self._task.add_done_callback(lambda _: self.answered.cancel())  # does nothing where it is known

    @property
    def seconds(self) -> float:
        """Since it left."""
        return time.monotonic() - self.started

    @property
    def tries(self) -> int:
        """HTTP requests so far, as far as the model tells."""
        return self._count()

    async def chunks(self) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield all chunks of a stream, from the first."""
        for chunk in self._begun:
            yield chunk
        while (further := await self._further.get()) is not None:
            if isinstance(further, BaseException):
                raise further
            yield further

    def stop(self) -> None:
        """Begin to end it."""
        self._task.cancel()

    async def cancel(self) -> None:
        """End it and wait until nothing of it is left."""
        self.stop()
        await asyncio.gather(self._task, self.answered, return_exceptions=True)

    async def _ask(self, asked: Question, *, is_stream: bool) -> None:
        end: BaseException | None = None
        try:
            with counting_tries() as tries:
                self._count = lambda: tries.count
                if is_stream:
                    await self._read(asked)
                else:
                    self.answered.set_result(await asked.chat(self.member))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not self.answered.done() or (task is not None and task.cancelling()):
                raise
            end = error  # the stream cancelled itself: its reader must not wait for more
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
            end = error
            if not self.answered.done():
                self.answered.set_exception(error)
        await self._further.put(end)
        if not self.answered.done():
            self.answered.set_result(None)  # the stream was empty

    async def _read(self, asked: Question) -> None:
        async with aclosing(asked.stream(self.member)) as source:
            async for chunk in source:
                if self.answered.done():
                    await self._further.put(chunk)
                    continue
                self._begun.append(chunk)
                if chunk.text or chunk.tool_calls or chunk.finish_reason:
                    self.answered.set_result(None)


# --- which of several answers ------------------------------------------------------------------------------

_SAMPLE: ScopedVar[int] = ScopedVar("SimpleLLMFunc.sample", 0)


def sample_scope(number: int) -> AbstractContextManager[None]:
    """Ask inside for the answer `number` to each question; 0 is the one that everybody asks for.

    Scopes multiply: sample 1 inside sample 2 is neither.
    """
    return _SAMPLE.within(_SAMPLE.get() * 1_000_003 + number)


def current_sample() -> int:
    """Return which answer is asked for."""
    return _SAMPLE.get()
