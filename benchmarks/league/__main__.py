"""The league: how right the answers of a small local model are, asked by us and by nine others.

    python -m benchmarks.league                                    # dev; an hour or two; goes on where it broke off
    python -m benchmarks.league --split test                       # once per release; the page says when
    python -m benchmarks.league --rows 10 --tasks sentiment --contenders ours,openai --models smollm2-135m --no-write
    python -m benchmarks.league --rows 0                           # only writes the page again
    python -m benchmarks.league --rows 0 --reports reports         # and what `simplellmfunc view --report` compares

Every answer is a line of `.bench/league/<split>.jsonl`, and is asked once; `--again ours` forgets those of a contender. All
are asked one after the other, ten rows at a time and in turns, so that what is there when it breaks off can be compared.
"""

from __future__ import annotations

import argparse
import datetime as dt
import fcntl
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.environments import home, installed, prepare, python_of
from benchmarks.field import BY_NAME, Contender
from benchmarks.league.page import write
from benchmarks.league.replay import recorded
from benchmarks.league.reports import write_reports
from benchmarks.league.tasks import ORDER, Task
from benchmarks.workers import ROOT, Failed, WorkerProcess

MODELS = ("smollm2-135m", "gemma3-270m")
AT_ONCE = 10
MOST_SECONDS = 180.0
CONTENDERS: dict[str, Contender] = {
    **{name: BY_NAME[name] for name in ("ours", "openai", "instructor", "pydantic_ai", "magentic", "mirascope")},
    **{name: BY_NAME[name] for name in ("langchain", "dspy")},
    "baml": Contender("baml", "BAML", "baml-py", ("baml-py", "pydantic"), ""),
    "outlines": Contender("outlines", "outlines", "outlines", ("outlines[openai]",), ""),
}
Answer = dict[str, Any]


class Model:
    """The server of a model, in a process of its own."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", "benchmarks.league.server", name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True)
        told = self._line()
        self.arguments = (told["url"], told["key"], name)

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"the server ended with {self._process.wait(10)}")
        told: dict[str, Any] = json.loads(line)
        return told

    def spent(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._line()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


class Asked:
    """The contenders' processes for one model."""

    def __init__(self, model: Model) -> None:
        self._model, self._workers = model, dict[str, WorkerProcess]()

    def ask(self, name: str, task: Task, row: dict[str, Any]) -> Answer:
        """Have a contender answer a row; return what came of it and what it cost."""
        if name not in self._workers:
            command = ("benchmarks.league.contenders", name, *self._model.arguments)
            self._workers[name] = WorkerProcess(name, python_of(name), home(), *command)
        before = self._model.spent()
        try:
            told = self._workers[name].tell({"task": task.name, "input": row["input"]}, seconds=MOST_SECONDS)
        except Failed as failed:
            self._workers.pop(name).close()
            told = {"problem": str(failed), "seconds": MOST_SECONDS}
        cost = {key: round(value - before[key], 2) for key, value in self._model.spent().items()}
        return {**task.judged(row, told), "seconds": round(told["seconds"], 3), **cost}

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


@contextmanager
def asked(name: str) -> Iterator[Asked]:
    model = Model(name)
    workers = Asked(model)
    try:
        yield workers
    finally:
        workers.close()
        model.close()


def read(path: Path) -> list[Answer]:
    """Return the answers of a file; a last line that was cut is left out."""
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def text_of(answers: Sequence[Answer]) -> str:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in answers)


def run(given: argparse.Namespace, path: Path) -> None:
    """Ask what was not asked yet, and write every answer down at once."""
    answers = [each for each in read(path) if each["contender"] not in given.again]
    part = path.with_suffix(".part")
    part.write_text(text_of(answers), encoding="utf-8")
    part.replace(path)
    done = {(each["model"], each["contender"], each["id"]) for each in answers}
    versions: dict[str, str] = {}
    for name in given.contenders:
        try:
            prepare(CONTENDERS[name])
            versions[name] = installed(CONTENDERS[name])["versions"][CONTENDERS[name].package]
        except Failed as failed:
            print(f"{name} cannot be installed: {failed}", file=sys.stderr)
    tasks = [Task(name) for name in given.tasks]
    with path.open("a", encoding="utf-8") as file:
        for start in range(0, given.rows, AT_ONCE):
            for model in given.models:
                with asked(model) as workers:
                    for task in tasks:
                        rows = task.split(given.split)[start : min(start + AT_ONCE, given.rows)]
                        for name, version in versions.items():
                            left = [row for row in rows if (model, name, row["id"]) not in done]
                            for row in left:
                                head = {"model": model, "task": task.name, "contender": name, "version": version}
                                date = dt.datetime.now(dt.UTC).date().isoformat()
                                answer = {**head, "date": date, **workers.ask(name, task, row)}
                                file.write(json.dumps(answer, ensure_ascii=False) + "\n")
                                file.flush()
                                told = f"{model:13} {name:12} {answer['id']:26} {answer['kind']:6}"
                                print(f"{told} {answer['seconds']:7.2f} s  {answer['said'][:70]}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    names = {"tasks": ORDER, "contenders": tuple(CONTENDERS), "models": MODELS, "again": ()}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league", description="Are the answers right?")
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--rows", type=int, default=150, help="of each task; there are 60 of dev, 150 of test")
    for name, default in names.items():
        parser.add_argument(f"--{name}", type=lambda text: tuple(text.split(",")), default=default)
    parser.add_argument("--note", default="", help="a sentence for the page")
    parser.add_argument("--reports", type=Path, help="write reports here, for `simplellmfunc view --report`")
    parser.add_argument("--no-write", action="store_true", help="no page")
    given = parser.parse_args(arguments)
    path = home().parent / "league" / f"{given.split}.jsonl"
    kept = Path(__file__).parent / f"{given.split}.jsonl.gz"
    path.parent.mkdir(exist_ok=True)
    if not path.exists() and kept.exists():
        lines = gzip.decompress(kept.read_bytes()).decode().splitlines()
        path.write_text(text_of([each for each in map(json.loads, lines) if "seconds" in each]), encoding="utf-8")
    if given.rows:
        with path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                parser.error(f"another run writes {path.name}; wait for its end")
            run(given, path)
    answers = read(path)
    if given.split == "dev":
        there = {(each["model"], each["contender"], each["id"]) for each in answers}
        answers += [each for each in recorded() if (each["model"], each["contender"], each["id"]) not in there]
    if given.reports:
        print(*write_reports(answers, given.reports), sep="\n")
    if not given.no_write:
        kept.write_bytes(gzip.compress(text_of(answers).encode(), 9, mtime=0))
        write(answers, given.split, given.note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
