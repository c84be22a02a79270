"""The benchmark of the journal runs, and tells what it measures."""

from __future__ import annotations

import re

from benchmarks import journal


def test_it_runs(capsys):
    journal.main(["--rounds", "2", "--times", "1"])
    said = capsys.readouterr().out
    assert len(re.findall(r"\| \*{0,2}-?\d+\.\d{3}\*{0,2} \|", said)) == 6
    assert said.startswith(journal.RESULTS.read_text("utf-8").splitlines()[0])
