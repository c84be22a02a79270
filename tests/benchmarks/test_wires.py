"""The wires side by side: each canned reply is read as what it says."""

import pytest

from benchmarks import wires


@pytest.mark.heavy
def test_each_wire_is_measured(capsys):
    assert wires.main(["--rounds", "1", "--calls", "1", "--streams", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| {wire} |" in printed for wire in wires.WIRES)
    assert "inf" not in printed
