"""A small part of the league without a model: our own functions over recorded replies, in seconds.

    python -m benchmarks.league.replay             # prints what the recordings give, beside what they gave
    python -m benchmarks.league.replay --record    # records anew, with both models: after a change of the prompts

A prompt that has changed is not in the recording: the replay fails and shows the difference. Then it is time to measure.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.league.contenders import MOST_TOKENS
from benchmarks.league.page import Cell
from benchmarks.league.tasks import ORDER, Task, plain
from SimpleLLMFunc import LocalModel, SimpleLLMFuncError, llm_function
from SimpleLLMFunc.testing import UnmatchedRequest, use_cassette

FOLDER = Path(__file__).parent / "cassettes"
MODELS = ("smollm2-135m", "gemma3-270m")
ROWS = 50


def asked(llm: Any, rows: int = ROWS) -> dict[str, list[dict[str, Any]]]:
    """Return what our functions make of the first rows of dev, by task."""
    found: dict[str, list[dict[str, Any]]] = {}
    for task in map(Task, ORDER):
        function = llm_function(llm_interface=llm, max_tokens=MOST_TOKENS)(task.function())
        for row in task.split("dev")[:rows]:
            try:
                told = {"value": plain(function(**row["input"]))}
            except UnmatchedRequest:
                raise
            except SimpleLLMFuncError as error:
                told = {"problem": f"{type(error).__name__}: {error}"}
            found.setdefault(task.name, []).append(task.judged(row, told))
    return found


def figures(found: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return the figure of each task as the page shows it."""
    cells = {name: Cell({each["id"]: each for each in answers}, "record" in name) for name, answers in found.items()}
    return {name: round(cell.figure, 4) for name, cell in cells.items()}


def replay(model: str) -> tuple[dict[str, list[dict[str, Any]]], dict[str, float]]:
    """Return what the recording of a model gives, and the figures that it gave when it was made.

    Raises:
        UnmatchedRequest: a function asks for something else than it did then.
    """
    kept = json.loads(gzip.decompress((FOLDER / f"{model}.json.gz").read_bytes()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cassette.json")
        path.write_text(json.dumps(kept["cassette"]), encoding="utf-8")
        with use_cassette(path, record="none") as tape:
            return asked(tape.wrap(LocalModel(model)), kept["rows"]), kept["figures"]


def record(model: str, rows: int) -> None:
    """Ask the model, and keep what it said."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cassette.json")
        with use_cassette(path, record="all") as tape:
            found = figures(asked(tape.wrap(LocalModel(model)), rows))
        kept = {"rows": rows, "figures": found, "cassette": json.loads(path.read_text("utf-8"))}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{model}.json.gz").write_bytes(gzip.compress(json.dumps(kept).encode(), 9, mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league.replay", description="The league, recorded.")
    parser.add_argument("--record", action="store_true", help="ask the models, and keep what they say")
    parser.add_argument("--models", type=lambda text: tuple(text.split(",")), default=MODELS)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each task, to record")
    given = parser.parse_args()
    for model in given.models:
        if given.record:
            record(model, given.rows)
        found, before = replay(model)
        for name, figure in figures(found).items():
            print(f"{model:13} {name:18} {figure:.2f}, was {before[name]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
