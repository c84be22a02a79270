"""What the doctor finds; nothing leaves this machine unless it may."""

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest

from SimpleLLMFunc.cli.commands import doctor
from SimpleLLMFunc.cli.commands.doctor import Finding, findings
from SimpleLLMFunc.cli.output import Row, show_rows
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from tests.support.command_line import typed
from tests.support.server import LoopbackServer, error_answer

pytestmark = pytest.mark.usefixtures("bare")
KEY = "sk-canary-0123456789abcdef"


def found(name: str, *, online: bool = False, calls: bool = False) -> Finding:
    rows = [row for row in findings(online=online, calls=calls) if row.name == name]
    assert len(rows) == 1, rows
    return rows[0]


def test_python_and_packages() -> None:
    assert sys.version.split()[0] in found("Python")[2]
    assert found("SimpleLLMFunc")[0] == "ok"
    assert found("pydantic")[0] == "ok"
    assert "rich" in found("extra pretty")[2]
    assert not [
        row for row in findings() if row.name in {"pytest", "mypy", "extra dev", "extra dev-heavy", "extra all"}
    ]


def test_a_missing_extra_names_the_line_and_a_missing_package_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in {"xllamacpp", "jsonschema"} else real(name))
    assert found("extra local") == ("no", "extra local", "xllamacpp not installed", install_line("local"))
    assert found("jsonschema") == ("bad", "jsonschema", "not installed", "pip install jsonschema")


def test_what_only_another_system_needs_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'here>=1; sys_platform == "{sys.platform}"', 'there>=1; sys_platform == "plan9"', "click>=8.2"]
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: lines)
    assert [row.name for row in doctor._packages()] == ["SimpleLLMFunc", "here", "click"]


def test_sources_that_were_never_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_DISTRIBUTION", "SimpleLLMFunc-that-is-not-installed")
    rows = list(findings())
    assert ("bad", "SimpleLLMFunc-that-is-not-installed") in [row[:2] for row in rows]
    assert not [row for row in rows if row[1] == "pydantic"]


def test_weights_that_are_not_here_damaged_or_cannot_be_read(tmp_path: Path) -> None:
    name, path = "weights smollm2-135m", tmp_path / "smollm2-135m.gguf"
    assert found(name) == ("no", name, "not here; fetched at first use", "simplellmfunc model pull smollm2-135m")
    path.write_bytes(b"GGUF but not whole")
    assert (found(name).state, found(name).text) == ("bad", f"{path} is damaged")
    typed("doctor", code=1)
    path.unlink()
    path.mkdir()
    assert found(name).state == "bad"
    assert "cannot be used" in found(name).text


def test_no_model_is_no_fault() -> None:
    assert found("model")[0] == "no"
    assert "SIMPLELLMFUNC_MODEL is not set" in typed("doctor").stdout


def test_the_model_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "local")
    assert found("model")[:3] == ("ok", "model", "smollm2-135m (local), because SIMPLELLMFUNC_MODEL is 'local'")


def test_a_model_without_its_key_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "openai:some-model")
    row = found("model")
    assert (row.state, row.next) == ("bad", "set OPENAI_API_KEY")
    assert "No key for some-model" in typed("doctor", code=1).stdout
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert found("model").state == "ok"
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # a local address needs none
    assert found("model").state == "ok"


def test_the_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found("OPENAI_API_KEY")[:3] == ("no", "OPENAI_API_KEY", "not set")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "openai:some-model")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://someone:{KEY}@127.0.0.1:9/v1?key={KEY}")
    assert found("OPENAI_API_KEY") == ("ok", "OPENAI_API_KEY", f"set (***, {len(KEY)} characters)", "")
    done = typed("doctor", "--online", code=1)
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
    row = found("address", online=True)
    assert row.state == "bad"
    assert said in row.text


def test_no_address_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no model and no OPENAI_BASE_URL" in found("address", online=True)[2]
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "local")
    assert "inside this process" in found("address", online=True)[2]


ROWS: list[Row] = [("ok", "one", "fine"), ("bad", "longer name", "[red]brackets[/red]")]


def test_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(ROWS)
    assert capsys.readouterr().out == "ok   one          fine\nbad  longer name  [red]brackets[/red]\n"


def test_columns_on_a_terminal_without_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    show_rows(ROWS)
    assert "longer name  [red]brackets[/red]" in capsys.readouterr().out


# --- every problem with its next move ---------------------------------------------------------------------


def test_as_json() -> None:
    data = json.loads(typed("doctor", "--json").stdout)
    assert data["problems"] == 0
    checks = {check["name"]: check for check in data["checks"]}
    assert checks["SimpleLLMFunc"]["state"] == "ok"
    assert checks["weights smollm2-135m"]["next"] == "simplellmfunc model pull smollm2-135m"
    assert {"Python", "proxy", "traces", "provider file", "model"} <= checks.keys()


PROBLEMS = [
    ("OPENAI_API_KEY", "OPENAI_API_KEY", f"{KEY} and more", "copy the key again"),
    ("model", "SIMPLELLMFUNC_MODEL", "nonsense", "SIMPLELLMFUNC_MODEL"),
    ("provider file", "SIMPLELLMFUNC_MODEL", "missing.json:p/m", "write the file"),
    ("SSL_CERT_FILE", "SSL_CERT_FILE", "missing.pem", "unset SSL_CERT_FILE"),
    ("SSL_CERT_FILE", "SSL_CERT_FILE", "text.sqlite", "name a PEM file"),
    ("SSL_CERT_DIR", "SSL_CERT_DIR", "missing", "unset SSL_CERT_DIR"),
    ("proxy https", "HTTPS_PROXY", "socks5://127.0.0.1:1080", "unset HTTPS_PROXY"),
    ("traces", "SIMPLELLMFUNC_TRACE", "text.sqlite", "another path"),
]


@pytest.mark.parametrize(("name", "variable", "value", "what_next"), PROBLEMS)
def test_a_problem_comes_with_its_next_move(name, variable, value, what_next, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.sqlite").write_text("none of ours " * 100)
    monkeypatch.setenv(variable, value)
    problem = found(name)
    assert problem.state == "bad", problem
    assert what_next in problem.next
    done = typed("doctor", "--json", code=1)
    data = json.loads(done.stdout)
    assert data["problems"] >= 1
    assert all(check["next"] for check in data["checks"] if check["state"] == "bad")
    assert KEY not in done.output
    shown = typed("doctor", code=1)
    assert "problem" in shown.stderr
    assert f"-> {problem.next}" in shown.stdout


def test_a_provider_file_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "provider.json"
    entry = {"model_name": "m", "api_keys": [KEY, f"{KEY}2"], "base_url": "https://x.example/v1"}
    path.write_text(json.dumps({"p": [entry]}))
    path.chmod(0o644)
    row = found("provider file")
    assert f"{path}: 1 provider, 1 model, 2 keys (***)" in row.text
    if sys.platform != "win32":
        assert row.next == f"chmod 600 {path}"
        path.chmod(0o600)
        assert found("provider file")[0] == "ok"
    path.write_text('{"p": [{}]}')
    assert found("provider file")[0] == "bad"
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "provider.json:p/m")
    assert "model_name" in found("provider file").text


def test_proxies_are_shown_without_their_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    assert found("proxy").state == "ok"
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{KEY}@proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.internal")
    assert found("proxy https").text == "http://***@proxy.example:3128"
    assert found("proxy no").text == "localhost,.internal"


def test_a_store_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("SIMPLELLMFUNC_TRACE", str(path))
    assert "made when a function runs" in found("traces").text
    assert not path.exists()
    with TraceStore(path) as store:
        assert store.reader.seq() == 0
    assert f"{path}: 0 runs" in found("traces").text


async def test_a_real_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer() as server:
        server.reply("ready")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("SIMPLELLMFUNC_MODEL", "openai:m")
        row = await asyncio.to_thread(found, "call", calls=True)
        assert (row.state, row.text[:18]) == ("ok", "m answered 'ready'")
        assert server.requests[0].key == KEY
        server.answer(error_answer(401))
        row = await asyncio.to_thread(found, "call", calls=True)
        assert row.state == "bad"
        assert "AuthenticationError" in row.text
        assert row.next
        assert KEY not in row.text
    monkeypatch.delenv("SIMPLELLMFUNC_MODEL")
    row = await asyncio.to_thread(found, "call", calls=True)
    assert (row.state, bool(row.next)) == ("bad", True)
