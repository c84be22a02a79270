"""A small part of the league without a model: our own functions over recorded replies, in seconds.

    python -m benchmarks.league.replay             # prints what the recordings give, beside what they gave
    python -m benchmarks.league.replay --record    # records, with both models: after a change of the prompts; can be broken off

A prompt that has changed is not in the recording: the replay fails and shows the difference. Then it is time to measure.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environments import home
from benchmarks.league.contenders import MOST_TOKENS
from benchmarks.league.page import Cell
from benchmarks.league.tasks import ORDER, Task, plain
from SimpleLLMFunc import LocalModel, SimpleLLMFuncError, __version__, llm_function
from SimpleLLMFunc.testing import UnmatchedRequest, use_cassette

FOLDER = Path(__file__).parent / "cassettes"
MODELS = ("smollm2-135m", "gemma3-270m")
ROWS = 50
AT_ONCE = 5


Found = dict[str, list[dict[str, Any]]]
"""What came of the rows of each task."""


def asked(llm: Any, name: str, rows: range) -> list[dict[str, Any]]:
    """Return what our function makes of some rows of dev of a task."""
    task = Task(name)
    function = llm_function(llm_interface=llm, max_tokens=MOST_TOKENS)(task.function())
    found = []
    for row in task.split("dev")[rows.start : rows.stop]:
        try:
            told = {"value": plain(function(**row["input"]))}
        except UnmatchedRequest:
            raise
        except SimpleLLMFuncError as error:
            told = {"problem": f"{type(error).__name__}: {error}"}
        found.append(task.judged(row, told))
    return found


def figures(found: Found) -> dict[str, float]:
    """Return the figure of each task as the page shows it."""
    cells = {name: Cell({each["id"]: each for each in answers}, "record" in name) for name, answers in found.items()}
    return {name: round(cell.figure, 4) for name, cell in cells.items()}


def replay(model: str) -> tuple[Found, dict[str, float]]:
    """Return what the recordings of a model give, and the figures that they gave when they were made.

    Raises:
        UnmatchedRequest: a function asks for something else than it did then.
    """
    found, before = Found(), dict[str, float]()
    for name in (each for each in ORDER if _place(model, each).exists()):
        kept = json.loads(gzip.decompress(_place(model, name).read_bytes()))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "cassette.json")
            path.write_text(json.dumps(kept["cassette"]), encoding="utf-8")
            with use_cassette(path, record="none") as tape:
                found[name] = asked(tape.wrap(LocalModel(model)), name, range(kept["rows"]))
        before[name] = kept["figure"]
    return found, before


def record(model: str, name: str, rows: int) -> None:
    """Ask the model for rows of a task, and keep what it said; what was kept since the prompt changed is not asked again."""
    path = home().parent / "league" / f"{model}-{name}.cassette.json"
    path.parent.mkdir(exist_ok=True)
    found: list[dict[str, Any]] = []
    for start in range(0, rows, AT_ONCE):
        with use_cassette(path, record="new") as tape:
            found += asked(tape.wrap(LocalModel(model)), name, range(start, min(rows, start + AT_ONCE)))
        kept = {
            "rows": len(found),
            "figure": figures({name: found})[name],
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "answers": found,
            "cassette": json.loads(path.read_text("utf-8")),
        }
        place = _place(model, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(gzip.compress(json.dumps(kept, ensure_ascii=False).encode(), 9, mtime=0))
        print(f"{model:13} {name:18} {kept['figure']:.2f} of {len(found)} rows", flush=True)


def recorded() -> list[dict[str, Any]]:
    """Return our recorded answers as lines of a league's file, without times."""
    head = {"contender": "ours", "version": __version__}
    lines = []
    for model, name in ((model, name) for model in MODELS for name in ORDER if _place(model, name).exists()):
        kept = json.loads(gzip.decompress(_place(model, name).read_bytes()))
        lines += [{"model": model, "task": name, **head, "date": kept["date"], **each} for each in kept["answers"]]
    return lines


def _place(model: str, name: str) -> Path:
    return FOLDER / model / f"{name}.json.gz"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league.replay", description="The league, recorded.")
    parser.add_argument("--record", action="store_true", help="ask the models, and keep what they say")
    parser.add_argument("--models", type=lambda text: tuple(text.split(",")), default=MODELS)
    parser.add_argument("--tasks", type=lambda text: tuple(text.split(",")), default=ORDER, help="to record")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each task, to record")
    given = parser.parse_args()
    for model in given.models:
        if given.record:
            for name in given.tasks:
                record(model, name, given.rows)
            continue
        found, before = replay(model)
        for name, figure in figures(found).items():
            print(f"{model:13} {name:18} {figure:.2f}, was {before[name]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
