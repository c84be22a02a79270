"""The commands with a model named in the environment, on each wire, over loopback."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from SimpleLLMFunc.cli.main import main
from tests.support.server import serving_in_thread
from tests.support.wires import MODELS, SERVICES, address, said_by

ROOT = Path(__file__).parents[2]
VARIABLES = {
    "responses": ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "messages": ("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "gemini": ("gemini", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
}
MODULE = """
from SimpleLLMFunc import llm_function

@llm_function()
async def count(text: str) -> int:
    '''Count the words.'''
"""


@pytest.fixture(params=["messages", "gemini"])
def wire(request: Any, folder: Path, monkeypatch: Any) -> Any:
    """A module of a function, and the environment that names its model; the requests that arrive."""
    name = request.param
    maker, key, url = VARIABLES[name]
    (folder / "words.py").write_text(MODULE)
    with serving_in_thread(said_by(SERVICES[name](), lambda _: "7")) as server:
        for variable in ("GOOGLE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("SIMPLELLMFUNC_MODEL", f"{maker}:{MODELS[name]}")
        monkeypatch.setenv(key, "sk-canary-0123456789")
        monkeypatch.setenv(url, address(name, server))
        yield server.requests


def test_run_and_preview(wire):
    done = CliRunner().invoke(main, ["run", "words:count", "a b", "--json"])
    assert (done.exit_code, json.loads(done.stdout)["value"]) == (0, 7)
    shown = CliRunner().invoke(main, ["preview", "words:count", "a b", "--json"])
    preview = json.loads(shown.stdout)
    assert preview["body"] == wire[0].body
    assert preview["url"].endswith(wire[0].path)
    assert "sk-canary" not in shown.stdout
    assert len(wire) == 1
    assert "_API_KEY" in CliRunner().invoke(main, ["preview", "words:count", "a b", "--curl"]).stdout


def test_doctor_knows_the_key_and_the_model(wire):
    del wire
    done = CliRunner().invoke(main, ["doctor", "--json"])
    found = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    [key] = [name for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY") if found[name]["state"] == "ok"]
    assert "sk-canary" not in done.stdout
    assert found["model"]["state"] == "ok"
    assert found["model"]["text"].startswith("claude" if key == "ANTHROPIC_API_KEY" else "gemini")
