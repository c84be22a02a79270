"""How much better a function gets: ours after `improve`, DSPy after its searches, on the same cases.

    python -m benchmarks.league.improved                                            # hours; goes on where it broke off
    python -m benchmarks.league.improved --tasks sentiment --models smollm2-135m --contenders ours,improved

Each search gets the 60 dev cases of a task and about 180 requests. What it found answers rows of train, which it never
saw. Every answer, and what each search took, is a line of `.bench/league/improved.jsonl`; a search that broke off begins
again, ours goes on where it was. `python -m benchmarks.league.improved NAME URL KEY MODEL` is one contender's process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.league.contenders import Ask, Server, our_function, ours
from benchmarks.league.tasks import ORDER, Score, Task, f1, plain

REQUESTS = 180
SEARCH_SECONDS = 7_200.0
MOST_ERRORS = 1_000
"""Of DSPy's searches, which end with the tenth answer that they cannot read if nothing else is said."""
Found = tuple[Ask, dict[str, Any]]
"""What asks the function that was found, and what is to be told of the search."""


def before(at: Server, task: Task) -> Found:
    return ours(at, task), {}


def improved(at: Server, task: Task, requests: int = REQUESTS) -> Found:
    cases = [(row["input"], row["expected"]) for row in task.split("dev")]
    path = Path(f"{at.model}-{task.name}.{requests}.improved.json")
    scorer = (lambda value, expected: _points(task, value, expected)) if task.kind == "record" else "exact"
    found = our_function(at, task).improve(cases, scorer=scorer, budget=requests, path=path, progress=False)
    told = {
        "requests": found.spent.requests,
        "accepted": found.accepted,
        "changes": [f"{each.what}: {each.was} -> {each.now}" for each in found.changes],
    }
    return lambda given: found.function(**given), {**told, "report": str(found)}


def improved_by_half(at: Server, task: Task) -> Found:
    return improved(at, task, REQUESTS // 2)


def _points(task: Task, value: Any, expected: Any) -> float:
    return f1([task.score({"expected": plain(expected)}, plain(value))])


def _in_dspy(at: Server, task: Task) -> tuple[Any, Any, list[Any], Callable[..., float]]:
    """Return the model, the program, the cases and the score."""
    import dspy

    most = 64 if task.kind == "choice" else 256
    lm = dspy.LM(f"openai/{at.model}", api_base=at.url, api_key=at.key, cache=False, temperature=0, max_tokens=most)
    dspy.configure(lm=lm)
    fields: dict[str, Any] = {name: (kind, dspy.InputField()) for name, kind in task.parameters.items()}
    predict = dspy.Predict(dspy.Signature({**fields, "answer": (task.type, dspy.OutputField())}, task.instruction))
    cases = [dspy.Example(**row["input"], answer=row["expected"]).with_inputs(*fields) for row in task.split("dev")]

    def right(case: Any, said: Any, trace: Any = None) -> float:  # noqa: ARG001 - its name there
        score = task.score({"expected": case.answer}, plain(said.answer))
        return f1([score]) if task.kind == "record" else float(score.exact)

    return lm, predict, cases, right


def _found_by_dspy(lm: Any, made: Any, start: Any) -> Found:
    """Return the program that a search made; what is new in it is told."""
    told = {"requests": len(lm.history), "changes": [f"{len(made.demos)} examples"] if made.demos else []}
    if made.signature.instructions != start.signature.instructions:
        told["changes"] = [*told["changes"], f"instruction: {made.signature.instructions}"]
    return lambda given: made(**given).answer, told


def dspy_random(at: Server, task: Task) -> Found:
    from dspy.teleprompt import BootstrapFewShotWithRandomSearch

    lm, predict, cases, right = _in_dspy(at, task)
    search = BootstrapFewShotWithRandomSearch(
        metric=right, max_bootstrapped_demos=4, max_labeled_demos=8, num_candidate_programs=1, num_threads=1,
        max_errors=MOST_ERRORS,
    )  # fmt: skip
    return _found_by_dspy(lm, search.compile(predict, trainset=cases[:30], valset=cases[30:]), predict)


def dspy_mipro(at: Server, task: Task) -> Found:
    from dspy.teleprompt import MIPROv2

    lm, predict, cases, right = _in_dspy(at, task)
    search = MIPROv2(right, auto=None, num_candidates=3, max_labeled_demos=8, num_threads=1, max_errors=MOST_ERRORS)
    made = search.compile(predict, trainset=cases[:30], valset=cases[30:], num_trials=4, minibatch=False)
    return _found_by_dspy(lm, made, predict)


def dspy_gepa(at: Server, task: Task) -> Found:
    import dspy

    lm, predict, cases, right = _in_dspy(at, task)

    def judged(case: Any, said: Any, *_: Any) -> Any:
        score = right(case, said)
        return dspy.Prediction(score=score, feedback=f"Right is {case.answer!r}; you said {said.answer!r}.")

    search = dspy.GEPA(judged, max_metric_calls=REQUESTS - 20, reflection_lm=lm, num_threads=1)
    return _found_by_dspy(lm, search.compile(predict, trainset=cases[:30], valset=cases[30:]), predict)


CONTENDERS: dict[str, tuple[str, Callable[[Server, Task], Found]]] = {
    "ours": ("ours", before), "improved": ("ours", improved), "improved_by_half": ("ours", improved_by_half),
    "dspy_random": ("dspy", dspy_random), "dspy_mipro": ("dspy_mipro", dspy_mipro), "dspy_gepa": ("dspy", dspy_gepa),
}  # fmt: skip
"""By name: whose environment it needs, and what makes it."""
KEPT = Path(__file__).parent / "improved.jsonl.gz"
TITLES = {
    "ours": "ours, plain", "improved": "ours after `improve`",
    "improved_by_half": "ours after `improve`, half the requests",
    "dspy_random": "DSPy, examples by random search", "dspy_mipro": "DSPy, MIPROv2", "dspy_gepa": "DSPy, GEPA",
}  # fmt: skip
TEXT = """\
Each search gets the 60 dev cases of a task and about 180 requests (ours once more 90), and what it found answers rows of
train that it never saw. DSPy's searches are `BootstrapFewShotWithRandomSearch`, `MIPROv2` and `GEPA`, each with 30 cases for examples and 30 to
choose by; the same small model writes their instructions. Its answers to a choice end after 64 tokens, and an answer that it
cannot read does not end a search. What is not accepted leaves the function as it was: a few points between its rows are
those of the server. A search that is not here was not run.
"""


def section() -> list[str]:
    """Return the lines of the page."""
    from SimpleLLMFunc.evaluate.comparison import difference_of

    if not KEPT.exists():
        return []
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for line in map(json.loads, gzip.decompress(KEPT.read_bytes()).splitlines()):
        found[line["model"], line["task"]][line["contender"]][line["id"]] = line
    lines = [
        "## Improved",
        "",
        TEXT,
        "| model | task | contender | rows | right | beside ours, plain | p | requests | what |",
    ]
    lines.append("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for (model, name), sides in found.items():
        for who, answers in sides.items():
            search = answers.get(f"{name}-search", {})
            scores = {key: _score(name, each) for key, each in answers.items() if key != f"{name}-search"}
            plain = {key: _score(name, each) for key, each in sides["ours"].items()}
            test = (
                difference_of([(plain[key], scores[key]) for key in plain if key in scores], 0.95) if scores else None
            )
            texts = [model, name.replace("_", " "), TITLES[who], str(len(scores))]
            texts.append(f"{statistics.fmean(scores.values()):.0%}" if scores else "–")
            texts += [f"{100 * test.difference:+.0f} points", f"{test.p:.3f}"] if test and who != "ours" else ["", ""]
            problem = " ".join(search.get("problem", "").split())[:120]
            what = problem or "; ".join(search.get("changes", ["not accepted"] if "improved" in who else []))
            texts += [
                str(search.get("requests", "")),
                (what or "not accepted" * ("accepted" in search)).replace("|", "/"),
            ]
            lines.append(f"| {' | '.join(texts)} |")
    return [*lines, ""]


def _score(name: str, answer: dict[str, Any]) -> float:
    score = Score(answer["exact"], answer["found"], answer["made_up"], answer["missed"])
    return f1([score]) if "record" in name else float(score.exact)


def work(name: str, at: Server) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # some libraries print
    asks: dict[str, Found] = {}
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["task"] not in asks:
                asks[order["task"]] = CONTENDERS[name][1](at, Task(order["task"]))
            ask, search = asks[order["task"]]
            told = {"search": search} if "input" not in order else {"value": plain(ask(order["input"]))}
        except Exception as error:  # noqa: BLE001 - an error of any kind is an error of the contender
            told = {"problem": f"{type(error).__name__}: {error}"[:400]}
        print(json.dumps(told, default=repr), file=out, flush=True)


def main() -> int:
    from benchmarks.environments import home, prepare, python_of
    from benchmarks.field import Contender
    from benchmarks.league import sure
    from benchmarks.league.__main__ import CONTENDERS as LEAGUE
    from benchmarks.league.__main__ import MOST_SECONDS, Model, read
    from benchmarks.workers import Failed, WorkerProcess

    parser = argparse.ArgumentParser(prog="python -m benchmarks.league.improved", description="Does it get better?")
    for name, default in {"models": sure.MODELS, "tasks": ORDER, "contenders": tuple(CONTENDERS)}.items():
        parser.add_argument(f"--{name}", type=lambda text: tuple(text.split(",")), default=default)
    parser.add_argument("--rows", type=int, default=50, help="of train, that score what was found")
    given = parser.parse_args()
    needed = {**LEAGUE, "dspy_mipro": Contender("dspy_mipro", "DSPy", "dspy", ("dspy[optuna]",), "")}
    path = home().parent / "league" / "improved.jsonl"
    path.parent.mkdir(exist_ok=True)
    done = {(each["model"], each["contender"], each["id"]) for each in read(path)}
    with path.open("a", encoding="utf-8") as file:

        def keep(line: dict[str, Any]) -> None:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()

        for name, model, task in ((n, m, Task(t)) for n in given.contenders for m in given.models for t in given.tasks):
            head = {"model": model, "task": task.name, "contender": name}
            left = [row for row in task.split("train")[: given.rows] if (model, name, row["id"]) not in done]
            if not left:
                continue
            prepare(needed[CONTENDERS[name][0]])
            server = Model(model)
            worker = WorkerProcess(
                f"improved-{name}",
                python_of(CONTENDERS[name][0]),
                home(),
                "benchmarks.league.improved",
                name,
                *server.arguments,
            )
            try:
                told = worker.tell({"task": task.name}, seconds=SEARCH_SECONDS)
                search = told.get("search", told)
                if (model, name, f"{task.name}-search") not in done and search:
                    keep({**head, "id": f"{task.name}-search", **search})
                print(model, task.name, name, json.dumps(search)[:600], flush=True)
                if "problem" in told:
                    continue
                for row in left:
                    answer = worker.tell({"task": task.name, "input": row["input"]}, seconds=MOST_SECONDS)
                    keep({**head, **task.judged(row, answer)})
                print(model, task.name, name, "rows", len(left), flush=True)
            except Failed as failed:
                print(model, task.name, name, failed, file=sys.stderr, flush=True)
            finally:
                worker.close()
                server.close()
    KEPT.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] in CONTENDERS:
        work(sys.argv[1], Server(*sys.argv[2:5]))
    else:
        sys.exit(main())
