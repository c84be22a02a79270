"""The example application, run as its README says."""

import csv

import pytest

from tests.docs.pages import ROOT, clean_environment, ran

HOME = ROOT / "examples/receipts"


def run(tmp_path, *arguments):
    done = ran("-W", "error", HOME / "receipts.py", *arguments, cwd=tmp_path, env=clean_environment(tmp_path))
    return done.returncode, done.stdout, done.stderr


def test_texts_become_rows_and_what_cannot_be_read_says_why(tmp_path):
    code, said, _ = run(tmp_path, HOME / "samples", "--out", "out", "--demo")
    assert code == 1  # two were not readable
    assert said.startswith("10 receipts: 9 read now, 0 known, 2 not readable")
    assert said.splitlines()[0] in (HOME / "README.md").read_text("utf-8")
    with (tmp_path / "out/receipts.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert {row["file"] for row in rows if row["shop"] == "TAXI 4471"} == {"07-taxi.txt", "09-taxi-again.txt"}
    assert ("书签", "6.00", "2026-03-17") in {(row["article"], row["amount"], row["day"]) for row in rows}
    page = (tmp_path / "out/receipts.html").read_text("utf-8")
    assert "the lines add up to 3.80, and the total says 10.30" in page
    assert "HARDWARE &amp; TOOLS" in page

    code, said, _ = run(tmp_path, HOME / "samples", "--out", "out", "--demo")
    assert "0 read now" in said


@pytest.mark.parametrize("arguments", [["empty"], []])
def test_wrong_use_is_told(tmp_path, arguments):
    (tmp_path / "empty").mkdir()
    code, _, said = run(tmp_path, *arguments)
    assert code != 0
    assert "Traceback" not in said
