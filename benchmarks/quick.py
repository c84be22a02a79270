"""Ours against the bare openai package and bare aiohttp, in under a minute; fails if we became twice as slow.

    python -m benchmarks.quick              # prints the table, compares with recorded.json
    python -m benchmarks.quick --record     # writes down what it measured

It compares ratios, which differ less between machines than times do, and looks a second time before it complains.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.bench import Results, samples, teach
from benchmarks.field import AIOHTTP, BY_NAME, OURS, SDK
from benchmarks.report import table
from benchmarks.rows import BY_KEY, Row
from benchmarks.server import ServerProcess
from benchmarks.workers import Bench

RECORDED = Path(__file__).parent / "recorded.json"
KEYS = (
    "plain",
    "plain_any",
    "typed",
    "tool",
    "tool_any",
    "history",
    "chunk200",
    "chunk2000",
    "flight256",
    "share1000",
    "sync1",
    "import",
)
BASES = (SDK, AIOHTTP)
TOO_MUCH = 2.0

Ratios = dict[str, dict[str, float]]
"""By row and base."""


def quick_rows(keys: Sequence[str], seconds: float) -> list[Row]:
    """Return the rows as they are asked in short."""
    rows = [dataclasses.replace(BY_KEY[key], seconds=seconds) for key in keys]
    rounds = {"share1000": 1, "flight256": 2}
    return [dataclasses.replace(row, rounds=rounds.get(row.key, row.rounds)) for row in rows]


def measure(keys: Sequence[str], *, rounds: int = 3, seconds: float = 0.2) -> Results:
    """Measure rows of the three in the interpreter that runs this."""
    results = Results()
    contenders = [BY_NAME[name] for name in (AIOHTTP, SDK, OURS)]
    for contender in contenders:
        results.versions[contender.name] = version(contender.package)
    # A thousand calls through the SDK take longer than all the rest: that row is ours against aiohttp.
    results.lacking[SDK] = {"share1000": "takes too long for this"}
    with (
        tempfile.TemporaryDirectory() as home,
        ServerProcess() as server,
        Bench(server, lambda _: Path(sys.executable), Path(home)) as bench,
    ):
        teach(server)
        for _ in samples(bench, contenders, quick_rows(keys, seconds), rounds, results):
            pass
    return results


def ratios_of(results: Results) -> Ratios:
    """Return our ratios to both bases."""
    found: Ratios = {}
    for key in results.samples:
        for base in BASES:
            if (value := results.ratio(key, OURS, base)) is not None:
                found.setdefault(key, {})[base] = round(value, 3)
    return found


def worse(ratios: Ratios, recorded: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return the rows that are over twice as bad as they were recorded, with what to say about each."""
    found: dict[str, str] = {}
    for key, by_base in recorded.items():
        for base, before in by_base.items():
            now = ratios.get(key, {}).get(base)
            if now is None:
                found[key] = f"{BY_KEY[key].title}: recorded, but not measured"
            elif (times := BY_KEY[key].worse_by(now, before)) > TOO_MUCH:
                found[key] = (
                    f"{BY_KEY[key].title}: {now:.2f} of {BY_NAME[base].title}, {times:.1f} times worse than {before:.2f}"
                )
    return found


def report(results: Results, ratios: Ratios, recorded: Mapping[str, Mapping[str, float]]) -> str:
    """Return the table of figures, and beside it our ratios, now and as recorded."""
    lines = [
        table(results),
        "",
        "| ours to | openai | recorded | aiohttp | recorded |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for key, by_base in ratios.items():
        cells = [
            f"{source[base]:.2f}" if base in source else "–"
            for base in BASES
            for source in (by_base, recorded.get(key, {}))
        ]
        lines.append(f"| {BY_KEY[key].title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None, recorded_in: Path = RECORDED) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quick", description="Ours, the SDK and aiohttp.")
    parser.add_argument("--record", action="store_true", help="write the ratios down")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one sample")
    parser.add_argument("--rows", default=",".join(KEYS), help="by their keys")
    given = parser.parse_args(arguments)
    keys = given.rows.split(",")
    results = measure(keys, rounds=given.rounds, seconds=given.seconds)
    ratios = ratios_of(results)
    recorded: dict[str, Any] = json.loads(recorded_in.read_text("utf-8"))["ratios"] if recorded_in.exists() else {}
    recorded = {key: by_base for key, by_base in recorded.items() if key in keys}
    print(report(results, ratios, recorded))
    if results.failed:
        print(json.dumps(results.failed, indent=1))
        return 1
    if given.record:
        about = {"date": dt.datetime.now(dt.UTC).date().isoformat(), "python": platform.python_version()}
        text = json.dumps({**about, "versions": results.versions, "ratios": ratios}, indent=1) + "\n"
        recorded_in.write_text(text, encoding="utf-8")
        return 0
    found = worse(ratios, recorded)
    if found:
        print("\nLooking a second time at:", *found.values(), sep="\n  ")
        again = measure(list(found), rounds=given.rounds, seconds=given.seconds * 2)
        found = worse(ratios_of(again), {key: recorded[key] for key in found})
    print(
        "\nSlower than it was:" if found else "\nNo row is twice as bad as it was recorded.",
        *found.values(),
        sep="\n  ",
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
