"""The answers of the league as reports of `evaluate`: the page compares two contenders row by row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.league.tasks import Task
from SimpleLLMFunc.evaluate import CaseResult, EvalReport, Outcome


def write_reports(answers: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Write a report for each model and contender; the tasks are tags of its cases.

    Args:
        answers: as `.bench/league/<split>.jsonl` holds them.
        folder: made if missing; a report of an earlier run is replaced.
    """
    tasks = {name: Task(name) for name in {each["task"] for each in answers}}
    rows = {row["id"]: row for task in tasks.values() for row in task.rows}
    paths = []

    def side(each: dict[str, Any]) -> tuple[str, str]:
        return each["model"], each["contender"]

    for (model, contender), group in groupby(sorted(answers, key=side), side):
        mine = list(group)
        report = EvalReport(
            name=contender,
            function=f"benchmarks.league:{contender}",
            version=mine[-1]["version"],
            model=model,
            results=tuple(_result(each, rows[each["id"]]) for each in mine),
            created=max(each["date"] for each in mine),
            seconds=round(sum(each.get("seconds", 0) for each in mine), 3),
            input_tokens=int(sum(each.get("in", 0) for each in mine)),
            output_tokens=int(sum(each.get("out", 0) for each in mine)),
        )
        paths.append(folder / f"{model}-{contender}.json")
        report.save(paths[-1])
    return paths


def _result(answer: dict[str, Any], row: dict[str, Any]) -> CaseResult:
    failed = answer["kind"] == "error"
    said, note = answer["said"], {"right": "a value of another type, silently"} if answer["kind"] == "type" else {}
    outcome = Outcome(None if failed else said, said if failed else "", {"right": float(answer["exact"])}, note)
    return CaseResult(answer["id"], row["input"], row["expected"], (outcome,), (answer["task"],))
