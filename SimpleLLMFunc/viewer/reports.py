"""Reports of `evaluate` on the page: scores, and two reports compared case by case."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.errors import SimpleLLMFuncError, UsageError
from SimpleLLMFunc.evaluate import CaseResult, EvalReport
from SimpleLLMFunc.viewer.responses import NamedFiles, Refusal, clean, reason, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class ReportPages(NamedFiles):
    """Answers about files that `EvalReport.save` wrote; each is read when it is asked for."""

    option, one = "reports", "report"

    async def reports(self, _request: Request) -> Response:
        """Return every report in short."""
        return await self.told(_in_short)

    async def report(self, request: Request) -> Response:
        """Return one report; with the parameter `with`, its differences from another one, case by case."""
        first = self.path(request.path_params["number"])
        other = request.query_params.get("with", "")
        if other and not (other.isascii() and other.isdecimal() and len(other) < 10):
            raise Refusal(404, "There is no such report.")
        second = self.path(int(other)) if other else None
        return await reply_of(_at_length, first, second)


def _in_short(path: Path) -> dict[str, Any]:
    try:
        return {"file": path.name, "problem": "", **_facts(EvalReport.load(path))}
    except SimpleLLMFuncError as error:
        return {"file": path.name, "problem": reason(error)}


def _facts(report: EvalReport) -> dict[str, Any]:
    names = "name model version created seconds input_tokens output_tokens cost stopped failed"
    facts = {name: getattr(report, name) for name in names.split()}
    scores = {name: asdict(score) for name, score in report.scores.items()}
    told: dict[str, Any] = clean({**facts, "cases": len(report.results), "scores": scores})
    return told


def _at_length(path: Path, other: Path | None) -> dict[str, Any]:
    try:
        first = EvalReport.load(path)
        second = first if other is None else EvalReport.load(other)
        compared = {} if other is None else first.compare(second).differences
    except UsageError as error:
        raise Refusal(409, str(error)) from None
    theirs = {result.id: result for result in second.results}
    names = list(compared or first.scores)
    cases = [_case(result, theirs[result.id], names) for result in first.results if result.id in theirs]
    return {
        "first": {"file": path.name, **_facts(first)},
        "second": None if other is None else {"file": other.name, **_facts(second)},
        "differences": dict(compared),
        # Worse cases first, then better ones, then equal ones.
        "cases": sorted(cases, key=lambda case: (case["change"] == 0, case["change"])),
    }


def _case(one: CaseResult, two: CaseResult, names: list[str]) -> dict[str, Any]:
    scores = [[result.score(name) for name in names] for result in (one, two)]
    change = sum((b or 0.0) - (a or 0.0) for a, b in zip(*scores, strict=True))
    shown = {"id": one.id, "arguments": one.arguments, "expected": one.expected, "tags": list(one.tags)}
    outcomes = [
        [{"value": each.value, "error": each.error, "notes": dict(each.notes)} for each in result.outcomes]
        for result in (one, two)
    ]
    found: dict[str, Any] = clean({**shown, "outcomes": outcomes, "scores": scores, "change": change})
    return found
