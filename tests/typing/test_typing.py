"""The type checkers believe the decorators: `api.py` and the first pages are clean, `wrong.py` is refused line by line.

Each checker runs once, over all of it, with the settings and the cache of ``make check``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.docs.pages import blocks

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
# `make check` has just filled the cache, which `make test` in a new clone would have to fill.
pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
PAGES = ("README.md", "README.zh-CN.md", "docs/tutorial.md", "docs/how-to/chat.md")
API, WRONG = HERE / "api.py", HERE / "wrong.py"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The two files, and the pages as modules; a notebook's `await` needs an async function around it."""
    files = [API, WRONG]
    for page in PAGES:
        code = "\n".join(block.code for block in blocks((ROOT / page).read_text("utf-8")))
        module = tmp_path / (page.translate(str.maketrans("/.-", "___")) + ".py")
        module.write_text("async def page() -> None:\n" + textwrap.indent(code, "    "), encoding="utf-8")
        files.append(module)
    return files


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode in {0, 1}, f"the checker did not run: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def marked() -> set[tuple[str, int]]:
    """The lines that have to be refused."""
    lines = WRONG.read_text("utf-8").splitlines()
    # The docstring speaks of the mark.
    return {(WRONG.name, number) for number, line in enumerate(lines, 1) if number > 1 and "# wrong" in line}


def test_mypy_refuses_what_is_wrong_and_nothing_else(files: list[Path]) -> None:
    said = run("mypy", "--strict", "--no-error-summary", *map(str, files))
    found = re.findall(r"^(.*?):(\d+): error", said, re.MULTILINE)
    assert {(Path(file).name, int(line)) for file, line in found} == marked(), said
    assert "type: ignore" not in API.read_text("utf-8")


def test_pyright_refuses_what_is_wrong_and_nothing_else(files: list[Path]) -> None:
    said = run("pyright", "--outputjson", *map(str, files))
    report = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]  # what else it has to say may follow
    assert report["summary"]["filesAnalyzed"] == len(files)
    errors = [entry for entry in report["generalDiagnostics"] if entry["severity"] == "error"]
    found = {(Path(entry["file"]).name, entry["range"]["start"]["line"] + 1) for entry in errors}
    assert found == marked(), errors
