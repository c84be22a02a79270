"""The type checkers believe the decorators: `api.py` is clean, `wrong.py` is refused line by line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, f"the checker did not run: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def mypy_lines(file: Path) -> set[int]:
    said = run("mypy", "--strict", "--no-error-summary", "--follow-imports=silent", str(file))
    return {int(line) for line in re.findall(rf"{file.name}:(\d+): error", said)}


def pyright_lines(file: Path) -> set[int]:
    said = run("pyright", "--outputjson", str(file))
    report = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]  # what else it has to say may follow
    found = report["generalDiagnostics"]
    return {entry["range"]["start"]["line"] + 1 for entry in found if entry["severity"] == "error"}


CHECKERS = [pytest.param(mypy_lines, id="mypy"), pytest.param(pyright_lines, id="pyright")]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("errors_of", CHECKERS)
def test_right_use_is_clean(errors_of):
    file = HERE / "api.py"
    assert errors_of(file) == set()
    assert "type: ignore" not in file.read_text("utf-8")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("errors_of", CHECKERS)
def test_wrong_use_is_refused_where_it_is_wrong(errors_of):
    file = HERE / "wrong.py"
    wrong = {number for number, line in enumerate(file.read_text("utf-8").splitlines(), 1) if "# wrong" in line}
    wrong.discard(1)  # the docstring speaks of the mark
    assert errors_of(file) == wrong
