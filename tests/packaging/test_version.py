"""The version stands in one place, and everything that tells it tells the same."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import SimpleLLMFunc

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def test_it_stands_in_the_package_and_nowhere_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "SimpleLLMFunc/_version.py"
    said = [
        path
        for path in (ROOT / "SimpleLLMFunc").rglob("*.py")
        if re.search(r"(?m)^__version__ =", path.read_text("utf-8"))
    ]
    assert said == [ROOT / "SimpleLLMFunc" / "_version.py"]


def test_what_is_installed_says_the_same():
    hint = "the environment holds an older build; `make test` brings it up to date"
    assert metadata.version("SimpleLLMFunc") == SimpleLLMFunc.__version__, hint


def test_the_newest_heading_of_the_changelog_is_it():
    headings = [each.groupdict() for each in HEADING.finditer((ROOT / "CHANGELOG.md").read_text("utf-8"))]
    assert headings[0] == {"version": "Unreleased", "date": None}
    assert headings[1]["version"] == SimpleLLMFunc.__version__
    released = [(each["date"], tuple(map(int, each["version"].split(".")))) for each in headings[1:]]
    assert all(date for date, _ in released)
    assert released == sorted(released, reverse=True)


def test_it_is_a_stable_version_by_its_classifier():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stable = "Development Status :: 5 - Production/Stable" in project["classifiers"]
    assert stable == (not SimpleLLMFunc.__version__.startswith("0."))
