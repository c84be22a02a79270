"""From samples to medians, ratios, tables and the plot; and what is said about those who fail."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from benchmarks import environments
from benchmarks.bench import Results, machine, samples
from benchmarks.environments import import_seconds, prepare
from benchmarks.field import BY_NAME, FIELD, Contender
from benchmarks.report import page, plot, table, write
from benchmarks.rows import BY_KEY, Row
from benchmarks.workers import Bench, Failed, Lacks


class Told(Bench):
    """Tells what it was given, in the place of processes."""

    def __init__(self, told: dict[tuple[str, str], Any]) -> None:
        self.told = told
        self.asked: list[tuple[str, str]] = []

    def measure(self, name: str, row: Row, more_options: str = "") -> dict[str, Any]:
        self.asked.append((row.key, name))
        told = self.told[row.key, name]
        if isinstance(told, Exception):
            raise told
        return {"calls": 1_000, "cpu": told.pop(0)}


def test_rounds_are_interleaved_and_who_fails_is_listed_and_left_out() -> None:
    bench = Told(
        {
            ("plain", "openai"): [3.0, 1.0, 2.0], ("plain", "ours"): [0.3, 0.2, 0.1],
            ("plain", "dspy"): Failed("it broke"), ("typed", "openai"): [4.0, 4.0, 4.0],
            ("typed", "ours"): [1.0, 1.0, 1.0], ("typed", "dspy"): Lacks("has no types"),
        }
    )  # fmt: skip
    results = Results()
    contenders, rows = [BY_NAME[name] for name in ("openai", "dspy", "ours")], [BY_KEY["plain"], BY_KEY["typed"]]
    assert len(list(samples(bench, contenders, rows, 3, results))) == 3 * 4 + 2
    assert [name for _, name in bench.asked[:4]] == ["openai", "dspy", "ours", "openai"]
    # Another one begins in the second round.
    assert bench.asked[6] == ("plain", "ours")
    assert results.failed == {"dspy": {"plain": "it broke"}}
    assert results.lacking == {"dspy": {"typed": "has no types"}}
    assert results.figure("plain", "openai") == 2_000
    assert results.figure("plain", "ours") == 200
    assert results.figure("plain", "dspy") is None
    # The median of 0.1, 0.2 and 0.05: of the ratios within the rounds.
    assert results.ratio("plain", "ours", "openai") == pytest.approx(0.1)
    assert results.ratio("plain", "dspy", "openai") is None
    assert results.ratio("typed", "ours", "aiohttp") is None
    assert Results.from_json(results.to_json()) == results


@pytest.fixture
def results() -> Results:
    about = {"date": "2026-11-22", "rounds": 1, "server": "uvloop", "server_us": 10.0, "server_times": 9.5}
    made = Results(about=about | machine())
    made.versions = {"aiohttp": "3.1", "openai": "3.2", "ours": "1.0"}
    for name, us, rate in (("aiohttp", 100.0, 5_000.0), ("openai", 1_000.0, 200.0), ("ours", 150.0, 3_000.0)):
        made.add("plain", name, us)
        made.add("flight256", name, rate)
    made.lacking = {"aiohttp": {"map1000": "has nothing of the kind"}, "ours": {"map1000": "has nothing of the kind"}}
    made.failed = {"dspy": {"install": "no `such` thing"}, "ours": {"typed": "wrong answer"}}
    made.add("typed", "ours", 5.0)
    made.add("typed", "openai", 5.0)
    return made


def test_a_table_of_ratios(results: Results) -> None:
    lines = table(results, "openai").splitlines()
    assert lines[0] == "|  | bare aiohttp | openai | dspy | **SimpleLLMFunc** |"
    assert lines[2] == "| plain call | 0.10 | 1.00 | failed | **0.15** |"
    assert lines[3] == "| typed call, nested model of 6 fields | – | 1.00 | failed | failed |"
    assert lines[4] == "| 256 in flight ↑ | 25.00 | 1.00 | failed | **15.00** |"
    assert lines[5] == "| the same through `f.map` ↑ | – | – | failed | – |"
    assert "| plain call (µs) | 100 | 1,000 | failed | **150** |" in table(results)


def test_the_page_tells_who_failed_and_how_fast_the_server_is(results: Results) -> None:
    text = page(results)
    assert "* dspy, installing: `no 'such' thing`" in text
    assert "* SimpleLLMFunc, typed call, nested model of 6 fields: `wrong answer`" in text
    assert "10.0 µs a call with 256 in flight; bare aiohttp's is 9.5 times as much" in text


def test_the_plot_has_a_dot_for_each_ratio(results: Results, tmp_path: Path) -> None:
    root = ET.fromstring(plot(results))
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert {"SimpleLLMFunc: 0.15", "bare aiohttp: 25.00", "SimpleLLMFunc: 15.00"} <= set(titles)
    assert "SimpleLLMFunc: 1.00" not in titles  # the row in which ours failed
    write(results, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"RESULTS.md", "results.json", "results.svg"}


@pytest.mark.heavy
def test_what_cannot_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(environments, "PINS", tmp_path / "pins")
    contender = Contender("nothing", "nothing", "nothing", ("--no-index", "no-such-package-at-all"), "import nothing")
    with pytest.raises(Failed, match="No matching distribution found for no-such-package-at-all"):
        prepare(contender)
    python = environments.python_of("nothing")
    assert environments.installed(contender)["packages"] == 0
    with pytest.raises(Failed, match="No module named 'nothing'"):
        import_seconds(contender, python)
    assert import_seconds(Contender("json", "", "", (), "import json"), python) > 0


def test_every_row_can_be_measured_from_somewhere() -> None:
    modes = {"sequence", "paced", "flight", "mapped", "threaded", "first", "memory", "import", "environment"}
    assert {row.mode for row in BY_KEY.values()} == modes
    assert len({contender.name for contender in FIELD}) == len(FIELD) == 12
