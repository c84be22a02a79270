"""Forms of a function, asked for cases through `map`: with its checkpoint, within the budget, graded."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from glob import escape
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter

from SimpleLLMFunc.batch import MapOptions, MapReport, RunOptions
from SimpleLLMFunc.errors import AuthenticationError, BudgetExceeded, RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.evaluate import Outcome, Scorer
from SimpleLLMFunc.evaluate.cases import CheckedCase
from SimpleLLMFunc.evaluate.run import Asked, Variants, graded_answers
from SimpleLLMFunc.improve.candidates import Candidate
from SimpleLLMFunc.interface.spending import Deadline, budget, scopes_around
from SimpleLLMFunc.llm_decorator.answering.answering import NO_SERVICE
from SimpleLLMFunc.llm_decorator.answering.voting import VOTES, Voting
from SimpleLLMFunc.llm_decorator.decorated import Function, pipeline_of
from SimpleLLMFunc.llm_decorator.steps.function.improvement import Improvement
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import Usage

SERVICE = (*NO_SERVICE, AuthenticationError, RunAborted)
"""Says nothing about the form of the function that was asked."""


class Paid(NamedTuple):
    """What a part of a search has taken."""

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0


class Ledger:
    """What each part of a search took, kept next to its checkpoint, which does not count requests.

    Args:
        checkpoint: of the search; None keeps nothing.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | None) -> None:
        self._path = None if checkpoint is None else Path(f"{os.fspath(checkpoint)}.paid")
        self.parts: dict[str, Paid] = {}
        if self._path is not None:
            with suppress(OSError, ValueError):
                self.parts = TypeAdapter(dict[str, Paid]).validate_json(self._path.read_bytes())

    def note(self, name: str, paid: Paid) -> None:
        """Keep what a part took so far."""
        self.parts[name] = paid
        if self._path is not None:
            with suppress(OSError):  # without it a question that is read back counts as one that went well
                self._path.write_text(json.dumps(self.parts), "utf-8")


class Asking:
    """Asks forms of a function for cases, and keeps the scores.

    Args:
        function: as it was.
        scorer: judges the answers.
        options: of every map.
        reserved: questions that are kept for the end.
        ledger: what an interrupted search took.

    Attributes:
        spent: the innermost budget around, which is that of the whole search.
        stopped: why the last map ended early; None where it did not.
    """

    def __init__(self, function: Function, scorer: Scorer, options: RunOptions, reserved: int, ledger: Ledger) -> None:
        self._function = function
        self._scorer = scorer
        self._options = cast("MapOptions", {"retry_errors": None, **options})
        self._scopes = scopes_around()
        self.spent = self._scopes[-1]
        self._reserved = reserved
        self._each = function_requests(function)
        self._asked = 0
        self._known: set[str] = set()
        self._ledger = ledger
        self._part: str | None = None
        self._ahead = Paid()
        self._answers: dict[tuple[str, str], tuple[Outcome | None, float | None]] = {}
        self._lowest = 0.0
        self.stopped: SimpleLLMFuncError | None = None

    def form(self, candidate: Candidate) -> Function:
        """Return the function in this form."""
        return self._function.with_options(improvement=Improvement(candidate.options, is_checked=True))

    def questions_left(self, *, at_the_end: bool = False) -> float:
        """Return how many more questions the budget allows; before the end, apart from those that are kept for it."""
        left = min((left / self._for_one(unit) for unit, left in self.left().items()), default=sys.maxsize)
        return left if at_the_end else left - self._reserved

    def requests_for(self, questions: int) -> int:
        """Return about how many requests so many questions take."""
        return math.ceil(questions * self._for_one("requests"))

    @contextmanager
    def before_the_end(self) -> Generator[None, None, None]:
        """Let what is asked inside not touch what is kept for the end."""
        left = {unit: each - self._reserved * self._for_one(unit) for unit, each in self.left().items()}
        with budget(**{unit: max(0, math.floor(each) if unit == "requests" else each) for unit, each in left.items()}):
            yield

    async def ask(
        self, questions: Sequence[tuple[Candidate, CheckedCase]], *, at_the_end: bool = False
    ) -> list[Outcome | None]:
        """Ask each candidate of a pair for its case, and return what came of it; None where the budget did not allow it.

        Before the end, what is kept for it is not touched.

        Raises:
            SimpleLLMFuncError: the service did not answer at all.
        """
        new = [(candidate, case) for candidate, case in questions if not self.is_asked(candidate, case)]
        self.stopped = None
        async with self.part(_name_of(questions)):
            with nullcontext() if at_the_end else self.before_the_end():
                if new:
                    await self._graded(new)
        return [self._answers.get((candidate.name, case.id), (None, None))[0] for candidate, case in questions]

    async def _graded(self, questions: Sequence[tuple[Candidate, CheckedCase]]) -> None:
        forms = list({candidate.name: candidate for candidate, _ in questions if candidate.changes}.values())
        places = {"as it was": 0, **{candidate.name: at for at, candidate in enumerate(forms, 1)}}
        asked = await in_thread(lambda: Variants(self._function, *map(self.form, forms)))
        cases = [case for _, case in questions]
        rows = [(Asked(case.arguments, variant=places[candidate.name]),) for candidate, case in questions]
        run = await graded_answers(asked, cases, rows, [self._scorer], self._options, Deadline.after(None), self.count)
        self.stopped = run.report.stopped
        if self.stopped is not None and not isinstance(self.stopped, BudgetExceeded):
            raise self.stopped
        failed = [error for error in run.errors.values() if isinstance(error, SERVICE)]
        if failed and len(failed) == sum(outcome is not None for outcome in run.outcomes):
            raise failed[0]
        for place, ((candidate, case), outcome) in enumerate(zip(questions, run.outcomes, strict=True)):
            if outcome is not None:
                # A form that makes the service fail is no better for it: it scores as any error. The function as it was has none.
                is_excused = not candidate.changes and isinstance(run.errors.get(place), SERVICE)
                score = None if is_excused else _score(outcome, self._scorer.name)
                self._answers[candidate.name, case.id] = outcome, score
                self._lowest = min(self._lowest, score or 0.0)

    def scores(self, candidate: Candidate, cases: Sequence[CheckedCase]) -> list[float | None]:
        """Return the score of each case; None for a case without a score. An error is as bad as the worst answer, and as 0."""
        found = [self._answers.get((candidate.name, case.id), (None, None)) for case in cases]
        return [self._lowest if score is not None and outcome and outcome.error else score for outcome, score in found]

    def is_asked(self, candidate: Candidate, case: CheckedCase) -> bool:
        """Say whether this was asked before."""
        return (candidate.name, case.id) in self._answers

    def mean(self, candidate: Candidate, cases: Sequence[CheckedCase]) -> float:
        """Return the mean score; minus infinity where no case has a score."""
        known = [score for score in self.scores(candidate, cases) if score is not None]
        return fmean(known) if known else -math.inf

    # --- what it takes ----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def part(self, name: str) -> AsyncGenerator[None, None]:
        """Count what is asked inside as one part of the search; what an interrupted search paid for it counts first."""
        if self._part is not None:
            yield
            return
        self._part, spent = name, self.spent
        paid = self._ahead = self._ledger.parts.get(name, Paid())
        spent.settle(reserved=0, usage=Usage(paid.tokens, cost=paid.usd), requests=paid.requests)
        before = Paid(spent.requests, spent.tokens, spent.usd)
        try:
            yield
        finally:
            self._part, self._ahead = None, Paid()
            requests, tokens = spent.requests - before.requests, spent.tokens - before.tokens
            more = Paid(paid.requests + requests, paid.tokens + tokens, paid.usd + spent.usd - before.usd)
            await in_thread(self._ledger.note, name, more)

    def count(self, report: MapReport[Any]) -> None:
        """Take note of what a map took, and of what an interrupted search had paid for before without an account of it."""
        fresh = {row.key: row.usage for row in report.rows if row.key and row.key not in self._known}
        self._known |= fresh.keys()
        self._asked += len(fresh)
        if (restored := len(fresh) - report.counts.asked) > 0 and self._part not in self._ledger.parts:
            before = sum(fresh.values(), Usage(cost=0.0))
            # How many requests each of them took is not known: as many as where nothing goes wrong.
            self.spent.settle(reserved=0, usage=_less(before, report.usage), requests=restored * self._each)

    def left(self) -> dict[str, float]:
        """Return how much is left of each unit that is limited: what the strictest budget leaves."""
        scopes, units = self._scopes, ("requests", "usd", "tokens", "seconds")
        limited = [(unit, left) for unit in units for scope in scopes if (left := scope.left_of(unit)) is not None]
        return {unit: min(left for name, left in limited if name == unit) for unit, _ in limited}

    def _for_one(self, unit: str) -> float:
        """Return what a question takes, as far as it is known."""
        # What was paid ahead is for questions that have not been read back yet.
        taken = float(getattr(self.spent, unit)) - getattr(self._ahead, unit, 0.0)
        used = taken / self._asked if self._asked else 0.0
        return max(used, self._each) if unit == "requests" else max(used, 1e-12)


def _name_of(questions: Sequence[tuple[Candidate, CheckedCase]]) -> str:
    text = json.dumps([[candidate.name, case.id] for candidate, case in questions])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def function_requests(function: Function) -> int:
    """Return how many requests a call takes where all goes well."""
    pipeline = pipeline_of(function)
    if not pipeline.definition.confident_of:
        return 1
    return 1 if Voting(pipeline).asks_once(pipeline.llm) else pipeline.options.votes or VOTES


def _score(outcome: Outcome, name: str) -> float | None:
    if name in outcome.scores:
        return outcome.scores[name]
    return fmean(outcome.scores.values()) if outcome.scores else None


def _less(whole: Usage, part: Usage) -> Usage:
    return Usage(
        input_tokens=max(0, whole.input_tokens - part.input_tokens),
        output_tokens=max(0, whole.output_tokens - part.output_tokens),
        cost=max(0.0, (whole.cost or 0.0) - (part.cost or 0.0)),
    )


def removed(checkpoint: Path) -> None:
    """Remove a checkpoint, and what graders kept next to it."""
    for file in checkpoint.parent.glob(f"{escape(checkpoint.stem)}.*sqlite*"):
        with suppress(OSError):
            file.unlink()
