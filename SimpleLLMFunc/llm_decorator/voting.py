"""`-> Confident[T]`: several runs of the one loop, and a vote over their values."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from SimpleLLMFunc.base.output_mode import OutputSpec
from SimpleLLMFunc.base.quotes import QuoteCheck
from SimpleLLMFunc.base.result import OutputMode, Parsed, RepairLevel, Result
from SimpleLLMFunc.base.run import generate_trace_id
from SimpleLLMFunc.errors import (
    ContentBlocked,
    EmptyResponseError,
    OutputTruncated,
    ResponseParseError,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
)
from SimpleLLMFunc.interface.current import resolve_llm, use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.samples import sample_scope
from SimpleLLMFunc.llm_decorator.plain_code import Emit
from SimpleLLMFunc.llm_decorator.steps.function.examples import as_answer
from SimpleLLMFunc.llm_decorator.votes import agreement_of, comparable, decide
from SimpleLLMFunc.logger import async_log_context
from SimpleLLMFunc.type.markers import Confident
from SimpleLLMFunc.type.usage import NO_USAGE, Usage

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

    def _built(self, data: Any, arguments: Mapping[str, Any] | None) -> Any:
        if self.inner.is_text:
            return data
        value = self.inner.parse(json.dumps(data, ensure_ascii=False), "off").value
        if self.inner.quotes and arguments is not None:
            QuoteCheck(arguments)(value)
        return value


async def voted(
    core: FunctionCore, args: tuple[Any, ...], kwargs: dict[str, Any], emit: Emit | None
) -> tuple[Result[Any], str]:
    """Ask as often as the function says, escalate where that is not clear, and return the result.

    The second item is text from which `ConfidentOutput.parse` makes the value again.

    Raises:
        SimpleLLMFuncError: no answer could be used, or the service, a budget or a deadline ended it.
    """
    began = time.monotonic()
    options = core.options
    trace_id = generate_trace_id(core.metadata[4])
    async with async_log_context(trace_id, core.metadata[4]):
        result, kept = await _round(core, args, kwargs, emit, None)
        if result.value.abstained and options.escalate_to is not None:
            stronger, kept = await _round(core, args, kwargs, emit, options.escalate_to)
            usage = result.usage + stronger.usage
            attempts = [*result.attempts, *stronger.attempts]
            result = replace(stronger, usage=usage, cost=usage.cost, attempts=attempts)
    return replace(result, seconds=time.monotonic() - began, trace_id=trace_id), kept


async def _round(
    core: FunctionCore,
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
    arguments = core.signature_of(args, dict(kwargs))[0].bound_args.arguments if core.spec.quotes else None
    is_escalated = stronger is not None
    value = output.decided([one.value for one in results], asked, is_escalated=is_escalated, arguments=arguments)
    kept = {
        "asked": asked,
        "escalated": is_escalated,
        "answers": [[one.output_mode, one.text] for one in results],
    }
    attempts = [attempt for one in outcomes for attempt in one.attempts]
    last = results[-1]
    calls = [call for one in results for call in one.tool_calls]
    is_cached = all(one.cached for one in results)
    found = replace(
        last, value=value, attempts=attempts, usage=usage, cost=usage.cost, tool_calls=calls, cached=is_cached
    )
    return found, json.dumps(kept)


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
    llm = resolve_llm(core.options.llm_interface)
    while llm.members:
        llm = llm.members[0]
    own: Any = getattr(llm, "api_params", None)
    seeds = (core.options.llm_kwargs.get("seed"), own.get("seed") if isinstance(own, Mapping) else None)
    seed = next((each for each in (*seeds, getattr(llm, "seed", None)) if isinstance(each, int)), None)
    return core if seed is None or not number else core.with_options({"seed": seed + number})


def _usage_of(outcomes: Sequence[object]) -> Usage:
    usage = NO_USAGE
    for one in outcomes:
        usage += getattr(one, "usage", None) or NO_USAGE
    return usage
