"""What ten thousand calls in flight and a quarter of an hour of traffic do to a process.

    python -m benchmarks.load                  # 10,000 calls in flight, then the 15-minute soak
    python -m benchmarks.load --quick          # 500 calls and 10 seconds: does the script still run?
    python -m benchmarks.load --write          # also puts the figures into docs/reference/load.md

The server (`benchmarks.server`) and each client (`benchmarks.in_flight`) are processes of their own. The server holds
every answer until all the questions are open at once, and says how many were; every answer is checked against its
question. What bare aiohttp takes for the same is measured in the same run.

The promises: no error, no wrong answer, no request more than one for each call, all of them open at once; the peak of
resident memory at most `ALLOWED_MB` above bare aiohttp's; during the soak constant memory, descriptors, tasks and
threads. The exit code is 0 where they are kept, 1 where one is broken, 2 where this machine cannot tell.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.in_flight import CLIENTS
from benchmarks.server import ServerProcess, raise_open_files

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "load.md"
BEGIN, END = "<!-- figures: make bench-load -->", "<!-- end of the figures -->"

ALLOWED_MB = 120.0
"""Resident memory above bare aiohttp's."""

ALLOWED_SLOPE = 0.1
"""MB per minute that memory may grow after the warm-up: 1.5 MB in 15 minutes. The clock of the measurement is the median
of all slopes between two samples (Theil and Sen), which single jumps do not move."""

WARM_UP = 0.2
"""The part of the soak after which it counts."""

SPARE_DESCRIPTORS = 100
JUDGED_SECONDS = 120.0
"""A shorter soak says nothing about what grows: a single stall of the machine puts more calls in flight than that."""


@dataclass(frozen=True)
class Verdict:
    promise: str
    is_kept: bool
    figure: str

    def __str__(self) -> str:
        return f"{'kept  ' if self.is_kept else 'BROKEN'} {self.promise}: {self.figure}"


# --- in flight -------------------------------------------------------------------------------------------


def in_flight(calls: int) -> Iterator[dict[str, Any]]:
    """Yield what each client took for `calls` calls at once."""
    for client, (options, _, _) in CLIENTS.items():
        with ServerProcess() as server:
            url = server.url(f"{options},hold={calls}")
            told = _json_of([sys.executable, "-m", "benchmarks.in_flight", client, url, str(calls)])
            yield {**told, "server": server.stats()}


def judge_in_flight(runs: Sequence[dict[str, Any]]) -> Iterator[Verdict]:
    by_client = {run["client"]: run for run in runs}
    for client, run in by_client.items():
        bare = CLIENTS[client][1]
        if not bare:
            continue
        calls, seen = run["calls"], run["server"]
        texts = "; ".join(f"{text} ({count})" for text, count in run["error_texts"])
        yield Verdict(
            f"{client}, no error and no wrong answer",
            run["errors"] == run["wrong"] == 0,
            f"{run['errors']} errors, {run['wrong']} wrong answers of {calls:,} {texts}".strip(),
        )
        yield Verdict(
            f"{client}, all in flight at once and none sent twice",
            seen["peak_open"] == seen["requests"] == calls,
            f"{seen['peak_open']:,} open at once, {seen['requests']:,} requests",
        )
        more = run["peak_mb"] - by_client[bare]["peak_mb"]
        yield Verdict(
            f"{client}, at most {ALLOWED_MB:g} MB above bare aiohttp",
            more <= ALLOWED_MB,
            f"{run['peak_mb']:.0f} MB, bare aiohttp {by_client[bare]['peak_mb']:.0f} MB: {more:+.0f} MB",
        )


# --- soak ------------------------------------------------------------------------------------------------


def soaked(seconds: float, rate: float) -> dict[str, Any]:
    """Return what a soak of so many seconds saw."""
    with ServerProcess() as server:
        command = [sys.executable, "-m", "benchmarks.soak", str(server.port), str(seconds), str(rate)]
        return {**_json_of(command), "server": server.stats()}


def counted(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the samples after the warm-up."""
    samples: list[dict[str, Any]] = run["samples"]
    return [sample for sample in samples if sample["second"] >= run["seconds"] * WARM_UP]


def slope_per_minute(samples: Sequence[dict[str, Any]], name: str) -> float:
    """Return by how much a figure grows in a minute.

    Source: Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968.
    """
    # A thousand samples make half a million pairs; every fifth of so many says as much.
    points = [(sample["second"], sample[name]) for sample in samples][:: max(1, len(samples) // 200)]
    slopes = [(later[1] - one[1]) / (later[0] - one[0]) for one, later in combinations(points, 2) if later[0] > one[0]]
    return 60 * statistics.median(slopes) if slopes else 0.0


def judge_soak(run: dict[str, Any]) -> Iterator[Verdict]:
    samples = counted(run)
    wrong = "; ".join(f"{text} ({count})" for text, count in run["wrong"])
    yield Verdict(
        "soak, every call ends as it should",
        run["wrong_count"] == run["unfinished"] == 0,
        f"{run['calls']:,} calls, {run['wrong_count']} ended otherwise, {run['unfinished']} unfinished {wrong}".strip(),
    )
    slope = slope_per_minute(samples, "rss_mb")
    is_long = run["seconds"] >= JUDGED_SECONDS
    yield Verdict(
        f"soak, memory grows by at most {ALLOWED_SLOPE:g} MB per minute",
        slope <= ALLOWED_SLOPE or not is_long,
        f"{samples[0]['rss_mb']:.1f} MB after the warm-up, {samples[-1]['rss_mb']:.1f} MB at the end, "
        + (f"{slope:+.3f} MB per minute" if is_long else "too short to tell"),
    )
    half = max(1, len(samples) // 2)
    for name, spare in (("descriptors", 20), ("tasks", 20), ("threads", 4)):
        first, last = (max(sample[name] for sample in part) for part in (samples[:half], samples[-half:]))
        yield Verdict(
            f"soak, no more {name} in its second half than in its first (up to {spare})",
            last <= first + spare or not is_long,
            f"at most {first}, then {last}; {run['after'][name]} when all calls had ended",
        )
    yield Verdict(
        "soak, no task left", run["after"]["tasks"] == run["before"]["tasks"], f"{run['after']['tasks']} at the end"
    )


# --- the report ------------------------------------------------------------------------------------------


def machine() -> str:
    """Describe the machine in general terms."""
    gigabytes = "unknown memory"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        gigabytes = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB of memory"
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {gigabytes}, {system}, CPython {platform.python_version()}, "
        f"aiohttp {importlib.metadata.version('aiohttp')}{load}, {dt.datetime.now(tz=dt.UTC):%d %B %Y}"
    )


def report(place: str, runs: Sequence[dict[str, Any]], soak: dict[str, Any] | None, verdicts: Sequence[Verdict]) -> str:
    """Return the figures as Markdown."""
    lines = [f"Measured on {place}.", ""]
    if runs:
        peaks = {run["client"]: run["peak_mb"] for run in runs}
        lines += [
            "| client | calls in flight | errors | wrong answers | peak of resident memory | above bare aiohttp | processor time |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for run in runs:
            bare = CLIENTS[run["client"]][1]
            more = f"{run['peak_mb'] - peaks[bare]:+.0f} MB" if bare else ""
            lines.append(
                f"| {run['client']} | {run['server']['peak_open']:,} | {run['errors']} | {run['wrong']} "
                f"| {run['peak_mb']:.0f} MB | {more} | {run['cpu_seconds']:.1f} s |"
            )
        lines.append("")
    if soak:
        samples = counted(soak)
        lines += [
            f"The soak: {soak['seconds'] / 60:g} minutes, {soak['calls']:,} calls, {soak['rate']:g} per second.",
            "",
            "| | after the warm-up | at the end | at most |",
            "|---|---:|---:|---:|",
            *(
                f"| {label} | {samples[0][name]:g} | {samples[-1][name]:g} | {max(s[name] for s in samples):g} |"
                for label, name in (
                    ("resident memory, MB", "rss_mb"),
                    ("open descriptors", "descriptors"),
                    ("tasks", "tasks"),
                    ("threads", "threads"),
                )
            ),
            "",
            f"Memory grew by {slope_per_minute(samples, 'rss_mb'):+.3f} MB per minute. How the calls ended, all as they should:",
            "",
            "| kind of call | calls |",
            "|---|---:|",
            *(f"| {kind.replace('_', ' ')} | {count:,} |" for kind, count in soak["ended"].items()),
            "",
        ]
    lines += ["```text", *map(str, verdicts), "```"]
    return "\n".join(lines)


def write_page(figures: str) -> None:
    """Put the figures into the page, between its two marks."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}", "utf-8")


def _json_of(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[1:4])} ended with exit code {done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Load on the library: calls in flight, and a soak.")
    parser.add_argument("--calls", type=int, default=10_000, help="in flight at once; 0 leaves that part out")
    parser.add_argument("--soak", type=float, default=15.0, metavar="MINUTES", help="0 leaves that part out")
    parser.add_argument("--rate", type=float, default=100.0, help="calls per second during the soak")
    parser.add_argument("--quick", action="store_true", help="500 calls and 10 seconds")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reference/load.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="put everything that was measured into a file")
    given = parser.parse_args(arguments)
    calls, seconds = (500, 10.0) if given.quick else (given.calls, given.soak * 60)

    allowed = raise_open_files()
    if allowed and allowed < calls + SPARE_DESCRIPTORS:
        print(
            f"This machine allows a process {allowed:,} open files; {calls:,} calls in flight need "
            f"{calls + SPARE_DESCRIPTORS:,}. Raise the hard limit (ulimit -Hn, LimitNOFILE=), or say --calls "
            f"{max(0, allowed - SPARE_DESCRIPTORS)}.",
            file=sys.stderr,
        )
        return 2
    place = machine()
    print(place, flush=True)
    runs: list[dict[str, Any]] = []
    for run in in_flight(calls) if calls else ():
        runs.append(run)
        print(
            f"{run['client']:22} {run['calls']:>7,} calls {run['peak_mb']:7.1f} MB at most, {run['errors']} errors, "
            f"{run['wrong']} wrong, {run['server']['peak_open']:,} open at once, {run['seconds']:.1f} s "
            f"({run['cpu_seconds']:.1f} s of the processor)",
            flush=True,
        )
    soak = soaked(seconds, given.rate) if seconds else None
    verdicts = [*judge_in_flight(runs), *(judge_soak(soak) if soak else ())]
    print(*verdicts, sep="\n", flush=True)
    if given.json:
        given.json.write_text(json.dumps({"machine": place, "in_flight": runs, "soak": soak}, indent=1), "utf-8")
    if given.write:
        write_page(report(place, runs, soak, verdicts))
    return 0 if all(verdict.is_kept for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
