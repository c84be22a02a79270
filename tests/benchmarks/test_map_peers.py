"""The benchmark of maps: it counts what is paid, and believes no answer that was not asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.map_peers import PEERS, Bench, Measured, measure_kill, measure_speed, table, write
from benchmarks.workers import ROOT

BY_NAME = {peer.name: peer for peer in PEERS}
PYTHON = Path(sys.executable)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(PYTHON, tmp_path)
    yield bench
    bench.close()


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["aiohttp", "ours"])
def test_what_a_map_takes_is_measured(bench: Bench, name: str) -> None:
    found = Measured()
    measure_speed(bench, BY_NAME[name], PYTHON, 60, 20, found)
    assert bench.ask("paid") == {"total": 60, "rows": 60}
    assert 0 < found.rates[0] <= 20 / 0.2
    assert found.cpus[0] > 0
    assert found.peaks[0] > found.imported > 0


@pytest.mark.heavy
def test_what_a_kill_costs_is_counted(bench: Bench) -> None:
    found = Measured()
    measure_kill(bench, BY_NAME["ours"], PYTHON, 120, 10, found)
    assert found.again is not None
    assert 0 <= found.again <= 10
    assert found.added == 0


@pytest.mark.heavy
def test_who_cannot_be_measured_says_why(bench: Bench) -> None:
    with pytest.raises(RuntimeError, match="ended with 1"):
        measure_speed(bench, BY_NAME["curator"], PYTHON, 10, 5, Measured())


def test_the_table_says_who_was_not_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = {
        "aiohttp": Measured("3", [1000.0, 800.0], [200.0], [50.0], 30.0),
        "ours": Measured("1", [500.0, 650.0], [400.0], [70.0], 40.0, again=9, added=0),
        "dspy": Measured(problem="it broke"),
    }
    bare, ours, dspy = table(found, 3_000, 1_000).splitlines()[2:]
    assert "| 1,000 | 0.20 | 1.00 |" in bare
    assert "keeps nothing" in bare
    assert "| 650 | 0.13 | 0.65 | 400 µs | 70 MB (40) | 9 | 0 |" in ours
    assert "it broke" in dspy
    monkeypatch.setattr("benchmarks.map_peers.ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    write(found, 3_000, 1_000, 2)
    assert str(ROOT) not in (tmp_path / "benchmarks" / "RESULTS-map.md").read_text("utf-8")
