"""`-> Confident[T]`: several runs of the one loop, and a vote over their values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import GenericAlias
from typing import Any, Literal

from pydantic import TypeAdapter

from SimpleLLMFunc import errors
from SimpleLLMFunc.base.events import RunFinished, RunStarted
from SimpleLLMFunc.base.parsing import OutputMode, Parsed, QuoteCheck, RepairLevel
from SimpleLLMFunc.base.run import Result, read_off_loop
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.errors import ConfigError, ResponseParseError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.composite import sample_scope
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models
from SimpleLLMFunc.llm_decorator.answering.one_request import OneRequest, Question
from SimpleLLMFunc.llm_decorator.answering.votes import agreement_of, comparable, decide
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.common.log_context import create_log_context_manager
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.llm_decorator.steps.function.answers import answer_text, as_answer
from SimpleLLMFunc.runtime import off_loop_if_large
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, ChatMessage, Choice, Confident, Usage

VOTES = 5
MIN_AGREEMENT = 0.6

_NO_VOTE = (
    errors.ResponseParseError,
    errors.EmptyResponseError,
    errors.OutputTruncated,
    errors.ContentBlocked,
    errors.ToolCallLimitExceeded,
)
"""The model answered, and what it said cannot be used; what the service, a budget or a deadline does ends the call."""


class ConfidentOutput(OutputSpec):
    """The return type ``Confident[T]`` as a map keeps it; what is asked for is a `T`.

    Args:
        pipeline: of the function.
        return_type: ``Confident[T]``.
    """

    def __init__(self, pipeline: FunctionPipeline, return_type: Any) -> None:
        inner, options = pipeline.definition.output, pipeline.options
        super().__init__(return_type, TypeAdapter(return_type), inner.schema, inner.quotes)
        self.is_text = self.is_none = False
        self.inner, self._asked = inner, pipeline.output
        self._min_agreement = MIN_AGREEMENT if options.min_agreement is None else options.min_agreement
        self._vote_on = options.vote_on

    def parse(self, text: str, repair: RepairLevel = "coerce", *, mode: OutputMode | None = None) -> Parsed[Any]:  # noqa: ARG002
        """Make again the value whose answers `decided_and_kept` or `sure_and_kept` wrote down."""
        kept = json.loads(text)
        if "shares" in kept:
            return Parsed(self.sure(kept["written"], kept["shares"], is_escalated=kept["escalated"]))
        answers = [self._asked.parse(answer, repair, mode=asked_as).value for asked_as, answer in kept["answers"]]
        return Parsed(self.decided(answers, kept["asked"], is_escalated=kept["escalated"]))

    def decided(
        self, answers: Sequence[Any], asked: int, *, is_escalated: bool, arguments: Mapping[str, Any] | None = None
    ) -> Confident[Any]:
        """Return what the answers, at least one of `asked`, come to."""
        try:
            shown = [comparable(as_answer(self.inner, answer), answer) for answer in answers]
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"no vote over values without a JSON form ({error}). Give the type a serializer."
            ) from error
        decision = decide(shown, asked, self._vote_on)
        value, agreement = answers[decision.nearest], decision.agreement
        if decision.data != shown[decision.nearest]:
            try:
                value = self._built(decision.data, arguments)
            except ResponseParseError:
                # Fields of several answers that do not go together: the answer that has most of them.
                agreement = agreement_of(shown[decision.nearest], shown, asked, list(agreement))
        # Fields of `vote_on` that no answer has decide nothing.
        abstained = not agreement or any(share < self._min_agreement - 1e-9 for share in agreement.values())
        labels = self.inner.labels
        found = {self.inner.labelled(label): 0.0 for label in labels}
        for answer in answers if labels else ():
            found[answer] += 1 / len(answers)
        return Confident(value, agreement, abstained, tuple(answers), asked, is_escalated, found)

    def sure(self, written: str, shares: Mapping[str, float], *, is_escalated: bool) -> Confident[Any]:
        """Return what the shares of the labels come to, and which label was written."""
        best = max(shares, key=shares.__getitem__)
        found = {self.inner.labelled(label): share for label, share in shares.items()}
        abstained = shares[best] < self._min_agreement - 1e-9
        votes = (self.inner.labelled(written),)
        return Confident(self.inner.labelled(best), {"": shares[best]}, abstained, votes, 1, is_escalated, found)

    def decided_and_kept(
        self, results: Sequence[Result[Any]], asked: int, is_escalated: bool, arguments: Mapping[str, Any]
    ) -> tuple[Confident[Any], str]:
        """Return what the answers come to, and the text from which `parse` makes it again."""
        values = [one.value for one in results]
        kept = {"asked": asked, "escalated": is_escalated, "answers": [[one.output_mode, one.text] for one in results]}
        return self.decided(values, asked, is_escalated=is_escalated, arguments=arguments), json.dumps(kept)

    def sure_and_kept(
        self, result: Result[Any], shares: Mapping[str, float], once: OneRequest, *, is_escalated: bool
    ) -> tuple[Result[Any], str]:
        """Return a result with what its shares come to, and the text from which `parse` makes the value again."""
        written = once.label_of(result.value)
        value = self.sure(written, shares, is_escalated=is_escalated)
        kept = {"asked": 1, "escalated": is_escalated, "written": written, "shares": dict(shares)}
        return replace(result, value=value), json.dumps(kept)

    def _built(self, data: Any, arguments: Mapping[str, Any] | None) -> Any:
        if self.inner.is_text:
            return data
        value = self.inner.parse(json.dumps(data, ensure_ascii=False), "off").value
        if self.inner.quotes and arguments is not None:
            QuoteCheck(arguments)(value)
        return value


class Voting:
    """Asks once or as often as a function says, escalates where that is not clear, and decides.

    Args:
        pipeline: of a function annotated ``-> Confident[T]``, or of one that returns a choice and has a calibration.
        is_confident: what comes out is a `Confident`; None takes what the function returns.
    """

    def __init__(self, pipeline: FunctionPipeline, *, is_confident: bool | None = None) -> None:
        definition = pipeline.definition
        self._pipeline = pipeline
        own = definition.confident_of is not None
        self.is_confident = own if is_confident is None else is_confident
        returned = definition.return_type if own else GenericAlias(Confident, (definition.output.return_type,))
        self.output = ConfidentOutput(pipeline, returned)
        self._once = OneRequest(pipeline) if pipeline.output.labels else None

    def asks_once(self, llm: LLM_Interface, *, is_stronger: bool = False) -> Literal["must", "may"] | None:
        """Say whether a model must or may be asked once, for the log-probabilities of its answer; None for votes.

        Raises:
            ConfigError: it must be asked once, and it gives no log-probabilities.
        """
        once, options = self._once, self._pipeline.options
        if once is None or options.confidence == "votes":
            return None
        is_corrected = options.calibration is not None or self._pipeline.definition.confident_of is None
        if options.confidence == "logprobs" or (is_corrected and not is_stronger):
            once.require(llm, "a calibration" if options.confidence == "auto" else "confidence='logprobs'")
            return "must"
        has_way = options.output_mode in {"auto", "native", "choice"} and not options.toolkit
        return "may" if has_way and options.votes is None and (once.params(llm) or once.is_settled) else None

    def planned(self) -> tuple[FunctionPipeline, Mapping[str, Any]]:
        """Return what asks first, and with which parameters.

        Raises:
            ConfigError: there is no model to ask, or it has to give log-probabilities and gives none.
        """
        llm = self._pipeline.llm
        if self._once is not None and self.asks_once(llm):
            return self._once.pipeline, self._once.params(llm)
        return self._pipeline, {}

    async def result(self, question: Question) -> tuple[Result[Any], str]:
        """Return what the votes come to, and text from which `ConfidentOutput.parse` makes the value again.

        To those who watch it is a run, without turns, of which the votes are parts.

        Raises:
            SimpleLLMFuncError: no answer could be used, or the service, a budget or a deadline ended it.
        """
        pipeline = self._pipeline
        run = pipeline.start(question.args, dict(question.kwargs))
        async with create_log_context_manager(run.func_name, run.trace_id), run:
            run.tell(RunStarted(run.trace_id, []))
            result, kept = await self._decided(run, question)
            value = result.value.value
            run.parsed = Parsed(result.value if self.is_confident else value)
            text = await off_loop_if_large(len(result.text), partial(answer_text, pipeline.definition.output, value))
            choice = Choice(ChatMessage(content=text), finish_reason=result.finish_reason)
            # The votes have told what was asked, and what it took.
            run.tell(RunFinished(ChatCompletion((choice,), cached=result.cached), [], NO_USAGE, 0))
        if not self.is_confident and self._once is not None:
            result, kept = replace(result, value=value), self._once.label_of(value)
        return replace(result, seconds=run.seconds, trace_id=run.trace_id), kept

    async def _decided(self, run: FunctionRun, question: Question) -> tuple[Result[Any], str]:
        result, kept = await self._round(run, question, None)
        stronger_llm = self._pipeline.options.escalate_to
        if result.value.abstained and stronger_llm is not None:
            stronger, kept = await self._round(run, question, stronger_llm)
            result = _counted_in(stronger, [result, stronger])
        return result, kept

    async def _round(
        self, run: FunctionRun, question: Question, stronger: LLM_Interface | None
    ) -> tuple[Result[Any], str]:
        with use_llm(stronger) if stronger is not None else nullcontext():
            found = await self._asked_once(run, question, is_stronger=stronger is not None)
            if not isinstance(found, str):
                return found
            result, kept = await self._voted(run, question, is_stronger=stronger is not None)
        if found:
            result.downgrades.append(("confidence: votes instead of one request", found))
        return result, kept

    async def _asked_once(
        self, run: FunctionRun, question: Question, *, is_stronger: bool
    ) -> tuple[Result[Any], str] | str:
        """Return what one request comes to; a text where votes have to decide: what the model said, if it was to be asked once."""
        llm, once = self._pipeline.llm, self._once
        how = self.asks_once(llm, is_stronger=is_stronger)
        if once is None or how is None:
            return ""
        if how == "may" and (said := once.without(llm)):
            return said
        calibration: Any = None if is_stronger else self._pipeline.options.calibration
        found = await once.ask(question, llm, calibration)
        if not isinstance(found, str):
            return self.output.sure_and_kept(*found, once, is_escalated=is_stronger)
        if how == "must":
            raise ConfigError(f"{run.func_name}: {llm.model_name} gives no log-probabilities: {found}")
        return found

    async def _voted(self, run: FunctionRun, question: Question, *, is_stronger: bool) -> tuple[Result[Any], str]:
        asked = self._pipeline.options.votes or VOTES
        tasks = [asyncio.create_task(self._vote(question, number)) for number in range(asked)]
        try:
            outcomes = await asyncio.gather(*tasks)
        except BaseException as error:
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            if isinstance(error, SimpleLLMFuncError):
                _with_usage_of(error, [*(one for one in done if one is not error), error])
            raise
        results = [one for one in outcomes if isinstance(one, Result)]
        if not results:
            raise _with_usage_of(next(one for one in outcomes if isinstance(one, SimpleLLMFuncError)), outcomes)
        decide_on = partial(self.output.decided_and_kept, results, asked, is_stronger, run.arguments)
        value, kept = await read_off_loop(self.output.inner, sum(len(one.text) for one in results), decide_on)
        calls = [call for one in results for call in one.tool_calls]
        is_cached = all(one.cached for one in results)
        return _counted_in(replace(results[-1], value=value, tool_calls=calls, cached=is_cached), outcomes), kept

    async def _vote(self, question: Question, number: int) -> Result[Any] | SimpleLLMFuncError:
        """Return one vote, or the error of one that cannot be used."""
        with sample_scope(number):
            try:
                return (await question.result(self._pipeline, self._reseeded(number)))[0]
            except _NO_VOTE as error:
                return error

    def _reseeded(self, number: int) -> dict[str, Any]:
        """Return another seed where one is set: the same one would give the same answer again."""
        options = self._pipeline.options
        llm = answering_models(self._pipeline.llm)[0]
        own: Any = getattr(llm, "api_params", None)
        seeds = (options.llm_kwargs.get("seed"), own.get("seed") if isinstance(own, Mapping) else None)
        seed = next((each for each in (*seeds, getattr(llm, "seed", None)) if isinstance(each, int)), None)
        return {} if seed is None or not number else {"seed": seed + number}


def _counted_in(result: Result[Any], parts: Sequence[Result[Any] | SimpleLLMFuncError]) -> Result[Any]:
    """Return a result that also tells of the other runs it took: usage, attempts, downgrades, steps from the journal."""
    usage = _usage_of(parts)
    return replace(
        result,
        usage=usage,
        cost=usage.cost,
        attempts=[attempt for part in parts for attempt in part.attempts],
        downgrades=list(dict.fromkeys(each for part in parts for each in part.downgrades)),
        replayed=[step for part in parts for step in part.replayed],
    )


def _usage_of(outcomes: Sequence[object]) -> Usage:
    return sum((getattr(one, "usage", None) or NO_USAGE for one in outcomes), NO_USAGE)


def _with_usage_of(error: SimpleLLMFuncError, outcomes: Sequence[object]) -> SimpleLLMFuncError:
    usage = _usage_of(outcomes)
    return error.with_run(usage=usage, cost=usage.cost)
