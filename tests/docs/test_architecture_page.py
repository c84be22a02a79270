"""What the page about the architecture and the recipes say of the code is so."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

PACKAGE = ROOT / "SimpleLLMFunc"
ARCHITECTURE = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def lines(text: str) -> str:
    """The lines of a text without their indentation, each ended."""
    return "".join(f"{line.strip()}\n" for line in text.splitlines())


QUOTED = [block.code for block in blocks(ARCHITECTURE) if not block.is_run]


@pytest.mark.parametrize("quoted", QUOTED, ids=lambda code: re.search(r"def (\w+)", code)[1])
def test_code_that_the_walk_quotes_is_in_the_package(quoted: str) -> None:
    assert any(lines(quoted) in lines(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py"))


def test_the_walk_quotes_the_pipeline_and_the_tool_call() -> None:
    assert len(QUOTED) == 2


def names_in(path: Path) -> set[str]:
    """What a module defines or imports, and the methods of its classes."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found


WALK = ARCHITECTURE[: ARCHITECTURE.index("## Floors")]
NAMED_BEFORE_THEIR_MODULE = re.findall(r"`(\w+)`,? \(`([\w/]+\.py)`\)", WALK)


@pytest.mark.parametrize(("name", "module"), NAMED_BEFORE_THEIR_MODULE)
def test_a_name_of_the_walk_is_in_the_module_that_follows_it(name: str, module: str) -> None:
    assert name in names_in(PACKAGE / module)


def test_a_function_of_a_step_is_in_the_module_of_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| `(llm_decorator/steps/[\w/]+\.py)` \|$", WALK, re.MULTILINE)
    rows += re.findall(r"^\| \d \| `(\w+)` (.+) \| `(llm_decorator/steps/[\w/]+\.py)` \|$", WALK, re.MULTILINE)
    assert len(rows) == 7
    for name, _, module in rows:
        assert name in names_in(PACKAGE / module), f"{name} is not in {module}"


def test_the_floors_inside_the_rooms_are_those_of_the_contracts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    inside = {
        each["containers"][0].removeprefix("SimpleLLMFunc."): [set(layer.split(" | ")) for layer in each["layers"]]
        for each in project["tool"]["importlinter"]["contracts"][1:]
    }
    told = dict(re.findall(r"^\| `([\w.]+)` \| (`\w+`.* → .*) \|$", ARCHITECTURE, re.MULTILINE))
    assert told.keys() == inside.keys()
    for room, floors in told.items():
        heights = []
        for floor in floors.split(" → "):
            parts = set(re.findall(r"`(\w+)`", floor))
            (height,) = (number for number, layer in enumerate(inside[room]) if parts <= layer)
            heights.append(height)
        assert heights == sorted(set(heights)), room


# --- the recipes --------------------------------------------------------------------------------------------


def test_every_path_that_contributing_names_is_there() -> None:
    named = set(re.findall(r"`((?:SimpleLLMFunc|tests|docs|benchmarks|\.ci)/[\w/.-]*)`", CONTRIBUTING))
    assert len(named) > 30
    gone = {name for name in named if not (ROOT / name).exists()}
    assert not gone


def test_the_recipe_lists_all_that_a_new_event_breaks() -> None:
    listed = CONTRIBUTING[CONTRIBUTING.index("mypy reports `assert_never`") : CONTRIBUTING.index("### Add a command")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    checked = {path for path, text in texts.items() if "assert_never(" in text and "ReActEvent" in text}
    assert set(re.findall(r"^\| `(SimpleLLMFunc/[\w/]+\.py)`", listed, re.MULTILINE)) == checked


def test_every_target_that_contributing_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in set(re.findall(r"`make ([\w-]+)`", CONTRIBUTING)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_what_the_makefile_runs_alone_is_there() -> None:
    done = subprocess.run(["make", "-pn"], cwd=ROOT, capture_output=True, text=True, check=False)
    paths = re.search(r"^ALONE := (.+)$", done.stdout, re.MULTILINE)[1].split()
    assert len(paths) > 5
    assert not [path for path in paths if not (ROOT / path).exists()]
