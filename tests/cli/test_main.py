"""The command line: what it prints, and how it ends."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from SimpleLLMFunc import __version__
from SimpleLLMFunc.cli.commands import demo as demo_module
from SimpleLLMFunc.cli.commands import model as module
from SimpleLLMFunc.cli.main import main
from SimpleLLMFunc.errors import BadRequest, ConfigError
from SimpleLLMFunc.interface.local.weights import SMOLLM2_135M, fetch_weights
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.command_line import begun, typed

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    """Have `model pull` raise an error."""
    return lambda error: monkeypatch.setattr(module, "fetch_weights", Mock(side_effect=error))


def test_version_and_help() -> None:
    assert typed("--version").output == f"simplellmfunc, version {__version__}\n"
    done = typed("-h")
    assert done.output == typed("--help").output
    for command in ("demo", "doctor", "model"):
        assert command in done.output


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ConfigError("no network. Try again later."), 1, "Error: no network. Try again later.\n"),
        (BadRequest("m", status=400, body="no\x1b]0;title\x07\nmore"), 1, "no\\u001b]0;title\\u0007\nmore\n"),
        (OSError(28, "No space left on device"), 1, "Error: [Errno 28] No space left on device\n"),
        (KeyboardInterrupt(), 130, "\nStopped.\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_ours_is_one_paragraph_that_does_nothing_to_the_terminal(error, code, told, failing) -> None:
    failing(error)
    done = typed("model", "pull", code=code)
    assert done.stdout == ""
    assert done.stderr == told or (isinstance(error, BadRequest) and done.stderr.endswith(told))


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), TimeoutError()], ids=repr)
def test_what_is_not_ours_is_shown_whole(error, failing) -> None:
    failing(error)
    assert CliRunner().invoke(main, ["model", "pull"]).exception is error


def test_demo_with_scripted_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = ScriptedLLM('{"name": "Anna", "age": 34, "city": "Uppsala"}', "The capital is Paris.")
    monkeypatch.setattr(demo_module, "LocalModel", lambda **options: llm)
    done = typed("demo")
    assert "Person(name='Anna', age=34, city='Uppsala')" in done.stdout
    assert "The capital is Paris." in done.stdout
    assert "Answered by scripted (scripted)." in done.stdout
    assert "tokens" in done.stdout
    assert done.stdout.count("seconds") == 2
    assert [call.stream for call in llm.calls] == [False, True]


def test_model_list_and_path_without_weights(tmp_path: Path) -> None:
    assert typed("model", "list").stdout == "smollm2-135m  not fetched\ngemma3-270m  not fetched\n"
    done = typed("model", "path", code=1)
    assert "simplellmfunc model pull smollm2-135m" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_as_a_module(tmp_path: Path) -> None:
    with begun("--help", cwd=tmp_path) as process:
        out, told = process.communicate(timeout=50)
    assert out.startswith("Usage: python -m SimpleLLMFunc ")
    assert told == ""


@pytest.mark.heavy
@pytest.mark.local_model
def test_pull_and_demo_with_the_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIMPLELLMFUNC_MODEL_DIR")
    path = fetch_weights(SMOLLM2_135M)
    assert typed("model", "pull").stdout == f"{path}\n"
    assert typed("model", "path").stdout == f"{path}\n"
    assert f"smollm2-135m  {path}\n" in typed("model", "list").stdout
    with begun("demo", cwd=tmp_path) as process:
        out, told = process.communicate(timeout=55)
    assert (process.returncode, told) == (0, "")
    assert "Person(name='Anna Lindgren', age=34, city='Uppsala')" in out
    assert "The capital of France is Paris." in out
    assert "Answered by smollm2-135m (local)." in out
