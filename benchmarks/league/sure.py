"""How sure our choices are: the probability of every label in one request, beside five votes.

    python -m benchmarks.league.sure                       # asks what was not asked yet; half an hour or more
    python -m benchmarks.league.sure --votes 50 --tasks sentiment,news_topic --models smollm2-135m

Every answer is a line of `.bench/league/sure.jsonl`, and is asked once. Train and dev alone: the split test is for the league.
The page makes the rest from these lines, without a model, with what `f.calibrate` itself calls.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import home
from benchmarks.league.tasks import ORDER, Task
from SimpleLLMFunc import LocalModel, llm_function
from SimpleLLMFunc.evaluate.comparison import difference_of
from SimpleLLMFunc.llm_decorator.answering.calibrating import corrector, cross_fitted, fitted, measured
from SimpleLLMFunc.llm_decorator.answering.voting import MIN_AGREEMENT
from SimpleLLMFunc.statistics import calibration_error
from SimpleLLMFunc.type import Confident

MODELS = ("smollm2-135m", "gemma3-270m")
KEPT = Path(__file__).parent / "sure.jsonl.gz"

CHOICES = tuple(name for name in ORDER if Task(name).kind == "choice")
VOTES = 5
WAYS: dict[str, dict[str, Any]] = {"once": {"confidence": "logprobs"}, "votes": {"confidence": "votes", "votes": VOTES}}

LEARNT = 120
"""Rows of train that a calibration is fitted on; all others, and dev, are held out."""
TEXT = """\
A `Confident` choice of ours, asked once: the probability of each label from the log-probabilities of one reply. Rows are
of dev and train. First what the report of `f.calibrate(rows, labels=…)` says of all of them (each fifth is corrected by
what the others taught), then a calibration from {learnt} rows of train on the rows that are left. The calibration error is
the library's: up to five bins of equal number, less what chance adds. *Perfect* is what an answer whose probability is
exactly right would show by chance, with the same probabilities: the mean of 200 draws.
"""
VOTED = """\
One request beside five votes on the same rows of dev. Seconds are processor seconds of the program and its model: five
votes share one reading of the prompt on this server, which a service that is paid by the token does not give.
"""


def perfect(answers: Sequence[tuple[float, bool]]) -> float:
    """Return the calibration error that probabilities show by chance where they are right."""
    chance = random.Random(0)
    return statistics.fmean(
        calibration_error([(share, chance.random() < share) for share, _ in answers]) for _ in range(200)
    )


def section(tasks: Sequence[str] = CHOICES) -> list[str]:
    """Return the lines of the page: calibration, and one request beside votes. It takes half a minute."""
    if not KEPT.exists():
        return []
    found: dict[tuple[str, str, str], dict[str, Any]] = defaultdict(dict)
    for line in map(json.loads, gzip.decompress(KEPT.read_bytes()).splitlines()):
        found[line["model"], line["id"].split("-")[0], line["way"]][line["id"]] = line
    tables: dict[str, list[str]] = {"once": [], "votes": []}
    for (model, name, way), answers in list(found.items()):
        if name not in tasks:
            continue
        task = Task(name)
        rows = [row for row in task.rows if row["id"] in answers]
        once = found.get((model, name, "once"), {})
        if way == "votes" and once.keys() & answers.keys():
            tables[way].append(_beside(model, name, rows, once, answers))
        elif way == "once" and len(rows) >= 2 * LEARNT:
            tables[way].append(_calibrated(model, task, rows, answers))
    head = ["model", "task", "rows", "right before", "right after", "error before", "error after", "perfect"]
    head += [f"held out after {LEARNT}: rows", "error", "perfect"]
    more = ["model", "task", "rows", "right, one request", "right, five votes", "p", "s, one", "s, five", "share"]
    made = [["## How sure?", "", TEXT.format(learnt=LEARNT), *_table(head), *tables["once"]], [VOTED, *_table(more)]]
    return [*made[0], "", *made[1], *tables["votes"], ""]


def _table(head: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"| --- | --- |{' ---: |' * (len(head) - 2)}"]


def _calibrated(model: str, task: Task, rows: Sequence[Any], answers: dict[str, Any]) -> str:
    shares = [[answers[row["id"]]["probabilities"][label] for label in task.labels] for row in rows]
    right = [task.labels.index(row["expected"]) for row in rows]
    fixed = cross_fitted(shares, right)
    sides = [measured(each, right, MIN_AGREEMENT) for each in (shares, fixed)]
    train = [number for number, row in enumerate(rows) if "-train-" in row["id"]][:LEARNT]
    held = sorted({*range(len(rows))} - {*train})
    made = corrector(fitted([shares[number] for number in train], [right[number] for number in train]))
    apart = _tops([made(shares[number]) for number in held], [right[number] for number in held])
    texts = [f"{side.accuracy.value:.0%}" for side in sides if side.accuracy]
    texts += [str(side.calibration_error) for side in sides]
    texts += [f"{perfect(_tops(fixed, right)):.3f}", str(len(held))]
    texts += [f"{calibration_error(apart):.3f}", f"{perfect(apart):.3f}"]
    return f"| {model} | {task.name.replace('_', ' ')} | {len(rows)} | {' | '.join(texts)} |"


def _tops(shares: Sequence[Sequence[float]], right: Sequence[int]) -> list[tuple[float, bool]]:
    return [(max(row), row.index(max(row)) == own) for row, own in zip(map(list, shares), right, strict=True)]


def _beside(model: str, name: str, rows: Sequence[Any], once: dict[str, Any], votes: dict[str, Any]) -> str:
    pairs = [
        tuple(float(way[row["id"]]["value"] == row["expected"]) for way in (once, votes))
        for row in rows
        if row["id"] in once
    ]
    found = difference_of(pairs, 0.95)
    both = [statistics.fmean(way[row["id"]]["cpu"] for row in rows if row["id"] in once) for way in (once, votes)]
    texts = [str(len(pairs)), *(f"{statistics.fmean(side):.0%}" for side in zip(*pairs, strict=True)), f"{found.p:.2f}"]
    texts += [f"{both[0]:.2f}", f"{both[1]:.2f}", f"{both[0] / both[1]:.0%}"]
    return f"| {model} | {name.replace('_', ' ')} | {' | '.join(texts)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league.sure", description="How sure is the answer?")
    parser.add_argument("--models", type=lambda text: tuple(text.split(",")), default=MODELS)
    parser.add_argument("--tasks", type=lambda text: tuple(text.split(",")), default=CHOICES)
    parser.add_argument("--rows", type=int, default=260, help="of dev, then of train, asked once each")
    parser.add_argument("--votes", type=int, default=0, help="rows of dev that are asked for votes too")
    given = parser.parse_args()
    path = home().parent / "league" / "sure.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    done = {(each["model"], each["way"], each["id"]) for each in map(json.loads, lines)}
    with path.open("a", encoding="utf-8") as file:
        for model in given.models:
            llm = LocalModel(model)
            for task in map(Task, given.tasks):
                made = task.function()
                made.__annotations__["return"] = Confident[task.type]
                rows = [*task.split("dev"), *task.split("train")]
                for way, count in (("once", given.rows), ("votes", given.votes)):
                    function = llm_function(llm_interface=llm, **WAYS[way])(made)
                    left = [row for row in rows[:count] if (model, way, row["id"]) not in done]
                    if left:
                        function(**rows[-1]["input"])  # the start of the server, and what all prompts begin with
                    for row in left:
                        begun, used = time.perf_counter(), time.process_time()
                        found = function(**row["input"])
                        line = {
                            "model": model,
                            "way": way,
                            "id": row["id"],
                            "value": found.value,
                            "probabilities": {
                                label: float(f"{each:.4g}") for label, each in found.probabilities.items()
                            },
                            "asked": found.asked,
                            "seconds": round(time.perf_counter() - begun, 3),
                            "cpu": round(time.process_time() - used, 3),
                        }
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                        file.flush()
                    print(f"{model:13} {task.name:14} {way:6} {len(left)} rows", flush=True)
    KEPT.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
