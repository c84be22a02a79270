"""What a step of a durable block costs beside SQLite's own commit: ``python -m benchmarks.journal [--write]``."""

from __future__ import annotations

import argparse
import asyncio
import platform
import sqlite3
import tempfile
import time
from contextlib import closing, nullcontext
from pathlib import Path

from SimpleLLMFunc import durable, llm_function, tool, use_llm
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

RESULTS = Path(__file__).parent / "RESULTS-journal.md"


@tool
async def look(step: int) -> str:
    """Look."""
    return f"seen {step}"


def model(rounds: int) -> ScriptedLLM:
    return ScriptedLLM(*(tool_calls(("look", {"step": step})) for step in range(rounds)), "done")


@llm_function(toolkit=[look], max_tool_calls=1_000_000)
async def work(order: str) -> str:
    """Work."""


async def run(rounds: int, block: object) -> float:
    """Return the processor seconds of one run, its threads included."""
    began = time.process_time()
    with use_llm(model(rounds)), block:
        await work("x")
    return time.process_time() - began


def commits(path: Path, count: int, size: int) -> float:
    """Return the processor seconds of one commit of a row as large as a step, in the same mode, by SQLite alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE steps (key INTEGER, n INTEGER, data TEXT, checksum BLOB, PRIMARY KEY (key, n))")
    row = ("x" * size, b"x" * 16)
    began = time.process_time()
    for number in range(count):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO steps VALUES (1, ?, ?, ?)", (number, *row))
        connection.execute("COMMIT")
    seconds = (time.process_time() - began) / count
    connection.close()
    return seconds


async def measure(rounds: int, times: int) -> dict[str, float]:
    """Return milliseconds, the best of several rounds of each kind, in turns."""
    steps = 2 * rounds + 1
    found: dict[str, list[float]] = {"plain": [], "kept": [], "given again": [], "SQLite": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        await run(rounds, durable(path, "warm"))
        with closing(sqlite3.connect(path)) as connection, connection:
            ((size,),) = connection.execute("SELECT avg(length(data)) FROM steps").fetchall()
        for number in range(times):
            key = f"run {number}"
            found["plain"].append(await run(rounds, nullcontext()) / steps)
            found["kept"].append(await run(rounds, durable(path, key)) / steps)
            found["given again"].append(await run(rounds, durable(path, key)) / steps)
            found["SQLite"].append(commits(Path(folder) / f"{number}.sqlite", steps, int(size)))
    return {name: 1000 * min(each) for name, each in found.items()}


def told(found: dict[str, float], rounds: int) -> str:
    """Return the figures as a page."""
    more = found["kept"] - found["plain"]
    return f"""# What a step of a durable block costs

Made by `python -m benchmarks.journal --write` on {platform.python_implementation()} {platform.python_version()}, \
SQLite {sqlite3.sqlite_version}; do not edit. A run of {rounds} rounds of one tool with a scripted model: each reply
and each result of a tool is a step, written before it is used. Processor time, that of threads included.

| | ms a step |
| --- | ---: |
| without a block | {found["plain"]:.3f} |
| in a block, written | {found["kept"]:.3f} |
| in a block, given again | {found["given again"]:.3f} |
| **what the block adds** | **{more:.3f}** |
| of which SQLite alone takes, for a row of that size | {found["SQLite"]:.3f} |
| **beside SQLite's own commit** | **{more - found["SQLite"]:.3f}** |
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    given = parser.parse_args(arguments)
    page = told(asyncio.run(measure(given.rounds, given.times)), given.rounds)
    print(page)
    if given.write:
        RESULTS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
