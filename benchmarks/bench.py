"""Measures the whole field, and writes RESULTS.md, results.json and results.svg.

    python -m benchmarks.bench                                # everything, about half an hour
    python -m benchmarks.bench --only ours,openai --rows plain,typed --rounds 3 --no-write

All contenders run interleaved: in every round, every row is measured of one after the other. A figure is the median
of its rounds. What cannot be installed, or fails, is listed with its error.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime as dt
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.contenders._worker import ORDER
from benchmarks.environments import SERVER, home, import_seconds, installed, prepare, python_of
from benchmarks.field import AIOHTTP, BY_NAME, FIELD, SAID, SDK, Contender
from benchmarks.rows import BY_KEY, LONG, ROWS, TEXT, Row, median, microseconds
from benchmarks.server import ServerProcess
from benchmarks.workers import Bench, Failed, Lacks


@dataclass
class Results:
    """What came out of a run.

    Attributes:
        samples: by row and contender.
        lacking: rows that a contender has nothing for, with the reason.
        failed: rows, or "install", that went wrong, with the error.
        versions: of the packages, by contender.
        about: the machine, the date, the server.
    """

    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    lacking: dict[str, dict[str, str]] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def add(self, row: str, name: str, figure: float) -> None:
        self.samples.setdefault(row, {}).setdefault(name, []).append(figure)

    def figure(self, row: str, name: str) -> float | None:
        """Return the median, None where there is none."""
        if row in self.failed.get(name, {}):
            return None
        return median(self.samples.get(row, {}).get(name, []))

    def ratio(self, row: str, name: str, base: str) -> float | None:
        """Return the median of the ratios within the rounds: what slows a whole round hits both, and falls out."""
        if self.figure(row, name) is None or self.figure(row, base) is None:
            return None
        taken = self.samples[row]
        return median([figure / other for figure, other in zip(taken[name], taken[base], strict=False) if other])

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        return cls(**json.loads(text))


def machine() -> dict[str, Any]:
    """Describe the machine in general terms."""
    told: dict[str, Any] = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} on {platform.machine()}",
        "processors": os.cpu_count(),
    }
    with contextlib.suppress(OSError, ValueError, AttributeError):
        told["memory_gb"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    with contextlib.suppress(OSError, AttributeError):
        told["load_before"] = round(os.getloadavg()[0], 2)
    return told


def teach(server: ServerProcess) -> None:
    """Tell the server what is to be said."""
    server.say("text", TEXT)
    server.say("long", LONG)
    for name, form in SAID.items():
        server.say(name, form.replace("{text}", TEXT).replace("{order}", json.dumps(ORDER)))


def samples(
    bench: Bench, contenders: Sequence[Contender], rows: Sequence[Row], rounds: int, results: Results
) -> Iterator[tuple[int, Row, Contender, str]]:
    """Take all samples, round by round; yields what was done, for whoever watches."""
    for number in range(rounds):
        for row in rows:
            if number >= row.rounds:
                continue
            # Another one begins each time, so that nobody always runs after the same neighbour.
            shift = number % len(contenders)
            for contender in (*contenders[shift:], *contenders[:shift]):
                name = contender.name
                if row.key in results.failed.get(name, {}) or row.key in results.lacking.get(name, {}):
                    continue
                try:
                    figure = row.figure(_told(bench, contender, row))
                except Lacks as lack:
                    results.lacking.setdefault(name, {})[row.key] = said = str(lack)
                except Failed as error:
                    results.failed.setdefault(name, {})[row.key] = said = str(error)
                else:
                    results.add(row.key, name, figure)
                    said = f"{figure:.4g} {row.unit}"
                yield number, row, contender, said


def _told(bench: Bench, contender: Contender, row: Row) -> dict[str, Any]:
    if row.mode == "import":
        return {"seconds": import_seconds(contender, bench.python(contender.name))}
    if row.mode == "environment":
        return installed(contender)
    # The same words suit all rows that call the same method; a row's own call comes before.
    kind = {"peak1000": "plain", "imported": "plain", "first": "plain"}.get(row.key, row.ask)
    return bench.measure(contender.name, row, contender.options.get(kind, ""))


def server_cost(bench: Bench, server: ServerProcess, name: str, *, rounds: int = 5) -> tuple[float, float]:
    """Return the server's processor time per call with 256 in flight, in µs, and how many times that the client takes.

    Medians, each ratio of one sample: a moment in which the machine is slow meets both.
    """
    costs, times = [], []
    for _ in range(rounds):
        before = server.stats()
        told = bench.measure(name, dataclasses.replace(BY_KEY["flight256"], key="server"))
        after = server.stats()
        costs.append(
            (after["cpu_microseconds"] - before["cpu_microseconds"]) / (after["requests"] - before["requests"])
        )
        times.append(microseconds(told) / costs[-1])
    return statistics.median(costs), statistics.median(times)


def run(contenders: Sequence[Contender], rows: Sequence[Row], rounds: int, *, is_pinned: bool) -> Results:
    """Set the environments up, measure, and return what came out."""
    results = Results(about={"date": dt.datetime.now(dt.UTC).date().isoformat(), "rounds": rounds, **machine()})
    ready: list[Contender] = []
    for contender in contenders:
        print(f"environment of {contender.title} …", file=sys.stderr, flush=True)
        try:
            prepare(contender, is_pinned=is_pinned)
            versions = installed(contender)["versions"]
            below = f" on openai {versions['openai']}" if contender.name != SDK and "openai" in versions else ""
            results.versions[contender.name] = versions.get(contender.package, "?") + below
        except Failed as error:
            results.failed[contender.name] = {"install": str(error)}
        else:
            ready.append(contender)
    try:
        server_python: Path = prepare(SERVER, is_pinned=is_pinned)
        results.about["server"] = "uvloop"
    except Failed:
        server_python, results.about["server"] = Path(sys.executable), "asyncio"
    begun = time.perf_counter()
    with ServerProcess(server_python) as server, Bench(server, python_of, home()) as bench:
        teach(server)
        for number, row, contender, said in samples(bench, ready, rows, rounds, results):
            print(f"round {number + 1}  {row.title[:40]:40}  {contender.title:18} {said}", file=sys.stderr, flush=True)
        if AIOHTTP in {contender.name for contender in ready}:
            with contextlib.suppress(Failed, Lacks):
                cost, times = server_cost(bench, server, AIOHTTP)
                results.about |= {"server_us": round(cost, 1), "server_times": round(times, 1)}
    results.about["minutes"] = round((time.perf_counter() - begun) / 60, 1)
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    from benchmarks.report import table, write

    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description="Measure the whole field.")
    parser.add_argument("--only", default=",".join(BY_NAME), help="contenders, by their names")
    parser.add_argument("--rows", default=",".join(BY_KEY), help="rows, by their keys")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, help="of one sample, instead of what the rows say")
    parser.add_argument("--repin", action="store_true", help="new environments with the versions of today")
    parser.add_argument("--no-write", action="store_true", help="only print")
    given = parser.parse_args(arguments)
    rows = [row for row in ROWS if row.key in given.rows.split(",")]
    if given.seconds:
        rows = [dataclasses.replace(row, seconds=given.seconds) for row in rows]
    contenders = [contender for contender in FIELD if contender.name in given.only.split(",")]
    results = run(contenders, rows, given.rounds, is_pinned=not given.repin)
    print(table(results, SDK if SDK in results.versions else ""))
    if not given.no_write:
        write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
