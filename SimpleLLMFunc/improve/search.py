"""The search: candidates in rounds on the choice part, then one test on the held-out part."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic_core import to_jsonable_python

from SimpleLLMFunc.batch import RunOptions, check_options, limits, map_rows, replaced_whole
from SimpleLLMFunc.config import file_to_write
from SimpleLLMFunc.errors import BudgetExceeded, SimpleLLMFuncError, UsageError, cut
from SimpleLLMFunc.evaluate.cases import UNKNOWN, CheckedCase, checked_cases
from SimpleLLMFunc.evaluate.comparison import difference_of
from SimpleLLMFunc.evaluate.run import Variants, checked_function, named_scorers
from SimpleLLMFunc.improve.asking import SERVICE, Asking, Ledger, function_requests, removed
from SimpleLLMFunc.improve.candidates import AS_IT_WAS, Candidate, calibrated, candidates_of, example_lines
from SimpleLLMFunc.improve.plan import Parts, affordable, parted, rounds
from SimpleLLMFunc.improve.proposals import Proposer, Task, as_proposer, is_wording, reworded
from SimpleLLMFunc.llm_decorator.calibrated import LEAST_ROWS, asked_once, calibrate
from SimpleLLMFunc.llm_decorator.decorated import Function, pipeline_of
from SimpleLLMFunc.llm_decorator.improving import Improved
from SimpleLLMFunc.llm_decorator.steps.function.improvement import Improvement
from SimpleLLMFunc.logger import border, mask_known
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.statistics import score_interval
from SimpleLLMFunc.utils import is_number

_MOST = 24
"""Candidates; more of them find chance rather than gains."""

_ALPHA = 0.05
_FIRST = 5
"""Cases that the function as it was is asked for, before anything is planned."""

_PER_CASE = 3
"""Requests for each case where no budget is given."""


@border
async def improved(
    f: Any,
    cases: Any,
    *,
    scorer: Any = "exact",
    budget: Any = None,
    proposer: Any = None,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    concurrency: Any = "auto",
    progress: Any = None,
) -> Improved[Any]:
    """Do what `f.improve` promises; see there."""
    function = checked_function(f, "improve")
    options: RunOptions = {"concurrency": concurrency, "progress": progress}
    check_options(options, RunOptions)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed is a whole number, not {seed!r}.")
    writer = as_proposer(proposer)
    reader = Variants(function).reader
    checked = await in_thread(checked_cases, cases, reader)
    parts = await in_thread(parted, checked, seed)
    place = None if path is None else file_to_write(path)
    if place is not None:
        options["checkpoint"] = place.with_name(f"{place.name}.sqlite")
    (judge,) = await in_thread(named_scorers, [scorer], checked)
    with limits({"budget": _limit(budget, parts, function)}):
        ledger = await in_thread(Ledger, options.get("checkpoint"))
        asking = Asking(function, judge, options, 2 * len(parts.held_out), ledger)
        _check_budget(asking, parts)
        search = _Search(function, asking, parts, seed)
        made = [] if writer is None else await search.proposed(writer, options)
        made += await search.calibrated(options)
        await search.run(await in_thread(example_lines, parts.train, reader), made)
        result = search.result(await search.tested())
    if place is not None:
        await in_thread(_write, place, result.report)
        if not search.is_unfinished:
            await in_thread(removed, place.with_name(f"{place.name}.sqlite"))
    return result


def _limit(budget: Any, parts: Parts, function: Function) -> Any:
    if budget is None:
        return {"requests": _PER_CASE * sum(map(len, parts)) * function_requests(function)}
    if isinstance(budget, (Mapping, AbstractContextManager)):
        return budget
    if not is_number(budget) or budget < 0 or budget % 1 != 0:
        raise UsageError(f"budget is a whole number of requests, or a budget(...), not {budget!r}.")
    return {"requests": budget}


def _check_budget(asking: Asking, parts: Parts) -> None:
    if asking.questions_left() >= 2:
        return
    wanted = asking.requests_for(2 * len(parts.held_out) + 2)
    good = asking.requests_for(2 * len(parts.held_out) + 2 * len(parts.choice))
    raise UsageError(
        f"the budget is too small: {len(parts.held_out)} held-out cases are asked twice at the end. It takes {wanted} "
        f"requests at least, and there are {asking.left().get('requests', 0):g}. From {good} on all cases of the choice part are used."
    )


def _write(place: Path, report: Mapping[str, Any]) -> None:
    with replaced_whole(place) as part:
        part.write_text(mask_known(Improvement.file_text(report)), encoding="utf-8", errors="replace")


class _Search:
    """One search.

    Attributes:
        is_unfinished: the budget ended before the test did.
    """

    def __init__(self, function: Function, asking: Asking, parts: Parts, seed: int) -> None:
        self._function = function
        self._pipeline = pipeline_of(function)
        self._asking = asking
        self._parts = parts
        self._seed = seed
        self._tried: list[Candidate] = []
        self._cases: list[CheckedCase] = []
        self.is_unfinished = False

    async def proposed(self, proposer: Proposer, options: RunOptions) -> list[Candidate]:
        """Return other wordings, as far as the budget allows to ask for them."""
        # A third of what is there: wordings have to be compared as well.
        train = self._parts.train[: int(min(len(self._parts.train), self._asking.questions_left() // 3))]
        try:
            with self._asking.before_the_end():
                task = Task(self._pipeline, self._asking, train)
                wordings: Any = await proposer.propose(task, seed=self._seed, options=options)
        except BudgetExceeded:
            return []
        if not isinstance(wordings, Sequence) or not all(map(is_wording, wordings)):
            told = cut(repr(wordings), 200)
            raise UsageError(
                f"{type(proposer).__name__}.propose returns a list of Wording(str, {{str: str}}), not {told}."
            )
        return reworded(self._pipeline, wordings)

    async def calibrated(self, options: RunOptions) -> list[Candidate]:
        """Return the function with a calibration from the train part, where it can have one and the budget allows it."""
        pipeline = self._pipeline
        known = [case for case in self._parts.train if case.expected is not UNKNOWN]
        known = known[: int(max(0, min(len(known), self._asking.questions_left() // 3)))]
        if len(pipeline.definition.output.labels) < 2 or len(known) < LEAST_ROWS:
            return []
        rows, labels = [dict(case.arguments) for case in known], [case.wanted for case in known]
        try:
            async with self._asking.part("calibration"):
                with self._asking.before_the_end():
                    # One row tells whether the model gives log-probabilities: all the others would tell the same.
                    probe = await map_rows(asked_once(pipeline), rows[:1], **options, on_error="raise")
                    await in_thread(self._asking.count, probe)
                    await in_thread(probe.close)
                    found = await calibrate(pipeline, rows, labels, None, options, self._asking.count)
        except SERVICE:
            raise
        except SimpleLLMFuncError:
            return []  # not its model, not the way it is asked, or not within the budget
        return [calibrated(pipeline, found)]

    async def run(self, lines: Sequence[dict[str, Any]], made: Sequence[Candidate]) -> None:
        """Compare candidates on the choice part, those that were `made` first; the best one is the first of `_tried` then.

        Raises:
            UsageError: there is nothing to vary.
        """
        there = [*made, *await in_thread(candidates_of, self._pipeline, lines, self._seed)][:_MOST]
        if not there:
            raise UsageError(
                f"there is nothing to vary in {self._function.__name__}: no case can serve as an example, only one output mode is "
                "possible, and the prompt template is your own. Give proposer= a model that proposes other wordings."
            )
        # As it was, first: how many requests a question takes, re-asks and tools included, decides how many can be tried.
        left = self._asking.questions_left()
        first = self._parts.choice[: int(min(_FIRST, left // 2))]
        await self._round([], first)
        left = min(left, self._asking.questions_left() + len(first))
        count, most = affordable(len(there), len(self._parts.choice), left)
        alive = there[:count]
        self._tried = list(alive)
        for number, (keep, upto) in enumerate(rounds(count, most)):
            if number:
                alive = self._ranked(alive)[:keep]
                alive += self._children(alive)
            cases = self._parts.choice[:upto]
            alive = await self._round(alive, cases)
            if self._asking.stopped is not None:
                break  # the last whole round decides
            self._cases = cases
        self._tried = sorted(self._ranked(self._tried), key=lambda each: each not in alive)

    async def _round(self, alive: list[Candidate], cases: list[CheckedCase]) -> list[Candidate]:
        """Ask those that the budget still allows, and return them."""
        while True:
            pairs = [(candidate, case) for candidate in [AS_IT_WAS, *alive] for case in cases]
            questions = [pair for pair in pairs if not self._asking.is_asked(*pair)]
            # Re-asks and tools may have taken more than was planned.
            if len(questions) <= self._asking.questions_left() or len(alive) <= 1:
                break
            alive = alive[:-1]
        await self._asking.ask(questions)
        return alive

    def _ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return them, the best first; of equals the one that was more promising."""
        return sorted(candidates, key=lambda each: -self._asking.mean(each, self._cases))

    def _children(self, alive: Sequence[Candidate]) -> list[Candidate]:
        """Return the two best that change different things, together, where neither does harm alone."""
        least = self._asking.mean(AS_IT_WAS, self._cases)
        good = [each for each in alive if self._asking.mean(each, self._cases) >= least]
        for number, second in enumerate(good):
            for first in good[:number]:
                child = first.joined(second)
                known = {each.name for each in self._tried}
                if child is not None and child.name not in known and child.is_possible(self._pipeline):
                    self._tried.append(child)
                    return [child]
        return []

    # --- the test -----------------------------------------------------------------------------------------------

    async def tested(self) -> list[tuple[float, float]]:
        """Ask for the held-out cases, each once as the function was and once as found; return the pairs of scores."""
        found = self._tried[0]
        # All of them, unless questions take more than could be foreseen. That is decided before one of them is asked.
        cases = self._parts.held_out[: int(self._asking.questions_left(at_the_end=True) // 2)]
        questions = [(candidate, case) for case in cases for candidate in (AS_IT_WAS, found)]
        await self._asking.ask(questions, at_the_end=True)
        self.is_unfinished = self._asking.stopped is not None
        pairs = zip(self._asking.scores(AS_IT_WAS, cases), self._asking.scores(found, cases), strict=True)
        return [(before, after) for before, after in pairs if before is not None and after is not None]

    def result(self, pairs: Sequence[tuple[float, float]]) -> Improved[Any]:
        """Return what it came to."""
        best, about, spent = self._tried[0], self._pipeline.called.metadata, self._asking.spent
        test = difference_of(pairs, 0.95) if pairs else None
        is_accepted = test is not None and not self.is_unfinished and test.p < _ALPHA and test.difference > 0
        changes = best.changes if is_accepted else ()
        report: dict[str, Any] = {
            "function": about.place,
            "version": about.version,
            "model": self._pipeline.llm.model_name,
            "accepted": is_accepted,
            "why": self._why(is_accepted, test),
            "changes": [asdict(each) for each in changes],
            "options": dict(best.options) if is_accepted else {},
            "held_out": {
                "cases": len(pairs),
                "before": _interval([before for before, _ in pairs]),
                "after": _interval([after for _, after in pairs]),
                "difference": test and test.difference,
                "interval": test and [test.low, test.high],
                "p_value": test and test.p,
                "test": test and test.test,
                "better": test and test.better,
                "worse": test and test.worse,
            },
            "choice": {
                "cases": len(self._cases),
                "before": _interval(self._asking.scores(AS_IT_WAS, self._cases)),
                "after": _interval(self._asking.scores(best, self._cases)),
            },
            "tested": best.name,
            "tried": [self._told(each) for each in self._tried],
            "split": {"seed": self._seed, **{name: len(part) for name, part in self._parts._asdict().items()}},
            "spent": {"requests": spent.requests, "tokens": spent.tokens, "usd": spent.usd},
        }
        found = Improvement(report["options"], about.version, is_checked=True, report=report)
        return Improved(
            function=self._function.with_options(improvement=found) if is_accepted else self._function,
            accepted=is_accepted,
            before=test.first if test else math.nan,
            after=test.second if test else math.nan,
            interval=(test.low, test.high) if test else (-math.inf, math.inf),
            p_value=test.p if test else 1.0,
            changes=changes,
            spent=spent,
            why=report["why"],
            report=report,
        )

    def _why(self, is_accepted: bool, test: Any) -> str:
        if is_accepted:
            return "accepted: better on cases that the search never saw, beyond chance."
        if test is None or self.is_unfinished:
            return (
                "not accepted: the held-out cases could not all be asked within the budget, or the scorer gave no score "
                "for them. The function is as it was."
            )
        if test.difference <= 0:
            return "not accepted: what did best in the search is no better on cases that it never saw. The function is as it was."
        return "not accepted: the difference on the held-out cases may be chance. The function is as it was."

    def _told(self, candidate: Candidate) -> dict[str, Any]:
        scores = [each for each in self._asking.scores(candidate, self._parts.choice) if each is not None]
        return {"changes": candidate.name, "cases": len(scores), "score": fmean(scores) if scores else None}


def _interval(scores: Sequence[float | None]) -> dict[str, Any] | None:
    known = [score for score in scores if score is not None]
    if not known:
        return None
    low, high, _ = score_interval(known)
    return dict(to_jsonable_python({"mean": fmean(known), "low": low, "high": high}, inf_nan_mode="null"))
