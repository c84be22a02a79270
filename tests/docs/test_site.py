"""The documentation site builds, strictly: every link and every name of the reference is found."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


def copied_to(folder):
    copied = folder / "a copy"
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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    copied = copied_to(tmp_path_factory.mktemp("site"))
    code, said = build(copied)
    assert code == 0, said
    return copied / "site"


def test_the_site_builds(site):
    page = (site / "reference/api/functions/index.html").read_text("utf-8")
    assert "the docstring says what to do" in page.lower()
    signature, folded = page[: page.index("The docstring says what to do")].split('<details class="doc-overloads">')
    assert "max_reasks" in signature, "each option has its type and default"
    assert "Other overloads" in folded
    assert signature.count("max_reasks") == 1, "one signature; the others are folded"
    assert (site / "examples/01_first_function/index.html").exists()
    # Nothing is fetched from elsewhere when a page is read.
    assert "fonts.g" not in (site / "index.html").read_text("utf-8")


def test_a_link_that_leads_nowhere_is_told(tmp_path):
    copied = copied_to(tmp_path)
    page = copied / "docs/tutorial.md"
    page.write_text(page.read_text("utf-8") + "\n[gone](how-to/gone.md)\n", "utf-8")
    code, said = build(copied)
    assert code != 0
    assert "how-to/gone.md" in said


FOUND_AT = {
    "jupyter": "how-to/notebooks/",
    "anthropic": "how-to/providers/",
    "ollama": "how-to/providers/",
    "azure": "how-to/providers/",
    "fastapi": "how-to/web-frameworks/",
    "timeout": "how-to/limits/",
    "streaming": "how-to/functions/#streaming-items-as-they-arrive",
    "llm_function": "reference/api/functions/#SimpleLLMFunc.llm_function",
    "LocalModel": "reference/api/models/#SimpleLLMFunc.LocalModel",
    "ScriptedLLM": "reference/api/testing/#SimpleLLMFunc.testing.ScriptedLLM",
}


def test_the_search_of_the_site_finds_the_right_page(site):
    if (node := shutil.which("node")) is None:
        pytest.skip("the search is the site's own, in JavaScript")
    asked = [node, str(ROOT / "tests/docs/search.js"), str(site), *FOUND_AT]
    found = json.loads(subprocess.run(asked, capture_output=True, encoding="utf-8", check=True).stdout)
    for word, places in found.items():
        # An entry of the reference or the same page in Chinese may come first.
        assert FOUND_AT[word] in places[:2], (word, places[:5])
