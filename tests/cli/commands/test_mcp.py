"""`simplellmfunc mcp serve`: what it takes and how it refuses; what it serves is tested in tests/serve."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from SimpleLLMFunc.cli.commands.mcp import functions_of
from SimpleLLMFunc.errors import ConfigError
from tests.support.command_line import typed

ROOT = Path(__file__).resolve().parents[3]
HEAD = "from SimpleLLMFunc import llm_chat, llm_function\n"


def function(name: str, kind: str = "llm_function") -> str:
    return f'@{kind}\ndef {name}(text: str) -> str:\n    """Do {name}."""\n    raise NotImplementedError\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    (tmp_path / "mcp_one.py").write_text(HEAD + function("a") + function("b") + function("_c") + "def plain(): ...\n")
    (tmp_path / "mcp_two.py").write_text(HEAD + "from mcp_one import a\n" + function("d") + function("e"))
    (tmp_path / "mcp_clash.py").write_text(HEAD + function("a"))
    (tmp_path / "mcp_all.py").write_text("from mcp_one import a, b\n__all__ = ['b']\n")
    (tmp_path / "mcp_none.py").write_text("from mcp_one import a\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        (["mcp_one"], ["a", "b"]),
        (["mcp_one:b"], ["b"]),
        (["mcp_one:b", "_c"], ["b", "_c"]),
        (["mcp_one:b", "a", "mcp_two:d", "e"], ["b", "a", "d", "e"]),
        (["mcp_one", "mcp_two"], ["a", "b", "d", "e"]),
        (["mcp_two:a"], ["a"]),
        (["mcp_one", "mcp_one:a"], ["a", "b"]),
        (["mcp_all"], ["b"]),
        (["./mcp_one.py:a"], ["a"]),
    ],
)
def test_targets(targets: list[str], names: list[str]) -> None:
    assert list(functions_of(targets)) == names


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (["mcp_nowhere"], "no module 'mcp_nowhere'"),
        (["mcp_one:z"], r"has no 'z'\. Its decorated functions are: a, b, _c\."),
        (["mcp_one:plain"], "plain is not decorated with @llm_function"),
        (["mcp_none"], r"no function to offer.*or name one of: a"),
        (["mcp_one", "mcp_clash"], "two of the functions are called 'a'"),
        (["json"], "no function to offer"),
    ],
)
def test_targets_that_cannot_be_served(targets: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        functions_of(targets)


def test_a_chat_cannot_be_served(folder: Path) -> None:
    chat = "from collections.abc import Iterator\n@llm_chat\ndef chat(history: list, message: str) -> Iterator[tuple[str, list]]:\n    raise NotImplementedError\n"
    (folder / "mcp_chat.py").write_text(HEAD + chat)
    with pytest.raises(ConfigError, match="is a chat, which keeps a history"):
        functions_of(["mcp_chat:chat"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"],
        ["serve", "mcp_one", "--port", "1"],
        ["serve", "mcp_one", "--host", "::1"],
        ["serve", "mcp_one", "--http", "--port", "70000"],
        ["nonsense"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert "Usage:" in typed("mcp", *arguments, code=2).stderr


def test_nothing_on_stdout_when_it_fails(folder: Path) -> None:
    (folder / "mcp_broken.py").write_text("print('loading')\nraise ValueError('broken')\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "SimpleLLMFunc", "mcp", "serve", "mcp_broken"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "loading" in done.stderr
    assert "Error: 'mcp_broken' failed while it was imported: ValueError: broken." in done.stderr
    assert "Traceback" not in done.stderr
