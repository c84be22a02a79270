"""The floors hold, the front door is one list, and a start costs nothing that is not used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from inspect import ismodule
from pathlib import Path

import pytest

import SimpleLLMFunc
from SimpleLLMFunc import errors

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "SimpleLLMFunc"
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
)


def fresh(code: str) -> str:
    """Run `code` in an interpreter of its own, every warning an error, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.timeout(120)
def test_the_floors():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as check; check()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_front_door_is_the_list():
    assert SimpleLLMFunc.__all__ == sorted(SimpleLLMFunc.__all__)
    assert set(SimpleLLMFunc.__all__) <= set(dir(SimpleLLMFunc))
    for name in SimpleLLMFunc.__all__:
        assert not ismodule(getattr(SimpleLLMFunc, name)), name
    with pytest.raises(AttributeError, match="nonsense"):
        _ = SimpleLLMFunc.nonsense


def test_every_error_is_at_the_front_door():
    assert set(errors.__all__) - {"Violation"} <= set(SimpleLLMFunc.__all__)


@pytest.mark.timeout(120)
def test_each_name_loads_first_in_a_fresh_interpreter_and_in_both_orders():
    names = SimpleLLMFunc.__all__
    code = (
        "import sys, importlib\n"
        "def fresh(names):\n"
        "    for m in [m for m in sys.modules if m.split('.')[0] == 'SimpleLLMFunc']: del sys.modules[m]\n"
        "    import SimpleLLMFunc\n"
        "    for name in names: getattr(SimpleLLMFunc, name); getattr(SimpleLLMFunc, name)\n"
        f"names = {names!r}\n"
        "fresh(names); fresh(names[::-1])\n"
        "for name in names: fresh([name])\n"
    )
    fresh(code)


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_each_module_can_be_the_first_import():
    code = (
        "import sys, importlib\n"
        f"for module in {MODULES!r}:\n"
        "    for m in [m for m in sys.modules if m.split('.')[0] == 'SimpleLLMFunc']: del sys.modules[m]\n"
        "    importlib.import_module(module)\n"
    )
    fresh(code)


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


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is_for(path):
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree), "a module begins with a docstring"


def test_the_lists_of_the_rooms_are_importable():
    for name in MODULES:
        module = __import__(name, fromlist=["_"])
        for offered in getattr(module, "__all__", ()):
            assert hasattr(module, offered), f"{name}.{offered}"


def test_the_page_about_the_architecture_names_every_room():
    page = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
    table = page[page.index("## Rooms") : page.index("## Rules")]
    named = set(re.findall(r"`(\w+)(?:/|\.py)`", table))
    rooms = {path.stem for path in (ROOT / "SimpleLLMFunc").iterdir() if not path.name.startswith("_")} - {"py"}
    rooms.discard("py.typed")
    assert rooms <= named, rooms - named
