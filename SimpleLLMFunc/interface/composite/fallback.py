"""FallbackLLM: the next model when one is down, and a second request when one is late."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BadRequest,
    ConfigError,
    ConnectionFailed,
    ContextTooLong,
    DeadlineExceeded,
    RateLimited,
    ServerUnavailable,
    SimpleLLMFuncError,
    StreamInterrupted,
)
from SimpleLLMFunc.interface.attempts import tell_failed_try
from SimpleLLMFunc.interface.composite.question import HedgeAfter, HedgeTimer, Question, Racer
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, given_to, load_prices, priced
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.spending import (
    Deadline,
    charge_lost,
    count_request,
    counting_tries,
    current_deadline,
    is_limited,
)
from SimpleLLMFunc.interface.wires import number
from SimpleLLMFunc.logger import border, push_warning
from SimpleLLMFunc.runtime import ForkSafeLock
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message, Usage
from SimpleLLMFunc.utils import Uncopied

_DOWN = (AuthenticationError, ConnectionFailed, DeadlineExceeded, RateLimited, ServerUnavailable)
"""What makes a member be left out for a while. A deadline: the member's own."""

_NEXT = (*_DOWN, BadReply, ContextTooLong, StreamInterrupted)
"""After what the next member is asked."""


class FallbackLLM(Uncopied, LLM_Interface):
    """Several models as one: the first that is up answers, the next one where it fails.

    The next member is asked after `ServerUnavailable`, `ConnectionFailed`, `RateLimited`, `BadReply`,
    `AuthenticationError`, after a stream that broke before it had shown any text, and after a member's own
    `deadline`; after `ContextTooLong` only one with a larger context window. `BadRequest` is raised: it tells what
    is wrong with the request, which no other service cures (with status 408 or 409 the next member is asked). Each
    member makes all its own tries first.

    A member that is down is left out for `cool_down` seconds, or as long as its service asked; then one call tries
    it again. When all are down, all are asked.

    It looks like its first member (name, provider, address, what it renders), has the features that all members
    share and the smallest context window. Replies name the model that answered; their `tries` count all members.

    Args:
        *llms: the members, best first; or one list of them.
        hedge_after: seconds without an answer (of a stream: without its first piece) after which a second request
            goes to the next member, or, after the last one, to the same one. The first answer counts, the other
            request is cancelled; its HTTP requests, and in budgets its input, count. "p95" waits as long as 95 of
            100 answers took, once 20 are known.
        cool_down: seconds.

    Raises:
        ConfigError: no member, or something that is no model.
    """

    takes_extra_body = True  # each member is given it as it takes it

    @border
    def __init__(
        self, *llms: LLM_Interface | Iterable[LLM_Interface], hedge_after: HedgeAfter = None, cool_down: float = 30.0
    ) -> None:
        only: Any = llms[0] if len(llms) == 1 else None
        given: Any = only if isinstance(only, Iterable) and not isinstance(only, str) else llms
        self.members = tuple(given)
        wrong = [
            type(member).__name__ for member in self.members if not isinstance(cast("object", member), LLM_Interface)
        ]
        if wrong or not self.members:
            raise ConfigError(
                f"FallbackLLM takes models (OpenAICompatible, LocalModel …), at least one, not "
                f"{', '.join(wrong) or 'none'}."
            )
        first = self.members[0]
        self.model_name, self.provider, self.base_url = first.model_name, first.provider, first.base_url
        self.profile = _shared(self.members)
        self.keeps_answers = all(member.keeps_answers for member in self.members)
        self.keeps_tools = all(member.keeps_tools for member in self.members)
        windows = [member.context_window for member in self.members if member.context_window is not None]
        self.context_window = min(windows, default=None)
        self.cool_down = number("cool_down", cool_down, least=0)
        self.hedge_after: HedgeAfter = hedge_after
        self._timers = {False: HedgeTimer(hedge_after), True: HedgeTimer(hedge_after)}
        self._lock = ForkSafeLock()
        self._down_until: dict[int, float] = {}  # on the monotonic clock, by the id of a member that is down

    # --- asking ------------------------------------------------------------------------------------------

    async def chat(self, messages: Sequence[Message], **asked: Any) -> ChatCompletion:
        """Return the whole reply of the first member that gives one; takes what `LLM_Interface.chat` does.

        Raises:
            ProviderError: of the last member asked; its notes tell of the others.
            DeadlineExceeded: `deadline` passed; all members share it.
        """
        question = self._question(messages, **asked)
        if self.hedge_after is not None:
            racer = await self._race(question, is_stream=False)
            return await self._answer(question, racer.member, racer.answered.result())
        while (member := question.next_member()) is not None:
            with counting_tries() as tries:
                try:
                    reply: ChatCompletion = await question.chat(member)
                except SimpleLLMFuncError as error:
                    self._go_on(question, member, error, tries.count)
                    continue
            return await self._answer(question, member, reply)
        raise question.failure()

    async def chat_stream(self, messages: Sequence[Message], **asked: Any) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield the reply of the first member that gives one; after the first piece of text there is no other.

        Raises:
            ProviderError: as `chat`; `StreamInterrupted` when the stream ends before the answer does.
        """
        question = self._question(messages, **asked)
        while True:
            racer = None if self.hedge_after is None else await self._race(question, is_stream=True)
            member = question.next_member() if racer is None else racer.member
            if member is None:
                raise question.failure()
            tries, has_text = 0, False
            source = question.stream(member) if racer is None else racer.chunks()
            try:
                async with aclosing(source):
                    async for chunk in source:
                        tries = max(tries, chunk.tries)
                        has_text = has_text or bool(chunk.text)
                        if chunk.text or chunk.tool_calls or chunk.finish_reason:
                            self._is_up(member)
                        yield await self._chunk(question, member, chunk)
            except SimpleLLMFuncError as error:
                if has_text:
                    raise
                self._go_on(question, member, error, tries)
            else:
                return
            finally:
                if racer is not None:
                    await racer.cancel()

    def _question(
        self, messages: Sequence[Message], *, trace_id: str = "", deadline: float | None = None, **options: Any
    ) -> Question:
        clock = Deadline.after(deadline).stricter(current_deadline())
        clock.check("choosing a model")
        options = {"tools": None, "response_format": None, **options}
        return Question(messages, options, trace_id, clock, deque(self._in_turn()))

    async def _answer(self, asked: Question, member: LLM_Interface, reply: ChatCompletion) -> ChatCompletion:
        self._is_up(member)
        reply = await priced(reply, member)
        return replace(reply, model=reply.model or member.model_name, tries=reply.tries + asked.tries)

    async def _chunk(self, asked: Question, member: LLM_Interface, chunk: ChatCompletionChunk) -> ChatCompletionChunk:
        chunk = await priced(chunk, member) if chunk.usage is not None else chunk
        if chunk.model and not asked.tries:
            return chunk
        return replace(chunk, model=chunk.model or member.model_name, tries=chunk.tries + asked.tries)

    async def _race(self, asked: Question, *, is_stream: bool) -> Racer:
        """Return the first request that has an answer, or has begun to; all others are cancelled."""
        timer = self._timers[is_stream]
        wait = delay = timer.delay()
        running: list[Racer] = []
        winner: Racer | None = None
        try:
            while winner is None:
                if not running:
                    member = asked.next_member()
                    if member is None:
                        raise asked.failure()
                    running.append(Racer(asked, member, is_stream=is_stream))
                    wait = delay
                done, _ = await asyncio.wait(
                    {racer.answered for racer in running}, timeout=wait, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    wait = None
                    member = asked.next_member() or running[-1].member
                    push_warning(f"{asked.trace_id} {member.model_name} is asked as well: no answer so far".strip())
                    running.append(Racer(asked, member, is_stream=is_stream, is_second=True))
                for racer in [racer for racer in running if racer.answered in done]:
                    error = racer.answered.exception()  # raises CancelledError where it was cancelled
                    if error is None:
                        winner = racer
                        break
                    running.remove(racer)
                    self._note_lost(asked, racer, error, is_alone=not running)
        finally:
            try:
                await self._give_up(asked, [racer for racer in running if racer is not winner], timer)
            except BaseException:
                if winner is not None:
                    await winner.cancel()  # its answer is not used
                raise
        assert winner is not None, "the race goes on until there is one"
        timer.note(winner.seconds)
        return winner

    def _note_lost(self, asked: Question, racer: Racer, error: BaseException, *, is_alone: bool) -> None:
        """Return if the race goes on after one request failed."""
        if racer.is_second and not is_alone and not isinstance(error, _NEXT):
            # Such as a budget that has no room for two: the first request goes on.
            push_warning(f"{asked.trace_id} the second request failed: {error}".strip())
        elif isinstance(error, SimpleLLMFuncError):
            self._go_on(asked, racer.member, error, racer.tries)
        else:
            raise error

    async def _give_up(self, asked: Question, racers: Sequence[Racer], timer: HedgeTimer) -> None:
        """Cancel requests, and tell budgets of them: the services have probably read their input."""
        for racer in racers:
            racer.stop()  # all of them first: this task may be cancelled again while it waits
        members: list[LLM_Interface] = []
        try:
            for racer in racers:
                await racer.cancel()
                asked.tries += max(racer.tries, 1)
                members.append(racer.member)
                if not racer.is_second:
                    timer.note(racer.seconds)
        finally:
            if members and is_limited():
                tokens = await count_request(asked.messages, asked.options["tools"], asked.options["response_format"])
                usage = Usage(input_tokens=tokens)
                for member in members:
                    await load_prices(member)
                    charge_lost(replace(usage, cost=member.price(usage)))

    # --- who is up ---------------------------------------------------------------------------------------

    def _in_turn(self) -> list[LLM_Interface]:
        """Return the members in the order in which they are asked: those that are down last."""
        now = time.monotonic()
        up, down = [], []
        with self._lock:
            for member in self.members:
                until = self._down_until.get(id(member))
                if until is None:
                    up.append(member)
                elif now >= until:
                    # This call finds out; until it has, the others leave the member out.
                    self._down_until[id(member)] = now + self.cool_down
                    up.append(member)
                else:
                    down.append((until, member))
        return [*up, *(member for _, member in sorted(down, key=lambda item: item[0]))]

    def _go_on(self, asked: Question, member: LLM_Interface, error: SimpleLLMFuncError, tries: int) -> None:
        """Return if the next member shall be asked after this error.

        Raises:
            SimpleLLMFuncError: no other member helps.
        """
        asked.tries += max(tries, error.tries)
        asked.errors.append((member, error))
        if isinstance(error, DeadlineExceeded) and asked.clock.is_over:
            error.tries = asked.tries
            raise asked.clock.retold(error) from error
        # 408 and 409 tell of the service at this time and not of the request.
        is_next = isinstance(error, _NEXT) or (isinstance(error, BadRequest) and error.status in {408, 409})
        if isinstance(error, (BadRequest, ContextTooLong)):
            self._is_up(member)
        if getattr(error, "partial", "") or not is_next:
            error.tries = asked.tries
            raise error
        if isinstance(error, _DOWN):
            asked_for = error.retry_after if isinstance(error, RateLimited) else None
            with self._lock:
                self._down_until[id(member)] = time.monotonic() + (self.cool_down if asked_for is None else asked_for)
        if isinstance(error, ContextTooLong):
            asked.window = max(asked.window, member.context_window or error.limit or 0)
        if asked.left:
            next_model = asked.left[0].model_name
            tell_failed_try(error, tries=error.tries, pause=0.0, model=member.model_name, next_model=next_model)
            push_warning(f"{asked.trace_id} {member.model_name} failed, the next model is asked: {error}".strip())

    def _is_up(self, member: LLM_Interface) -> None:
        with self._lock:
            self._down_until.pop(id(member), None)

    # --- as a model, and as an object --------------------------------------------------------------------

    def render(self, messages: Sequence[Message], **asked: Any) -> dict[str, Any]:
        """Return the body that goes out to the first member; takes what `LLM_Interface.render` does."""
        return self.members[0].render(messages, **given_to(self.members[0], asked))

    def price(self, usage: Usage, model: str = "") -> float | None:
        """Return what `usage` costs with the first member, or with the one of this name."""
        if not model:
            return self.members[0].price(usage)
        # Who answered has priced its reply already; by another member's list it would be priced wrongly.
        return next((member.price(usage) for member in self.members if member.model_name == model), None)

    def __repr__(self) -> str:
        options = "" if self.hedge_after is None else f", hedge_after={self.hedge_after!r}"
        return f"{type(self).__name__}({', '.join(map(repr, self.members))}{options})"

    def __reduce__(self) -> tuple[Any, ...]:
        return fallback_llm_again, (type(self), self.members, self.hedge_after, self.cool_down)


def _shared(members: Sequence[LLM_Interface]) -> Profile:
    """Return the features that all members have, and the restrictions that any has."""
    profiles = [member.profile for member in members]
    first = profiles[0]
    return replace(
        first,
        name=first.name if all(each.name == first.name for each in profiles) else "fallback",
        native=all(each.native for each in profiles),
        strict=any(each.strict for each in profiles),
        tools="native" if all(each.tools == "native" for each in profiles) else "json",
        tool_choice=all(each.tool_choice for each in profiles),
        forces_tools=all(each.forces_tools for each in profiles),
        stream_usage=all(each.stream_usage for each in profiles),
        keep_reasoning=any(each.keep_reasoning for each in profiles),
        schema_with_tools=all(each.schema_with_tools for each in profiles),
        grammar=all(each.grammar for each in profiles),
        logprobs=min(each.logprobs for each in profiles),
    )


def fallback_llm_again(
    cls: type[FallbackLLM], members: tuple[LLM_Interface, ...], hedge_after: HedgeAfter, cool_down: float
) -> FallbackLLM:
    """Return a `FallbackLLM` as it comes out of a pickle."""
    return cls(*members, hedge_after=hedge_after, cool_down=cool_down)
