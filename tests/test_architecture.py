"""The floors hold, the front door is one list, and a start costs nothing that is not used."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from inspect import ismodule
from pathlib import Path

import pytest

import SimpleLLMFunc
from SimpleLLMFunc import errors, testing
from tests.support.processes import run_script

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "SimpleLLMFunc"
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
)

ROOMS = {
    ".".join(path.parent.relative_to(ROOT).parts) for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE
}


def fresh(code: str, seconds: float = 50) -> str:
    """Run `code` in an interpreter of its own, every warning an error, and return what it printed."""
    done = run_script(code, timeout=seconds)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.timeout(120)
def test_the_floors():
    done = run_script(
        "from importlinter.cli import lint_imports_command as check; check()", "-W", "default", timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_front_door_is_the_list():
    assert SimpleLLMFunc.__all__ == sorted(SimpleLLMFunc.__all__)
    for package in (SimpleLLMFunc, testing):
        assert set(package.__all__) <= set(dir(package))
    for name in SimpleLLMFunc.__all__:
        assert not ismodule(getattr(SimpleLLMFunc, name)), name
    with pytest.raises(AttributeError, match="nonsense"):
        _ = SimpleLLMFunc.nonsense


def test_every_error_is_at_the_front_door():
    kinds = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert len(kinds) > 25
    assert kinds <= set(SimpleLLMFunc.__all__)


FRESH = (
    "import sys, importlib\n"
    "def fresh(names):\n"
    "    for m in [m for m in sys.modules if m.split('.')[0] == 'SimpleLLMFunc']: del sys.modules[m]\n"
    "    import SimpleLLMFunc\n"
    "    for name in names: getattr(SimpleLLMFunc, name); getattr(SimpleLLMFunc, name)\n"
    f"names = {SimpleLLMFunc.__all__!r}\n"
)


def test_the_names_load_in_both_orders():
    fresh(FRESH + "fresh(names); fresh(names[::-1])\n")


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_each_name_and_each_module_can_be_the_first_import():
    code = (
        "for name in names: fresh([name])\n"
        f"for module in {MODULES!r}:\n"
        "    fresh([])\n"
        "    importlib.import_module(module)\n"
    )
    fresh(FRESH + code, seconds=550)


def test_a_start_loads_nothing_slow_and_does_nothing():
    code = (
        "import sys, logging, threading\n"
        "hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook)\n"
        "import SimpleLLMFunc\n"
        "from SimpleLLMFunc import llm_function, llm_chat, tool, OpenAICompatible, LocalModel\n"
        "slow = {'openai', 'aiohttp', 'jinja2', 'jsonschema', 'json_repair', 'xllamacpp', 'rich', 'tqdm', 'click'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
        "assert hooks == (sys.excepthook, sys.unraisablehook, threading.excepthook)\n"
        "assert logging.getLogger().handlers == []\n"
        "assert threading.active_count() == 1\n"
    )
    assert fresh(code) == "[]\n"


def test_every_module_says_what_it_is_for_and_a_room_at_length():
    for path in PACKAGE.rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        assert len(docstring) > (25 if path.name == "__init__.py" else 0), path


def test_the_lists_of_the_rooms_are_importable():
    for name in MODULES:
        module = importlib.import_module(name)
        for offered in getattr(module, "__all__", ()):
            # A room names modules, too, which are loaded when somebody asks for them.
            assert hasattr(module, offered) or f"{name}.{offered}" in MODULES, f"{name}.{offered}"


def doors(importer: str, module: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield each room that `importer` enters from outside to get at ``module.name``, and what it asks for there."""
    parts = [*module.split("."), name]
    for depth in range(2, len(parts)):
        room = ".".join(parts[:depth])
        if room in ROOMS and not f"{importer}.".startswith(f"{room}."):
            yield room, parts[depth]


def test_others_use_of_a_room_what_it_names():
    reaching = []
    for path in sorted(PACKAGE.rglob("*.py")):
        importer = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("SimpleLLMFunc"):
                continue
            for alias in node.names:
                for room, wanted in doors(importer, node.module, alias.name):
                    if wanted not in getattr(importlib.import_module(room), "__all__", ()):
                        reaching.append(f"{importer} imports {node.module}.{alias.name}: {room} does not name {wanted}")
    assert not reaching, "\n".join(reaching)


def test_a_folder_holds_about_a_dozen_modules():
    crowded = {}
    for room in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        modules = [path for path in room.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > 14:
            crowded[str(room.relative_to(ROOT))] = len(modules)
    assert not crowded


# --- the page about the architecture --------------------------------------------------------------------------

PAGE = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
TREE = PAGE[PAGE.index("SimpleLLMFunc/\n") : PAGE.index("`tests/` mirrors it")]


def drawn_paths() -> set[str]:
    """Return what the tree of the page shows: folders at any depth with a slash, modules."""
    found, above = set(), ["SimpleLLMFunc"]
    for indent, name in re.findall(r"^((?:│   |    )*)(?:├── |└── )(\S+)", TREE, re.MULTILINE):
        above[len(indent) // 4 + 1 :] = [name.rstrip("/")]
        found.add("/".join(above[1:]) + ("/" if name.endswith("/") else ""))
    return found


def test_the_tree_on_the_page_is_the_tree():
    # A folder that is gone may still hold caches.
    folders = {path.parent for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"} - {PACKAGE}
    there = {f"{path.relative_to(PACKAGE).as_posix()}/" for path in folders}
    there |= {path.name for path in PACKAGE.glob("*.py")}
    drawn = drawn_paths()
    assert drawn == there, f"not on the page: {sorted(there - drawn)}; not in the package: {sorted(drawn - there)}"


def test_every_module_that_the_page_names_is_there():
    named = set(re.findall(r"`((?:\w+/)*\w+(?:\.py|/))`", PAGE)) - {"tests/", "tests/base/test_tool_call.py"}
    assert len(named) > 40
    gone = {name for name in named if not (PACKAGE / name).exists()}
    assert not gone, f"the page sends its reader to {sorted(gone)}"


def test_the_drawing_shows_the_floors_of_the_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    floors = [set(layer.split(" | ")) for layer in contract["layers"]]
    drawing = (ROOT / "docs/images/floors.svg").read_text("utf-8")
    heights: dict[int, set[str]] = {}
    for height, room in re.findall(r'<text class="room" x="[\d.]+" y="(\d+)">(\w+)</text>', drawing):
        heights.setdefault(int(height), set()).add(room)
    assert [heights[height] for height in sorted(heights)] == floors
    told = re.search(r"!\[The floors: ([^\]]+)\]", PAGE)[1]
    assert [set(re.split(r", | and ", floor)) for floor in told.split("; ")] == floors


def test_the_page_about_the_architecture_tells_of_every_room():
    table = PAGE[PAGE.index("## Rooms") : PAGE.index("## Rules")]
    named = set(re.findall(r"`(\w+)(?:/|\.py)`", table))
    rooms = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("_") and path.name != "py.typed"}
    assert rooms <= named, rooms - named
