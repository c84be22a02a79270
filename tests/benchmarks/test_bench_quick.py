"""`make bench-quick` complains when a ratio is twice as bad as it was recorded, and only then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.bench import Results
from benchmarks.quick import BASES, KEYS, RECORDED, main, quick_rows, report, worse
from benchmarks.rows import BY_KEY


@pytest.mark.parametrize(("key", "before", "now", "is_worse"), [
    ("plain", 0.2, 0.39, False), ("plain", 0.2, 0.41, True), ("plain", 0.2, 0.01, False),
    ("flight256", 12.0, 6.1, False), ("flight256", 12.0, 5.9, True), ("flight256", 12.0, 90.0, False),
])  # fmt: skip
def test_worse_is_more_time_or_a_lower_rate(key: str, before: float, now: float, is_worse: bool) -> None:
    assert bool(worse({key: {"openai": now}}, {key: {"openai": before}})) == is_worse
    # One base is enough.
    both = worse({key: {"openai": before, "aiohttp": now}}, {key: {"openai": before, "aiohttp": before}})
    assert bool(both) == is_worse


def test_a_recorded_row_has_to_be_measured() -> None:
    assert "not measured" in worse({}, {"plain": {"openai": 0.2}})["plain"]
    assert not worse({"plain": {"openai": 0.2}}, {})


def test_what_is_recorded_is_what_is_measured() -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))["ratios"]
    assert set(recorded) == set(KEYS) <= set(BY_KEY)
    assert all(ratio > 0 and base in BASES for by_base in recorded.values() for base, ratio in by_base.items())
    assert {row.key: row.rounds for row in quick_rows(KEYS, 0.1)}["share1000"] == 1


def test_the_report_shows_now_and_then() -> None:
    results = Results(versions={"openai": "1", "ours": "1"})
    assert "| plain call | 0.25 | 0.20 | – | – |" in report(
        results, {"plain": {"openai": 0.25}}, {"plain": {"openai": 0.2}}
    )


@pytest.mark.heavy
def test_it_runs_records_and_complains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--rows", "plain,chunk200", "--rounds", "1", "--seconds", "0.02"]
    recorded = tmp_path / "recorded.json"
    assert main([*short, "--record"], recorded) == 0
    ratios = json.loads(recorded.read_text("utf-8"))["ratios"]
    assert set(ratios) == {"plain", "chunk200"}
    assert "| plain call |" in capsys.readouterr().out
    # Somebody made us a hundred times slower.
    ratios["plain"] = {base: ratio / 100 for base, ratio in ratios["plain"].items()}
    recorded.write_text(json.dumps({"ratios": ratios}), encoding="utf-8")
    assert main(short, recorded) == 1
    out = capsys.readouterr().out
    assert "Looking a second time" in out
    assert "Slower than it was:" in out
