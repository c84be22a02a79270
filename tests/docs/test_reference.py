"""The reference names everything that is public, and the site has a place for every page."""

import ast
import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import ROOT

ROOMS = "assistant batch calls evaluate interface logger serve testing tools type viewer"
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)


def directives():
    """The dotted names that the pages of the reference show."""
    return {name for page in (ROOT / "docs/reference/api").glob("*.md") for name in DIRECTIVE.findall(page.read_text())}


def found(path):
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            value = getattr(value, name)
        return value
    raise AssertionError(path)


def for_users(module):
    """The first list of a room; what is added to it is for other rooms."""
    for node in ast.parse(Path(module.__file__).read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError(module)


def defined_in(module):
    """The names that a module defines itself: what the site shows of it."""
    for node in ast.parse(Path(module.__file__).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("room", ["", *ROOMS.split()], ids=lambda room: room or "top")
def test_every_public_name_is_in_the_reference(room):
    module = importlib.import_module(f"SimpleLLMFunc.{room}".rstrip("."))
    shown = [found(path) for path in directives()]
    within = {
        id(vars(part)[name])
        for part in shown
        if isinstance(part, ModuleType) and part is not module
        for name in defined_in(part)
        if name in vars(part)
    }
    within |= {id(part) for part in shown}
    missing = [name for name in for_users(module) if id(getattr(module, name)) not in within]
    assert not missing


def _pages(nav):
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from _pages(value) if isinstance(value, list) else [value]


def test_the_site_leads_to_every_page():
    nav = list(_pages(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert len(nav) == len(set(nav))
    assert pages <= set(nav)
