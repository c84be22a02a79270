"""What the doctor finds; nothing leaves this machine unless it may."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from SimpleLLMFunc.cli import doctor
from SimpleLLMFunc.cli.doctor import findings
from SimpleLLMFunc.cli.main import main
from SimpleLLMFunc.cli.show import Row, show_rows
from SimpleLLMFunc.interface import weights as weights_module
from tests.support.server import LoopbackServer, error_answer

KEY = "sk-canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SIMPLELLMFUNC_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL_DIR", str(tmp_path))
    return tmp_path


def found(name: str, *, online: bool = False) -> Row:
    rows = [row for row in findings(online=online) if row[1] == name]
    assert len(rows) == 1, rows
    return rows[0]


def test_python_and_packages() -> None:
    assert sys.version.split()[0] in found("Python")[2]
    assert found("SimpleLLMFunc")[0] == "ok"
    assert found("pydantic")[0] == "ok"
    assert "rich" in found("extra pretty")[2]
    assert not [row for row in findings() if "pytest" in row[2] or row[1] == "extra dev"]


def test_a_missing_extra_names_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "xllamacpp" else real(name))
    state, _, text = found("extra local")
    assert state == "no"
    assert text == 'xllamacpp not installed: pip install "SimpleLLMFunc[local]"'


def test_a_missing_package_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "aiohttp" else real(name))
    assert found("aiohttp") == ("bad", "aiohttp", "not installed")


def test_sources_that_were_never_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_DISTRIBUTION", "SimpleLLMFunc-that-is-not-installed")
    rows = list(findings())
    assert ("bad", "SimpleLLMFunc-that-is-not-installed", "not installed") in rows
    assert not [row for row in rows if row[1] == "pydantic"]


def test_weights_not_here() -> None:
    state, _, text = found("weights smollm2-135m")
    assert state == "no"
    assert "simplellmfunc model pull" in text


def test_damaged_weights(bare_environment: Path) -> None:
    (bare_environment / "smollm2-135m.gguf").write_bytes(b"GGUF but not whole")
    state, _, text = found("weights smollm2-135m")
    assert state == "bad"
    assert "is damaged" in text
    assert CliRunner().invoke(main, ["doctor"]).exit_code == 1


def test_weights_that_cannot_be_read(bare_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    (bare_environment / "smollm2-135m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(weights_module, "_sha256", refused)
    state, _, text = found("weights smollm2-135m")
    assert state == "bad"
    assert "Permission denied" in text


def test_no_model_is_no_fault() -> None:
    assert found("model")[0] == "no"
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0, done.output
    assert "SIMPLELLMFUNC_MODEL is not set" in done.stdout


def test_the_model_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "local")
    assert found("model") == ("ok", "model", "smollm2-135m (local), because SIMPLELLMFUNC_MODEL is 'local'")


def test_a_model_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "no such form")
    state, _, text = found("model")
    assert state == "bad"
    assert "SIMPLELLMFUNC_MODEL" in text


def test_the_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found("OPENAI_API_KEY") == ("no", "OPENAI_API_KEY", "not set")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "openai:some-model")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://someone:{KEY}@127.0.0.1:9/v1?key={KEY}")
    assert found("OPENAI_API_KEY") == ("ok", "OPENAI_API_KEY", "set")
    done = CliRunner().invoke(main, ["doctor", "--online"])
    assert KEY not in done.output
    assert "canary" not in done.output


def test_nothing_goes_out_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*args: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", connect)
    assert [row for row in findings() if row[1] == "address"] == []


async def test_an_address_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(lambda request: error_answer(401)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        row = await asyncio.to_thread(found, "address", online=True)
        assert row[0] == "ok"
        assert "status 401" in row[2]
        assert [request.path for request in server.requests] == ["/v1/models"]
        assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("address", "said"),
    [("http://127.0.0.1:9/v1", "cannot be reached"), ("file:///etc/passwd", "is not an http address")],
)
def test_an_address_that_does_not(address: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    state, _, text = found("address", online=True)
    assert state == "bad"
    assert said in text


def test_no_address_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no model and no OPENAI_BASE_URL" in found("address", online=True)[2]
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "local")
    assert "inside this process" in found("address", online=True)[2]


ROWS: list[Row] = [("ok", "one", "fine"), ("bad", "longer name", "[red]brackets[/red]")]


def test_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(ROWS)
    assert capsys.readouterr().out == "ok   one          fine\nbad  longer name  [red]brackets[/red]\n"


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_rows(ROWS)
    out = capsys.readouterr().out
    assert "longer name" in out
    assert "[red]brackets[/red]" in out


def test_columns_on_a_terminal_without_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    show_rows(ROWS)
    assert "longer name  [red]brackets[/red]" in capsys.readouterr().out
