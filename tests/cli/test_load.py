"""Loading what the command line names."""

import sys
from pathlib import Path

import pytest

from SimpleLLMFunc.cli.load import load_module, load_object, split_target
from SimpleLLMFunc.errors import ConfigError, TemplateError

pytestmark = pytest.mark.usefixtures("folder")
CANARY = "sk-canary-1234567890abcdef"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("shop", ("shop", "")), ("shop.goods:price", ("shop.goods", "price")),
        ("shop:Till.price", ("shop", "Till.price")), ("folder/shop.py", ("folder/shop.py", "")),
        ("folder/shop.py:price", ("folder/shop.py", "price")), ("C:\\folder\\shop.py", ("C:\\folder\\shop.py", "")),
        ("C:\\folder\\shop.py:price", ("C:\\folder\\shop.py", "price")),
    ],
)  # fmt: skip
def test_targets(target: str, parts: tuple[str, str]) -> None:
    assert split_target(target) == parts


@pytest.mark.parametrize("target", ["", ":", ":price", "shop:", "  "])
def test_targets_that_name_nothing(target: str) -> None:
    with pytest.raises(ConfigError, match="names no module"):
        split_target(target)


def test_from_the_working_directory(folder: Path) -> None:
    write(folder, "load_shop/__init__.py", "")
    write(folder, "load_shop/goods.py", "price = 3\nclass Till:\n    total = 4\n")
    assert load_object("load_shop.goods:price") == 3
    assert load_object("load_shop.goods:Till.total") == 4
    assert load_module("load_shop.goods") is sys.modules["load_shop.goods"]
    assert load_object("json:dumps") is sys.modules["json"].dumps


def test_from_a_file(folder: Path) -> None:
    write(folder, "far/load_near.py", "here = 5\n")
    path = write(folder, "far/load_file.py", "import load_near\nprice = load_near.here\n")
    assert load_object(f"{path}:price") == 5
    assert load_module("far/load_file.py") is load_module(str(path)) is sys.modules["load_file"]


def test_a_file_with_the_name_of_a_module_that_is_loaded(folder: Path) -> None:
    write(folder, "json.py", "mine = True\n")
    loaded = sys.modules["json"]
    assert load_object("./json.py:mine") is True
    assert sys.modules["json"] is loaded


@pytest.mark.parametrize("name", ["load_nowhere", "load_nowhere.goods", "json.load_nowhere"])
def test_no_such_module(name: str) -> None:
    with pytest.raises(ConfigError, match=f"no module '{name}'") as caught:
        load_module(name)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_no_such_file() -> None:
    with pytest.raises(ConfigError, match=r"no file 'nowhere\.py'"):
        load_module("nowhere.py")


def test_a_module_that_misses_another(folder: Path) -> None:
    write(folder, "load_lacks.py", "import load_not_installed\n")
    with pytest.raises(ConfigError, match=r"'load_lacks' failed while it was imported.*load_not_installed"):
        load_module("load_lacks")


@pytest.mark.parametrize("statement", [f"raise RuntimeError('api_key={CANARY}')", "raise SystemExit(3)", "x ="])
def test_a_module_that_fails(folder: Path, statement: str) -> None:
    path = write(folder, "load_fails.py", statement)
    for name in ("load_fails", str(path)):
        with pytest.raises(ConfigError, match="failed while it was imported") as caught:
            load_module(name)
        assert CANARY not in str(caught.value)
        assert caught.value.__cause__ is not None
        assert "load_fails" not in sys.modules


def test_our_own_errors_and_ctrl_c_pass(folder: Path) -> None:
    write(folder, "load_ours.py", "from SimpleLLMFunc.errors import TemplateError\nraise TemplateError('no field')\n")
    with pytest.raises(TemplateError, match="no field"):
        load_module("load_ours")
    write(folder, "load_stopped.py", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_module("load_stopped")


FEW = "price = 1\n_hidden = 2\n"
PLAIN = """
import json
from pathlib import Path
from SimpleLLMFunc import llm_function, llm_chat
LIMIT = 3
def plain(text: str) -> str: return text
class Till:
    def total(self) -> int: return 4
"""
DECORATED = """
from typing import Any
from SimpleLLMFunc import llm_function
LIMIT = 3
@llm_function
def classify(essay: str) -> int:
    'Classify.'
@llm_function
def _own(essay: str) -> int:
    'Grade.'
"""


@pytest.mark.parametrize(
    ("code", "target", "said"),
    [
        (FEW, "load_names:prize", r"has no 'prize'\. Did you mean 'price'\? It has: price\."),
        (FEW, "load_names", "is a module only.*`load_names:function`"),
        (DECORATED, "load_names", "is a module only.*`load_names:classify`"),
        (DECORATED, "load_names.classify", "no module 'load_names.classify'. Did you mean 'load_names:classify'"),
        (FEW, "load_names:price.x", r"has no 'price\.x'\. It has: price\."),
        (PLAIN, "load_names:prize", r"has no 'prize'\. It has: LIMIT, plain, Till\."),
        (PLAIN, "load_names:Till.sum", r"has no 'Till\.sum'\. It has: total\."),
        (DECORATED, "load_names:prize", r"has no 'prize'\. It has: classify\."),
        (DECORATED, "load_names:clasify", r"has no 'clasify'\. Did you mean 'classify'\? It has: classify\."),
        (DECORATED, "lod_names:classify", r"no module 'lod_names'\. Did you mean 'load_names'\?"),
    ],
)
def test_what_is_not_there_and_what_may_have_been_meant(folder: Path, code: str, target: str, said: str) -> None:
    write(folder, "load_names.py", code)
    with pytest.raises(ConfigError, match=said):
        load_object(target)
