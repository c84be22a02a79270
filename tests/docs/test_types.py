"""What the first pages show passes the type checkers as it stands there."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

PAGES = ("README.md", "README.zh-CN.md", "docs/tutorial.md", "docs/how-to/chat.md")


@pytest.fixture
def modules(tmp_path: Path) -> list[str]:
    """The pages as modules; a notebook's `await` needs an async function around it."""
    made: list[str] = []
    for page in PAGES:
        code = "\n".join(block.code for block in blocks((ROOT / page).read_text("utf-8")))
        module = tmp_path / (page.translate(str.maketrans("/.-", "___")) + ".py")
        module.write_text("async def page() -> None:\n" + textwrap.indent(code, "    "), encoding="utf-8")
        made.append(str(module))
    return made


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=280, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_mypy_strict_believes_the_pages(modules: list[str]) -> None:
    said = run(
        "mypy", "--strict", "--follow-imports=silent", "--cache-dir=.mypy_cache/pages", *modules
    )  # the package is read once
    assert said.startswith("Success"), said


@pytest.mark.timeout(300)
def test_pyright_believes_the_pages(modules: list[str]) -> None:
    said = run("pyright", "--outputjson", *modules)
    report = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]  # what else it has to say may follow
    assert report["summary"]["filesAnalyzed"] == len(modules)
    assert [entry for entry in report["generalDiagnostics"] if entry["severity"] == "error"] == []
