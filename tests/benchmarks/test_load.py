"""The load script judges rightly, and its quick form keeps every promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import load
from benchmarks.load import ALLOWED_MB, ALLOWED_SLOPE, Verdict, judge_in_flight, judge_soak, report, slope_per_minute

ROOT = Path(__file__).parent.parent.parent


def in_flight(client, **more):
    run = {
        "client": client, "calls": 100, "errors": 0, "error_texts": [], "wrong": 0, "seconds": 1.0, "cpu_seconds": 1.0,
        "peak_mb": 50.0, "server": {"peak_open": 100, "requests": 100},
    }  # fmt: skip
    return run | more


def broken(verdicts):
    return [verdict.promise for verdict in verdicts if not verdict.is_kept]


@pytest.mark.parametrize(("more", "promise"), [
    ({}, None), ({"peak_mb": 50 + ALLOWED_MB}, None), ({"peak_mb": 51 + ALLOWED_MB}, "at most"),
    ({"errors": 1, "error_texts": [["OSError: too many open files", 1]]}, "no error"),
    ({"wrong": 1}, "no wrong answer"), ({"server": {"peak_open": 99, "requests": 100}}, "all in flight"),
    ({"server": {"peak_open": 100, "requests": 101}}, "none sent twice"),
])  # fmt: skip
def test_what_a_client_does_wrong_breaks_the_promise(more, promise):
    found = broken(judge_in_flight([in_flight("aiohttp"), in_flight("llm_function -> str", **more)]))
    assert len(found) == (promise is not None)
    assert all(promise in text for text in found)


def soak(seconds=900.0, **more):
    samples = [
        {"second": second, "rss_mb": 50.0, "descriptors": 20, "tasks": 9, "threads": 4}
        for second in range(0, int(seconds), 5)
    ]
    run = {
        "seconds": seconds, "rate": 100.0, "calls": 1000, "ended": {"plain": 1000}, "wrong": [], "wrong_count": 0,
        "unfinished": 0, "before": {"descriptors": 7, "tasks": 1, "threads": 1},
        "after": {"descriptors": 17, "tasks": 1, "threads": 4}, "samples": samples,
    }  # fmt: skip
    return run | more


def grown(name, per_minute, seconds=900.0):
    run = soak(seconds)
    for sample in run["samples"]:
        sample[name] += per_minute * sample["second"] / 60
    return run


@pytest.mark.parametrize(("run", "promise"), [
    (soak(), None), (grown("rss_mb", ALLOWED_SLOPE * 0.9), None), (grown("rss_mb", ALLOWED_SLOPE * 1.1), "memory"),
    (grown("rss_mb", 100, seconds=10.0), None),  # too short to tell
    (grown("descriptors", 10), "descriptors"), (grown("descriptors", 1000, seconds=10.0), None),
    (grown("tasks", 10), "tasks"), (grown("threads", 2), "threads"),
    (soak(wrong_count=1, wrong=[["plain: AssertionError: ", 1]]), "ends as it should"),
    (soak(unfinished=1), "ends as it should"),
    (soak(after={"descriptors": 17, "tasks": 2, "threads": 4}), "no task left"),
])  # fmt: skip
def test_what_grows_or_goes_wrong_breaks_the_promise(run, promise):
    found = broken(judge_soak(run))
    assert len(found) == (promise is not None)
    assert all(promise in text for text in found)


def test_a_jump_is_no_slope():
    samples = [{"second": second, "rss_mb": 50.0 + 20 * (second > 300)} for second in range(0, 600, 5)]
    jump = [{"second": second, "rss_mb": 90.0 if second == 300 else 50.0} for second in range(0, 600, 5)]
    assert slope_per_minute(jump, "rss_mb") == 0
    assert slope_per_minute(samples, "rss_mb") > 0
    assert slope_per_minute(samples[:1], "rss_mb") == 0


def test_the_figures_stand_between_the_marks(tmp_path, monkeypatch):
    page = tmp_path / "load.md"
    page.write_text(f"# Load\n\nBefore.\n\n{load.BEGIN}\nold\n{load.END}\n\nAfter.\n", "utf-8")
    monkeypatch.setattr(load, "PAGE", page)
    runs = [in_flight("aiohttp"), in_flight("llm_function -> str", peak_mb=75.0)]
    load.write_page(report("a machine", runs, soak(), [Verdict("a promise", is_kept=False, figure="3")]))
    written = page.read_text("utf-8")
    assert written.startswith("# Load\n\nBefore.")
    assert written.endswith("After.\n")
    assert "old" not in written
    assert "| llm_function -> str | 100 | 0 | 0 | 75 MB | +25 MB | 1.0 s |" in written
    assert "BROKEN a promise: 3" in written


def test_the_page_has_the_marks_and_no_name_of_a_machine():
    text = load.PAGE.read_text("utf-8")
    assert text.index(load.BEGIN) < text.index(load.END)
    assert "10,000" in text
    assert "15 minutes" in text
    assert "/work" not in text


def test_a_machine_that_allows_too_few_files_is_told_so(monkeypatch, capsys):
    monkeypatch.setattr(load, "raise_open_files", lambda: 1024)
    assert load.main([]) == 2
    said = capsys.readouterr().err
    assert "1,024 open files" in said
    assert "10,100" in said
    assert "--calls 924" in said


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_quick_form_keeps_every_promise(tmp_path):
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.load", "--quick", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BROKEN" not in done.stdout
    told = json.loads(file.read_text("utf-8"))
    assert [run["server"]["peak_open"] for run in told["in_flight"]] == [500] * 5
    assert len(told["soak"]["ended"]) == 14
