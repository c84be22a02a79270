"""The documentation site builds, strictly: every link and every name of the reference is found."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


@pytest.fixture
def copy(tmp_path):
    copied = tmp_path / "a copy"
    copied.mkdir()
    for name in ("docs", "examples", "benchmarks", "SimpleLLMFunc"):
        shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__", ".bench"))
    for path in [*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "zensical.toml"]:
        shutil.copy(path, copied)
    return copied


def build(copied):
    done = subprocess.run(
        [sys.executable, "docs/build.py"], cwd=copied, capture_output=True, encoding="utf-8", check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_site_builds(copy):
    code, said = build(copy)
    assert code == 0, said
    page = (copy / "site/reference/api/functions/index.html").read_text("utf-8")
    assert "llm_function" in page
    assert "the docstring says what to do" in page.lower()
    assert (copy / "site/examples/01_first_function/index.html").exists()
    # Nothing is fetched from elsewhere when a page is read.
    start = (copy / "site/index.html").read_text("utf-8")
    assert "fonts.g" not in start


def test_a_link_that_leads_nowhere_is_told(copy):
    page = copy / "docs/tutorial.md"
    page.write_text(page.read_text("utf-8") + "\n[gone](how-to/gone.md)\n", "utf-8")
    code, said = build(copy)
    assert code != 0
    assert "how-to/gone.md" in said
