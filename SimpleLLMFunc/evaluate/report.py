"""EvalReport: what an evaluation came to, case by case and in all; kept in a file, compared, required in CI."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from SimpleLLMFunc.batch import replaced_whole
from SimpleLLMFunc.config import json_of_file
from SimpleLLMFunc.display.cards import Card, as_html, text_table
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, UsageError, counted
from SimpleLLMFunc.evaluate.comparison import Comparison, Difference, difference_of, drawn_as_svg
from SimpleLLMFunc.llm_decorator.steps.common.arguments import problems_of
from SimpleLLMFunc.logger import mask_known
from SimpleLLMFunc.statistics import score_interval

FORMAT = 1
KIND = "simplellmfunc-evaluation"
"""Tells the file of a report from any other JSON: what `lock --check` looks for."""


class EvaluationFailed(SimpleLLMFuncError, AssertionError):
    """A score is below what was required; `.missed` lists ``(name, required, found)``."""

    def __init__(self, name: str, missed: Sequence[tuple[str, float, float]], stopped: str = "") -> None:
        self.missed = list(missed)
        told = [
            f"{score} is {found:.3f}, required {least:.3f}" if math.isfinite(found) else f"there is no score {score!r}"
            for score, least, found in missed
        ]
        if stopped:
            told = [f"stopped before the end ({stopped.removesuffix('.')})", *told]
        super().__init__(f"{name}: {'; '.join(told)}.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer to one case.

    Attributes:
        value: as JSON data; None where there was an error.
        error: type and text of what went wrong, empty where there is a value.
        scores: by name; a failed answer has 0 everywhere.
        notes: what scorers said, by name.
    """

    value: Any = None
    error: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case and what came of it, once for each repeat.

    Attributes:
        arguments, expected: as JSON data; `expected` is None where the case has no expectation.
    """

    id: str
    arguments: Any
    expected: Any
    outcomes: tuple[Outcome, ...]
    tags: tuple[str, ...] = ()

    def score(self, name: str) -> float | None:
        """Return the mean over the repeats; None where no answer has this score."""
        found = [outcome.scores[name] for outcome in self.outcomes if name in outcome.scores]
        return math.fsum(found) / len(found) if found else None


@dataclass(frozen=True, slots=True)
class Score:
    """One score over all cases.

    Attributes:
        mean: of the cases' means.
        low, high: the confidence interval of the mean; its unit is the case, repeats of one are not counted as more.
        method: the formula of the interval; see `SimpleLLMFunc.statistics`.
        cases: how many have this score.
    """

    mean: float
    low: float
    high: float
    method: str
    cases: int


@dataclass(frozen=True)
class EvalReport:
    """What an evaluation came to.

    Attributes:
        name: of the function.
        function: where it stands, ``module:qualname``.
        version: of the function, as the lock file has it.
        model: that was asked.
        results: one for each case, in their order; cases that a stopped run did not reach are not among them.
        repeats: how often each was asked.
        confidence: of the intervals.
        created: when, in ISO 8601.
        cost: USD of function and judges in this run, None when unknown.
        stopped: why it ended before the last case, empty where it did not.
    """

    name: str
    function: str
    version: str
    model: str
    results: tuple[CaseResult, ...]
    repeats: int = 1
    confidence: float = 0.95
    created: str = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    stopped: str = ""

    @property
    def scores(self) -> dict[str, Score]:
        """Every score, by name."""
        return self._scores(self.results)

    @property
    def failed(self) -> int:
        """How many answers were errors."""
        return sum(bool(outcome.error) for result in self.results for outcome in result.outcomes)

    def by_tag(self) -> dict[str, dict[str, Score]]:
        """Return the scores of the cases of each tag."""
        tags = sorted({tag for result in self.results for tag in result.tags})
        return {tag: self._scores([result for result in self.results if tag in result.tags]) for tag in tags}

    def _scores(self, results: Sequence[CaseResult]) -> dict[str, Score]:
        names = dict.fromkeys(name for one in results for outcome in one.outcomes for name in outcome.scores)
        found: dict[str, Score] = {}
        for name in names:
            means = [mean for result in results if (mean := result.score(name)) is not None]
            interval = score_interval(means, self.confidence)
            found[name] = Score(math.fsum(means) / len(means), *interval, cases=len(means))
        return found

    # --- to look at -------------------------------------------------------------------------------------------

    def table(self, *, markdown: bool = False) -> str:
        """Return the scores as a table."""
        head = ["score", "mean", f"{self.confidence:.0%} interval", "cases", "method"]
        rows = [
            [name, f"{score.mean:.3f}", f"{score.low:.3f} .. {score.high:.3f}", str(score.cases), score.method]
            for name, score in self.scores.items()
        ]
        return text_table(head, rows, markdown=markdown)

    def __str__(self) -> str:
        cost = "" if not self.cost else f", {self.cost:.4f} USD"
        times = f" x {self.repeats}" if self.repeats > 1 else ""
        head = (
            f"{self.name} ({self.model}, version {self.version}): {counted(len(self.results), 'case')}{times}, {self.failed} failed, "
            f"{self.seconds:.1f} s{cost}"
        )
        stopped = f"\nstopped: {self.stopped}" if self.stopped else ""
        return f"{head}\n{self.table()}{stopped}"

    def _repr_html_(self) -> str:
        facts = [(name, f"{one.mean:.3f} ({one.low:.3f} .. {one.high:.3f})") for name, one in self.scores.items()]
        count = counted(len(self.results), "case")
        return as_html(Card(f"Evaluation of {self.name}: {count}", [*facts, ("stopped", self.stopped)]))

    def svg(self) -> str:
        """Return a picture of the scores with their intervals."""
        bars = [(name, score.mean, score.low, score.high) for name, score in self.scores.items()]
        known = [value for _, *values in bars for value in values if math.isfinite(value)]
        title = f"{self.name} · {self.model} · {counted(len(self.results), 'case')}"
        return drawn_as_svg(title, bars, min(0.0, *known, 0.0), max(1.0, *known, 1.0))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as an SVG file.

        Raises:
            ConfigError: it cannot be written.
        """
        with replaced_whole(path) as part:
            part.write_text(self.svg(), encoding="utf-8")

    # --- what is required ------------------------------------------------------------------------------------

    def require(self, *, at: Literal["mean", "low"] = "mean", **least: float) -> None:
        """Return if every named score is at least what is given: ``report.require(exact=0.9)``.

        A dot in a name is written as two underscores (``fields__score=0.8``), or the names are given as a dict:
        ``report.require(**{"fields.score": 0.8})``.

        Args:
            at: "mean" compares the mean, "low" the lower end of its interval: that much is shown.
            **least: by name of the score.

        Raises:
            EvaluationFailed: one is lower, or is not there; or the evaluation was stopped. Also an `AssertionError`.
        """
        if at not in ("mean", "low"):
            raise UsageError(f'at is "mean" or "low", not {at!r}.')
        scores = self.scores
        missed: list[tuple[str, float, float]] = []
        for name, wanted in least.items():
            score = scores.get(name) or scores.get(name.replace("__", "."))
            found = -math.inf if score is None else getattr(score, at)
            if found < wanted:
                missed.append((name, wanted, found))
        if missed or self.stopped:
            raise EvaluationFailed(self.name, missed, self.stopped)

    def compare(self, other: EvalReport) -> Comparison:
        """Compare with another report over the same cases; this one is the first. See `compare`."""
        return compare(self, other)

    # --- to keep ------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        shown = {name: asdict(score) for name, score in self.scores.items()}
        return {
            "kind": KIND,
            "format": FORMAT,
            **asdict(self),
            "scores": to_jsonable_python(shown, inf_nan_mode="null"),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a JSON file; keys of the process are masked in it.

        Raises:
            ConfigError: it cannot be written.
        """
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        with replaced_whole(path) as part:
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(mask_known(text) + "\n", encoding="utf-8", errors="replace")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EvalReport:
        """Return the report that a file holds.

        Raises:
            ConfigError: there is no such file, or `save` did not write it.
        """
        data = json_of_file(path, "a report")
        if not isinstance(data, dict) or data.get("kind") != KIND or data.get("format") != FORMAT:
            raise ConfigError(f"{os.fspath(path)!r} is not a report that EvalReport.save wrote.")
        try:
            return TypeAdapter(cls).validate_python(data)
        except ValidationError as error:
            raise ConfigError(f"{os.fspath(path)!r} is a report with a part missing ({problems_of(error)}).") from error


def compare(first: EvalReport, second: EvalReport) -> Comparison:
    """Compare two reports case by case.

    Each case is its own control: the tests look at the differences within the cases. Scores that are 0 or 1 in every case
    of both are compared with McNemar's exact test, all others (repeats, shares) with a permutation test of the signs.

    Raises:
        UsageError: they have no case, or no score, in common.
    """
    theirs = {result.id: result for result in second.results}
    pairs = [(result, theirs[result.id]) for result in first.results if result.id in theirs]
    names = [name for name in first.scores if name in second.scores]
    if not pairs or not names:
        raise UsageError("the two reports have no case or no score in common. Evaluate both on the same cases.")
    differences: dict[str, Difference] = {}
    for name in names:
        both = [(mine.score(name), its.score(name)) for mine, its in pairs]
        if scored := [(a, b) for a, b in both if a is not None and b is not None]:
            differences[name] = difference_of(scored, first.confidence)
    one, other = (f"{report.name} ({report.model}, {report.version})" for report in (first, second))
    return Comparison(one, other, differences, len(first.results) + len(second.results) - 2 * len(pairs))
