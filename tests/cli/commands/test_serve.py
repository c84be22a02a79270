"""`simplellmfunc serve` and `mcp serve`: what they take and how they refuse; what they serve is tested in tests/serve."""

import subprocess
from pathlib import Path

import pytest

from SimpleLLMFunc.cli.commands.serve import functions_of
from SimpleLLMFunc.errors import ConfigError
from tests.support.command_line import begun

HEAD = "from SimpleLLMFunc import llm_chat, llm_function\n"


def function(name: str, kind: str = "llm_function") -> str:
    return f'@{kind}\ndef {name}(text: str) -> str:\n    """Do {name}."""\n    raise NotImplementedError\n'


@pytest.fixture(autouse=True)
def modules(folder: Path) -> None:
    (folder / "mcp_one.py").write_text(HEAD + function("a") + function("b") + function("_c") + "def plain(): ...\n")
    (folder / "mcp_two.py").write_text(HEAD + "from mcp_one import a\n" + function("d") + function("e"))
    (folder / "mcp_clash.py").write_text(HEAD + function("a"))
    (folder / "mcp_all.py").write_text("from mcp_one import a, b\n__all__ = ['b']\n")
    (folder / "mcp_none.py").write_text("from mcp_one import a\n")


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        (["mcp_one"], ["a", "b"]), (["mcp_one:b"], ["b"]), (["mcp_one:b", "_c"], ["b", "_c"]),
        (["mcp_one:b", "a", "mcp_two:d", "e"], ["b", "a", "d", "e"]), (["mcp_one", "mcp_two"], ["a", "b", "d", "e"]),
        (["mcp_two:a"], ["a"]), (["mcp_one", "mcp_one:a"], ["a", "b"]), (["mcp_all"], ["b"]),
        (["./mcp_one.py:a"], ["a"]),
    ],
)  # fmt: skip
def test_targets(targets: list[str], names: list[str]) -> None:
    assert list(functions_of(targets)) == names


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (["mcp_nowhere"], "no module 'mcp_nowhere'"),
        (["mcp_one:z"], r"has no 'z'\. Its decorated functions are: a, b, _c\."),
        (["mcp_one:plain"], "plain is not decorated with @llm_function"),
        (["mcp_none"], r"no function to offer.*or name one of: a"),
        (["mcp_one", "mcp_clash"], "two of the functions are called 'a'"), (["json"], "no function to offer"),
    ],
)  # fmt: skip
def test_targets_that_cannot_be_served(targets: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        functions_of(targets)


def test_a_chat_cannot_be_served(folder: Path) -> None:
    chat = "from collections.abc import Iterator\n@llm_chat\ndef chat(history: list, message: str) -> Iterator[tuple[str, list]]:\n    raise NotImplementedError\n"
    (folder / "mcp_chat.py").write_text(HEAD + chat)
    with pytest.raises(ConfigError, match="is a chat, which keeps a history"):
        functions_of(["mcp_chat:chat"])


def test_nothing_on_stdout_when_it_fails(folder: Path) -> None:
    (folder / "mcp_broken.py").write_text("print('loading')\nraise ValueError('broken')\n")
    with begun("mcp", "serve", "mcp_broken", cwd=folder, stdin=subprocess.DEVNULL) as process:
        out, told = process.communicate(timeout=50)
    assert (process.returncode, out) == (1, "")
    assert "loading" in told
    assert "Error: 'mcp_broken' failed while it was imported: ValueError: broken." in told
    assert "Traceback" not in told
