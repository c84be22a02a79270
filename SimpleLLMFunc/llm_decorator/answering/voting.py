"""`-> Confident[T]`: several runs of the one loop, and a vote over their values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from SimpleLLMFunc.base.events import ReActEvent, RunFinished, RunStarted
from SimpleLLMFunc.base.metadata import RunFacts
from SimpleLLMFunc.base.parsing import OutputMode, Parsed, QuoteCheck, RepairLevel
from SimpleLLMFunc.base.run import LARGE_ANSWER, Recording, Result, RunRecord, generate_trace_id
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.errors import (
    ContentBlocked,
    EmptyResponseError,
    OutputTruncated,
    ResponseParseError,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
)
from SimpleLLMFunc.interface.composite import sample_scope
from SimpleLLMFunc.interface.current import resolve_llm, use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.llm_decorator.answering.plain_code import Emit
from SimpleLLMFunc.llm_decorator.answering.votes import agreement_of, comparable, decide
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.llm_decorator.steps.function.answers import answer_text, as_answer
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, ChatMessage, Choice, Confident, Usage

if TYPE_CHECKING:
    from SimpleLLMFunc.llm_decorator.function_core import FunctionCore

__all__ = ["ConfidentOutput", "voted"]

VOTES = 5
MIN_AGREEMENT = 0.6

_NO_VOTE = (ResponseParseError, EmptyResponseError, OutputTruncated, ContentBlocked, ToolCallLimitExceeded)
"""The model answered, and what it said cannot be used; what the service, a budget or a deadline does ends the call."""


class ConfidentOutput(OutputSpec):
    """The return type ``Confident[T]`` as a map keeps it; what is asked for is a `T`.

    Args:
        inner: of `T`.
        return_type: ``Confident[T]``.
        min_agreement, vote_on: of the function.
    """

    def __init__(
        self, inner: OutputSpec, return_type: Any, min_agreement: float | None, vote_on: Sequence[str] | None
    ) -> None:
        super().__init__(return_type, TypeAdapter(return_type), inner.schema, inner.quotes)
        self.is_text = self.is_none = False
        self.inner = inner
        self._min_agreement = MIN_AGREEMENT if min_agreement is None else min_agreement
        self._vote_on = vote_on

    def parse(self, text: str, repair: RepairLevel = "coerce", *, mode: OutputMode | None = None) -> Parsed[Any]:  # noqa: ARG002
        """Vote again over the answers that `as_text` wrote down."""
        kept = json.loads(text)
        answers = [self.inner.parse(answer, repair, mode=asked_as).value for asked_as, answer in kept["answers"]]
        return Parsed(self.decided(answers, kept["asked"], is_escalated=kept["escalated"]))

    def decided(
        self, answers: Sequence[Any], asked: int, *, is_escalated: bool, arguments: Mapping[str, Any] | None = None
    ) -> Confident[Any]:
        """Return what the answers, at least one of `asked`, come to."""
        shown = [comparable(as_answer(self.inner, answer), answer) for answer in answers]
        decision = decide(shown, asked, self._vote_on)
        value, agreement = answers[decision.nearest], decision.agreement
        if decision.data != shown[decision.nearest]:
            try:
                value = self._built(decision.data, arguments)
            except ResponseParseError:
                # Fields of several answers that do not go together: the answer that has most of them.
                agreement = agreement_of(shown[decision.nearest], shown, asked, list(agreement))
        abstained = any(share < self._min_agreement - 1e-9 for share in agreement.values())
        return Confident(value, agreement, abstained, tuple(answers), asked, is_escalated)

    def decided_and_kept(
        self, results: Sequence[Result[Any]], asked: int, is_escalated: bool, arguments: Mapping[str, Any]
    ) -> tuple[Confident[Any], str]:
        """Return what the answers come to, and the text from which `parse` makes it again."""
        values = [one.value for one in results]
        kept = {
            "asked": asked,
            "escalated": is_escalated,
            "answers": [[one.output_mode, one.text] for one in results],
        }
        return self.decided(values, asked, is_escalated=is_escalated, arguments=arguments), json.dumps(kept)

    def _built(self, data: Any, arguments: Mapping[str, Any] | None) -> Any:
        if self.inner.is_text:
            return data
        value = self.inner.parse(json.dumps(data, ensure_ascii=False), "off").value
        if self.inner.quotes and arguments is not None:
            QuoteCheck(arguments)(value)
        return value


async def voted(
    core: FunctionCore, signature: FunctionSignature, args: tuple[Any, ...], kwargs: dict[str, Any], emit: Emit | None
) -> tuple[Result[Any], str]:
    """Ask as often as the function says, escalate where that is not clear, and return the result.

    To those who watch it is a run, without turns of its own, of which the votes are parts. The second item is text
    from which `ConfidentOutput.parse` makes the value again.

    Raises:
        SimpleLLMFuncError: no answer could be used, or the service, a budget or a deadline ended it.
    """
    arguments = signature.bound_args.arguments
    record = RunRecord(signature.func_name, generate_trace_id(signature.func_name))
    found: list[tuple[Result[Any], str]] = []

    async def events() -> AsyncGenerator[ReActEvent, None]:
        yield RunStarted(record.trace_id, [])
        result, kept = await _decided(core, arguments, args, kwargs, emit)
        found.append((result, kept))
        record.parsed = Parsed(result.value)
        said = partial(answer_text, core.spec, result.value.value)
        text = await in_thread(said) if len(result.text) > LARGE_ANSWER else said()
        choice = Choice(ChatMessage(content=text), finish_reason=result.finish_reason)
        # The votes have told what was asked, and what it took.
        yield RunFinished(ChatCompletion((choice,), cached=result.cached), [], NO_USAGE, 0)

    async def begin(_: Deadline) -> AsyncGenerator[ReActEvent, None]:
        return events()

    await Recording(record, begin, sinks=core.options.sinks, facts=lambda: RunFacts(core.facts, arguments)).finish()
    ((result, kept),) = found
    return replace(result, seconds=record.seconds, trace_id=record.trace_id), kept


async def _decided(
    core: FunctionCore,
    arguments: Mapping[str, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    emit: Emit | None,
) -> tuple[Result[Any], str]:
    result, kept = await _round(core, arguments, args, kwargs, emit, None)
    if result.value.abstained and core.options.escalate_to is not None:
        stronger, kept = await _round(core, arguments, args, kwargs, emit, core.options.escalate_to)
        usage = result.usage + stronger.usage
        attempts = [*result.attempts, *stronger.attempts]
        result = replace(stronger, usage=usage, cost=usage.cost, attempts=attempts)
    return result, kept


async def _round(
    core: FunctionCore,
    arguments: Mapping[str, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    emit: Emit | None,
    stronger: LLM_Interface | None,
) -> tuple[Result[Any], str]:
    asked = core.options.votes or VOTES
    with use_llm(stronger) if stronger is not None else nullcontext():
        tasks = [asyncio.create_task(_vote(core, args, kwargs, number, emit)) for number in range(asked)]
    try:
        outcomes = await asyncio.gather(*tasks)
    except BaseException as error:
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(error, SimpleLLMFuncError):
            usage = _usage_of([*(one for one in done if one is not error), error])
            error.with_run(usage=usage, cost=usage.cost)
        raise
    results = [one for one in outcomes if isinstance(one, Result)]
    usage = _usage_of(outcomes)
    if not results:
        lost = next(one for one in outcomes if isinstance(one, SimpleLLMFuncError))
        raise lost.with_run(usage=usage, cost=usage.cost)
    output = core.confident_output
    assert output is not None, "it votes"
    decide_on = partial(output.decided_and_kept, results, asked, stronger is not None, arguments)
    # Comparing long answers would hold up the event loop.
    is_long = sum(len(one.text) for one in results) > LARGE_ANSWER
    value, kept = await in_thread(decide_on) if is_long else decide_on()
    attempts = [attempt for one in outcomes for attempt in one.attempts]
    last = results[-1]
    calls = [call for one in results for call in one.tool_calls]
    is_cached = all(one.cached for one in results)
    found = replace(
        last, value=value, attempts=attempts, usage=usage, cost=usage.cost, tool_calls=calls, cached=is_cached
    )
    return found, kept


async def _vote(
    core: FunctionCore, args: tuple[Any, ...], kwargs: dict[str, Any], number: int, emit: Emit | None
) -> Result[Any] | SimpleLLMFuncError:
    """Return one vote, or the error of one that cannot be used."""
    with sample_scope(number):
        run = _reseeded(core, number).start(args, dict(kwargs), stream=emit is not None)
        try:
            if emit is not None:
                await emit.all_of(run)
            return await core.result(run)
        except _NO_VOTE as error:
            return error


def _reseeded(core: FunctionCore, number: int) -> FunctionCore:
    """Return the core with another seed where one is set: the same one would give the same answer again."""
    llm = answering_models(resolve_llm(core.options.llm_interface))[0]
    own: Any = getattr(llm, "api_params", None)
    seeds = (core.options.llm_kwargs.get("seed"), own.get("seed") if isinstance(own, Mapping) else None)
    seed = next((each for each in (*seeds, getattr(llm, "seed", None)) if isinstance(each, int)), None)
    return core if seed is None or not number else core.with_options({"seed": seed + number})


def _usage_of(outcomes: Sequence[object]) -> Usage:
    usage = NO_USAGE
    for one in outcomes:
        usage += getattr(one, "usage", None) or NO_USAGE
    return usage
