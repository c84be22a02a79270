"""evaluate: a decorated function over cases, on `f.map`, and what scorers say of its answers."""

from __future__ import annotations

import datetime as dt
import inspect
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from SimpleLLMFunc.base.messages import render_value
from SimpleLLMFunc.base.run import Answer
from SimpleLLMFunc.batch import LocalMap, MapOptions, MapReport, RunOptions, check_options, limits
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.evaluate.cases import Cases, CheckedCase, checked_cases, json_of
from SimpleLLMFunc.evaluate.report import CaseResult, EvalReport, Outcome
from SimpleLLMFunc.evaluate.scorers import Answered, Grades, Scorer, ScorerLike, as_scorer
from SimpleLLMFunc.interface.composite import sample_scope
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.llm_decorator.answering.votes import comparable
from SimpleLLMFunc.llm_decorator.decorated import Function, answers_of, is_function, mapped
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.llm_decorator.steps.function.examples import ExampleReader
from SimpleLLMFunc.logger import border, shown_error
from SimpleLLMFunc.runtime import in_thread, run_sync
from SimpleLLMFunc.statistics import wilson_interval
from SimpleLLMFunc.storage import version_of
from SimpleLLMFunc.type import Confident

_REPEAT, _FORM = " repeat", " form"
"""No parameter can be called so."""


@border
def evaluate(
    f: Function,
    cases: Cases,
    scorers: Sequence[ScorerLike] | ScorerLike = "exact",
    repeats: int = 1,
    *,
    confidence: float = 0.95,
    **options: Unpack[RunOptions],
) -> EvalReport:
    """Ask `f` for every case, let the scorers judge the answers, and return the report.

    An answer that is an error scores 0. Where a budget or a deadline stops the run, the report has what was reached and
    says so in `stopped`. Works inside a running event loop too; `evaluate_async` is the same to be awaited.

    Args:
        f: the function; `f.with_options(llm_interface=…)` is the same with another model.
        cases: pairs ``(args, expected)``, `Case` s, or the path of a JSONL file with lines
            ``{"args": …, "expected": …}``.
        scorers: "exact", "fields", `judge(…)`, functions of value and expectation; one or several.
        repeats: how often each case is asked; a cache keeps an answer for each, and a case is still one case.
        confidence: of the intervals.
        options: see `RunOptions`; `concurrency` counts cases, judges count in `budget`. With a checkpoint a rerun asks
            only for what has no answer, and judges keep theirs next to it.

    Raises:
        SignatureError: a case does not fit the function; says which and why.
        UsageError: an argument that cannot be.
        CheckpointError: the checkpoint is damaged, or another process is writing it.
    """
    return run_sync(evaluate_async(f, cases, scorers, repeats, confidence=confidence, **options))


@border
async def evaluate_async(
    f: Function,
    cases: Cases,
    scorers: Sequence[ScorerLike] | ScorerLike = "exact",
    repeats: int = 1,
    *,
    confidence: float = 0.95,
    **options: Unpack[RunOptions],
) -> EvalReport:
    """Do what `evaluate` does."""
    began = time.monotonic()
    check_options(options, RunOptions)
    function = Variants(checked_function(f, "evaluate"))
    if type(repeats) is not int or repeats < 1:
        raise UsageError(f"repeats is a whole number from 1 up, not {repeats!r}.")
    wilson_interval(1, 1, confidence)  # refuses a confidence that cannot be
    checked = await in_thread(checked_cases, cases, function.reader)
    given = [scorers] if isinstance(scorers, str) or not isinstance(scorers, Sequence) else scorers
    judges = await in_thread(named_scorers, given, checked)
    rows = [(Asked(case.arguments, number),) for number in range(repeats) for case in checked]
    with limits(options) as clock:
        run = await graded_answers(function, checked, rows, judges, options, clock)
    report, about = run.report, function.metadata
    known = [cost for cost in run.costs if cost is not None]
    return EvalReport(
        name=function.name,
        function=about.place,
        version=about.version,
        model=function.llm.model_name,
        results=tuple(await in_thread(_results, checked, run.outcomes)),
        repeats=repeats,
        confidence=confidence,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        seconds=time.monotonic() - began,
        input_tokens=report.usage.input_tokens,
        output_tokens=report.usage.output_tokens,
        cost=sum(known) if len(known) == len(run.costs) else None,
        stopped=run.stopped,
    )


def checked_function(f: Any, doing: str) -> Function:
    """Return `f` if it is what `@llm_function` returns.

    Raises:
        UsageError: it is not.
    """
    if not is_function(f):
        raise UsageError(f"{doing} takes a function under @llm_function, not {type(f).__name__}.")
    return f


def named_scorers(scorers: Sequence[ScorerLike], cases: Sequence[CheckedCase]) -> list[Scorer]:
    """Return the scorers that are meant.

    Raises:
        UsageError: there is no scorer, two have the same name, or one has nothing to compare in these cases.
    """
    found = [as_scorer(given, cases) for given in scorers]
    names = [scorer.name for scorer in found]
    if not found or len(set(names)) < len(names):
        raise UsageError(
            f"scorers need different names, and at least one is required; these are {', '.join(names) or 'none'}."
        )
    return found


# --- asked several times, and in several forms ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A case as a row of the map.

    Attributes:
        number: of the repeat, from 0.
        variant: number of the form of the function that is asked.
    """

    arguments: Mapping[str, Any]
    number: int = 0
    variant: int = 0


class Variants(MappedFunction[Any]):
    """Forms of one function, mapped together: each repeat of a case and each form of the function is a row.

    Args:
        f: the function; its rows are known in a checkpoint as they always were.
        others: the same function with other options.
    """

    def __init__(self, f: Function, *others: Function) -> None:
        self._variants = [mapped(each) for each in (f, *others)]
        super().__init__(self._variants[0].pipeline, answers_of(f))
        self._keys = [version_of(other.definition()).hex() for other in self._variants[1:]]
        self._own = self.signature
        self.reader = ExampleReader(self.name, self._own, self.type_hints, self.pipeline.definition.output)
        self.signature = inspect.Signature([inspect.Parameter("asked", inspect.Parameter.POSITIONAL_ONLY)])

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return the arguments by name; among them the number of a repeat, and what another form is known by."""
        asked: Asked = args[0]
        repeat = {_REPEAT: asked.number} if asked.number else {}
        form = {_FORM: self._keys[asked.variant - 1]} if asked.variant else {}
        return {**asked.arguments, **repeat, **form}

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[Any]:  # noqa: ARG002
        """Ask for one answer to a case."""
        asked: Asked = args[0]
        bound = inspect.BoundArguments(self._own, OrderedDict(asked.arguments))
        with sample_scope(asked.number):
            return await self._variants[asked.variant].ask(bound.args, bound.kwargs)


# --- what came of it --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GradedRun:
    """A map over cases, graded.

    Attributes:
        outcomes: by the place of the row; None where it was not asked.
        errors: by the place of the row.
        costs: USD of the map and of each grade, None when unknown.
        stopped: why the map, or a scorer, ended before the end; empty where none did.
    """

    report: MapReport[Any]
    outcomes: list[Outcome | None]
    errors: dict[int, Exception]
    costs: list[float | None]
    stopped: str


async def graded_answers(
    function: Variants,
    cases: Sequence[CheckedCase],
    rows: Sequence[tuple[Asked]],
    scorers: Sequence[Scorer],
    options: RunOptions,
    clock: Deadline,
    count: Callable[[MapReport[Any]], None] = lambda _: None,
) -> GradedRun:
    """Ask for all rows, which are all cases in order, once or several times, and grade the answers.

    `count` is called with the report of the map, before anything is made of it.
    """
    asked: MapOptions = {"engine": "local", "on_error": "keep", "retry_errors": True, "column": None, **options}
    report: MapReport[Any] = await LocalMap(function, rows, asked, clock).result()
    try:
        await in_thread(count, report)
        answers = await in_thread(_answers, function, cases, report)
        judged = {place: answer for place, (answer, _) in enumerate(answers) if isinstance(answer, Answered)}
        graded: dict[str, dict[int, Grades]] = {}
        for scorer in scorers:
            kept = _kept_beside(options.get("checkpoint"), scorer)
            grades = await scorer.grade(list(judged.values()), kept) if judged else []
            graded[scorer.name] = dict(zip(judged, grades, strict=True))
    finally:
        await in_thread(report.close)
    every = [grades for by_place in graded.values() for grades in by_place.values()]
    costs = [report.cost, *(grades.cost for grades in every)]
    ends = [*([] if report.stopped is None else [shown_error(report.stopped)]), *(grades.stopped for grades in every)]
    errors = {place: answer for place, (answer, _) in enumerate(answers) if isinstance(answer, Exception)}
    return GradedRun(report, _outcomes(answers, graded), errors, costs, next(filter(None, ends), ""))


def _kept_beside(checkpoint: str | os.PathLike[str] | None, scorer: Scorer) -> Path | None:
    """Return where a scorer keeps what it paid for."""
    path = None if checkpoint is None else file_path(checkpoint, "checkpoint")
    name = re.sub(r"[/\\\0]", "%", scorer.name)
    return path and path.with_name(f"{path.stem}.{name}{path.suffix}")


def _answers(
    function: Variants, cases: Sequence[CheckedCase], report: MapReport[Any]
) -> list[tuple[Answered | Exception | None, str]]:
    """Return for each row an answer to judge, with a note, or an error; neither where it was not asked."""
    found: list[tuple[Answered | Exception | None, str]] = []
    for row in report.rows:
        case = cases[row.index % len(cases)]
        if row.error is not None:
            found.append((None if report.stopped is not None and not row.key else row.error, ""))
            continue
        value, note = row.value, ""
        if isinstance(value, Confident):
            value, note = value.value, "abstained" if value.abstained else ""
        wanted = comparable(case.wanted, case.expected)
        got = comparable(json_of(function.pipeline.definition.output, value), value)
        found.append((Answered(case.arguments, case.expected, value, wanted, got), note))
    return found


def _outcomes(
    answers: Sequence[tuple[Answered | Exception | None, str]], graded: Mapping[str, Mapping[int, Grades]]
) -> list[Outcome | None]:
    # An error counts as wrong for every scorer.
    wrong: dict[str, float] = {}
    for scorer, by_place in graded.items():
        wrong |= dict.fromkeys((name for grades in by_place.values() for name in grades.scores), 0.0) or {scorer: 0.0}
    outcomes: list[Outcome | None] = []
    for place, (answer, note) in enumerate(answers):
        if isinstance(answer, Exception):
            outcomes.append(Outcome(error=f"{type(answer).__name__}: {answer}", scores=dict(wrong)))
        elif answer is None:
            outcomes.append(None)
        else:
            own = {scorer: by_place[place] for scorer, by_place in graded.items()}
            scores = {name: score for grades in own.values() for name, score in grades.scores.items()}
            notes = {scorer: grades.note for scorer, grades in own.items() if grades.note}
            notes |= {"confident": note} if note else {}
            outcomes.append(Outcome(value=answer.got, scores=scores, notes=notes))
    return outcomes


def _results(cases: Sequence[CheckedCase], outcomes: Sequence[Outcome | None]) -> list[CaseResult]:
    results = []
    for number, case in enumerate(cases):
        found = tuple(outcome for outcome in outcomes[number :: len(cases)] if outcome is not None)
        if found:
            arguments = {name: _plain(value) for name, value in case.arguments.items()}
            results.append(CaseResult(case.id, arguments, case.wanted, found, case.tags))
    return results


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else render_value(value)
