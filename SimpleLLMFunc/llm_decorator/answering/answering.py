"""Answer a call by votes, plain code and the model together."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from contextlib import aclosing
from contextvars import copy_context
from copy import copy
from dataclasses import replace
from typing import Any, Literal

from pydantic import ValidationError

from SimpleLLMFunc import errors
from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.parsing import QuoteCheck, Repair, is_equal
from SimpleLLMFunc.base.run import Answer, AnswerSource, Preview, Result
from SimpleLLMFunc.errors import DeadlineExceeded, ResponseParseError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.spending import Deadline, current_deadline, deadline_scope
from SimpleLLMFunc.llm_decorator.answering.one_request import Question
from SimpleLLMFunc.llm_decorator.answering.plain_code import Agreement, Disagreement, PlainCode
from SimpleLLMFunc.llm_decorator.answering.voting import Voting
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.common.arguments import problems_of
from SimpleLLMFunc.llm_decorator.steps.function.answers import answer_text
from SimpleLLMFunc.logger import border, push_debug, push_warning, shown_error, shown_value
from SimpleLLMFunc.type import ABSTAIN, Confident, Usage
from SimpleLLMFunc.utils import in_context, stepped

NO_SERVICE = (
    errors.ServerUnavailable,
    errors.ConnectionFailed,
    errors.RateLimited,
    errors.StreamInterrupted,
    errors.DeadlineExceeded,
)
"""The service is down or slow."""

_OUT_OF_REACH = (*NO_SERVICE, errors.BadReply, errors.BudgetExceeded)
"""The model cannot answer, or must not. A refused key or request is a mistake to be seen."""

_NOTHING_SPENT = Usage(cost=0.0)

CHANCE = random.Random()  # noqa: S311 - draws samples; not the user's own generator


class Answering:
    """Answers the calls of one function: by votes, by plain code before the model or as its fallback.

    It has the views of its pipeline.

    Args:
        pipeline: asks the model.
        agreement: counts who answered.

    Attributes:
        first, fallback: plain code.
        instance: of a method; plain code gets it first.

    Raises:
        SignatureError: plain code does not fit the function.
    """

    def __init__(self, pipeline: FunctionPipeline, agreement: Agreement) -> None:
        definition, options = pipeline.definition, pipeline.options
        self.pipeline = pipeline
        self.first = None if options.first is None else PlainCode("first", options.first, definition)
        self.fallback = None if options.fallback is None else PlainCode("fallback", options.fallback, definition)
        self.agreement = agreement
        self.instance: Any = None
        is_voted = definition.confident_of is not None or options.calibration is not None
        self.voting = Voting(pipeline) if is_voted else None

    def bound(self, instance: Any) -> Answering:
        """Return a copy for a method of this instance."""
        made = copy(self)
        made.instance = instance
        return made

    def preview(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, stream: bool = False) -> Preview:
        """Return the exact request of a call, without sending it; of several the first one."""
        pipeline, params = (self.pipeline, None) if self.voting is None else self.voting.planned()
        return pipeline.preview(args, kwargs, stream=stream, params=params)

    # --- the views ---

    def value(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        """Return the value of a call when awaited."""
        return self._value(self._begun(Question(args, kwargs)))

    @border
    async def _value(self, work: Awaitable[tuple[Result[Any], str]]) -> Any:
        return (await work)[0].value

    def result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Result[Any]]:
        """Return the value of a call with all that is known of it when awaited."""
        return self._result(self._begun(Question(args, kwargs)))

    @border
    async def _result(self, work: Awaitable[tuple[Result[Any], str]]) -> Result[Any]:
        return (await work)[0]

    async def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer[Any]:
        """Return the answer for a row of a map."""
        result, text = await self._begun(Question(args, kwargs))
        return Answer(result.value, text, result.output_mode, result.usage, result.tries)

    def stream(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield growing values of the model; what a vote or plain code decides comes at once.

        After something was shown no fallback answers.
        """
        return _Call(self, Question(args, kwargs)).streamed()

    def events(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of all runs as they happen; those of votes alternate."""
        return in_context(self._events(args, kwargs), copy_context())

    async def _events(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[ReActEvent, None]:
        events: asyncio.Queue[ReActEvent | None] = asyncio.Queue()
        work = asyncio.ensure_future(self._begun(Question(args, kwargs, events.put_nowait)))
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def _begun(self, question: Question) -> Awaitable[tuple[Result[Any], str]]:
        """Return the work of a call; it sees the context variables of this moment."""
        return stepped(_Call(self, question).answered(), copy_context())


class _Call:
    """One call.

    Raises:
        SignatureError: the arguments do not fit the function.
    """

    def __init__(self, answering: Answering, question: Question) -> None:
        self._answering = answering
        self._pipeline = answering.pipeline
        self._output = answering.pipeline.definition.output
        self._question = question
        # Step 1: wrong arguments are an error here.
        self._asks = answering.pipeline.start(question.args, dict(question.kwargs))
        self._began = time.monotonic()
        self._is_sampled = CHANCE.random() < answering.pipeline.options.sample

    async def answered(self) -> tuple[Result[Any], str]:
        answering = self._answering
        with deadline_scope(self._pipeline.options.deadline) as clock:
            found = await self._by_first(clock)
            if found is not None:
                return found
            try:
                with deadline_scope(self._time_for_model(clock)):
                    found = await self._asked()
            except _OUT_OF_REACH as error:
                if answering.fallback is None:
                    raise
                return await self._by_fallback(answering.fallback, error, clock)
            answering.agreement.count("model")
            if answering.fallback is not None and self._is_sampled:
                await self._compare_fallback(answering.fallback, found[0], clock)
            return found

    async def streamed(self) -> AsyncGenerator[Any, None]:
        answering = self._answering
        if answering.voting is not None:
            yield (await self.answered())[0].value
            return
        clock = Deadline.after(self._pipeline.options.deadline).stricter(current_deadline())
        found = await self._by_first(clock)
        if found is not None:
            yield found[0].value
            return
        is_shown = False
        try:
            with deadline_scope(self._time_for_model(clock)):
                values = self._pipeline.stream(self._question.args, dict(self._question.kwargs))
            async with aclosing(values):
                async for value in values:
                    is_shown = True
                    yield value
        except _OUT_OF_REACH as error:
            if answering.fallback is None or is_shown:
                raise
            yield (await self._by_fallback(answering.fallback, error, clock))[0].value
            return
        answering.agreement.count("model")

    # --- the model ---

    def _time_for_model(self, clock: Deadline) -> float | None:
        """Return the seconds that the model has, None for no further limit.

        Raises:
            DeadlineExceeded: what is left is kept for the fallback.
        """
        left = clock.left()
        if self._answering.fallback is None or left is None:
            return None
        allowed = left - self._pipeline.options.fallback_reserve
        if allowed <= 0:
            raise DeadlineExceeded(clock.seconds, doing="waiting for the model")
        return allowed

    async def _asked(self) -> tuple[Result[Any], str]:
        if self._answering.voting is not None:
            return await self._answering.voting.result(self._question)
        result, _ = await self._question.result(self._pipeline, {})
        return result, result.text

    # --- plain code ---

    async def _said_by(self, code: PlainCode, clock: Deadline) -> Any:
        bound = self._asks.signature.bound_args
        said = await code(bound.args, bound.kwargs, self._answering.instance, clock)
        return said if said is ABSTAIN else self._checked(said, code.name)

    async def _answer_of(self, first: PlainCode, clock: Deadline) -> tuple[Any, list[Repair]] | None:
        """Return what `first` said, judged; None where the model is to answer: it abstained, or a guard wants another answer."""
        said = await self._said_by(first, clock)
        try:
            return None if said is ABSTAIN else await self._judged(said, clock)
        except ResponseParseError as error:
            push_debug(f"{self._asks.func_name!r}: the model is asked after first=: {error}")
            return None

    async def _judged(self, said: Any, clock: Deadline) -> tuple[Any, list[Repair]]:
        """Return what plain code said as the guards let it pass, and what they changed. Raises as `Guards.value`."""
        given = _bare(said), self._asks.arguments, self._text_of(said), self._output
        value, changes = await clock.wait(self._pipeline.guards.value(*given), "asking the guards")
        return (replace(said, value=value) if isinstance(said, Confident) else value), changes

    def _checked(self, said: Any, name: str) -> Any:
        """Return what the code said, of the annotated type.

        Raises:
            UsageError: it is something else.
        """
        is_voted = self._pipeline.definition.confident_of is not None
        problem = ""
        if is_voted and isinstance(said, Confident):
            return replace(said, value=self._checked(said.value, name).value)
        try:
            said = self._output.adapter.validate_python(said, strict=True)
        except ValidationError as error:
            problem = problems_of(error)
        if not problem and self._output.quotes:
            violations = QuoteCheck(self._asks.arguments)(said)
            problem = f"{violations[0][0]}: expected {violations[0][1]}" if violations else ""
        if problem:
            raise UsageError(
                f"{self._asks.func_name}: the plain code of {name}= returned {shown_value(said, 120)}, which is not "
                f"what the function returns ({problem})."
            )
        return Confident(said, asked=0) if is_voted else said

    def _by_code(
        self, value: Any, changes: list[Repair], source: AnswerSource, usage: Usage, trace_id: str
    ) -> tuple[Result[Any], str]:
        text = self._text_of(value)
        return Result(
            value=value,
            text=text,
            attempts=[],
            repairs=changes,
            output_mode="text" if self._output.is_text else "prompt",
            output_mode_reason=f"{source}: plain code answered",
            tool_calls=[],
            messages=[],
            usage=usage,
            seconds=time.monotonic() - self._began,
            trace_id=trace_id,
            cost=usage.cost,
            tries=0,
            source=source,
        ), text

    def _text_of(self, value: Any) -> str:
        text = answer_text(self._output, _bare(value))
        if isinstance(value, Confident):
            mode = "text" if self._output.is_text else "prompt"
            return json.dumps({"asked": 1, "escalated": False, "answers": [[mode, text]]})
        return text

    async def _by_first(self, clock: Deadline) -> tuple[Result[Any], str] | None:
        """Return what `first` says; None where it leaves the call to the model."""
        code, agreement = self._answering.first, self._answering.agreement
        found = None if code is None else await self._answer_of(code, clock)
        if found is None:
            return None
        said, changes = found
        agreement.count("first")
        usage = _NOTHING_SPENT
        if self._is_sampled:
            try:
                asked, _ = await self._asked()
                usage = asked.usage
                self._compare(said, asked.value, "first")
            except SimpleLLMFuncError as error:
                # Asked only to compare: the call has its answer.
                agreement.count_failure()
                usage = error.usage or _NOTHING_SPENT
                push_warning(f"{self._asks.func_name!r}: the model could not be compared with first=: {error}")
        return self._by_code(said, changes, "first", usage, self._asks.trace_id)

    async def _by_fallback(
        self, code: PlainCode, error: SimpleLLMFuncError, clock: Deadline
    ) -> tuple[Result[Any], str]:
        said = await self._said_by(code, clock)
        if said is ABSTAIN:
            raise error
        said, changes = await self._judged(said, clock)
        self._answering.agreement.count("fallback")
        push_warning(f"{self._asks.func_name!r} is answered by its fallback: {error}")
        usage, trace_id = error.usage or _NOTHING_SPENT, error.trace_id or self._asks.trace_id
        found = self._by_code(said, changes, "fallback", usage, trace_id)
        return replace(found[0], attempts=list(error.attempts)), found[1]

    async def _compare_fallback(self, code: PlainCode, found: Result[Any], clock: Deadline) -> None:
        try:
            said = await self._said_by(code, clock)
        except Exception as error:  # noqa: BLE001 - asked only to compare: the call has its answer
            self._answering.agreement.count_failure()
            push_warning(
                f"{self._asks.func_name!r}: fallback= could not be compared with the model: {shown_error(error)}"
            )
            return
        if said is not ABSTAIN:
            self._compare(said, found.value, "fallback")

    def _compare(self, said: Any, answered: Any, source: Literal["first", "fallback"]) -> None:
        code, model = _bare(said), _bare(answered)
        disagreement = Disagreement(dict(self._asks.arguments), code, model, source)
        self._answering.agreement.compare(disagreement, is_same=is_equal(code, model))


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, Confident) else value
