"""`simplellmfunc view`: what it takes, how it refuses, and that a real process serves the page and ends."""

import re
import signal
import sys
from functools import partial

import httpx
import pytest

from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from tests.support.command_line import begun, typed
from tests.viewer import shop

MODULE = """
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM

@llm_function(llm_interface=ScriptedLLM("Hello.", repeat=True))
def greet(name: str) -> str:
    '''Greet somebody.'''
"""


@pytest.fixture(autouse=True)
def runs(folder, monkeypatch):
    monkeypatch.delenv("SIMPLELLMFUNC_TRACE", raising=False)
    (folder / "view_greetings.py").write_text(MODULE)
    with TraceStore(folder / "runs.sqlite") as store, watching(store):
        shop.mood("Fine.")


run = partial(typed, "view", "--no-open")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no trace store is named"), (["view_greetings.py"], "cannot be used as a trace store"),
        (["runs.sqlite", "--allow-run", "no_such_module"], "there is no module"),
        (["runs.sqlite", "--allow-run", "view_greetings:nobody"], "has no 'nobody'"),
        (["runs.sqlite", "--allow-run", "json"], "nothing to run"),
        (["runs.sqlite", "--host", "0.0.0.0"], "this machine only"),
        (["runs.sqlite", "--host", "example.com"], "this machine only"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_shown_is_said_at_once(arguments, said):
    result = run(*arguments, code=1)
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("by_environment", [False, True])
@pytest.mark.parametrize(("path", "hint"), [("rums.sqlite", " Did you mean 'runs.sqlite'?"), ("deep/rums.sqlite", "")])
def test_a_store_that_is_not_there_is_told_and_not_made(folder, monkeypatch, path, hint, by_environment):
    before = sorted(folder.iterdir())
    if by_environment:
        monkeypatch.setenv("SIMPLELLMFUNC_TRACE", path)
    result = run(*([] if by_environment else [path]), code=1)
    assert f"there is no trace store {path!r}.{hint}" in result.output
    assert sorted(folder.iterdir()) == before


@pytest.mark.heavy
@pytest.mark.parametrize("by_environment", [False, True])
def test_a_process_serves_the_page_until_it_is_interrupted(folder, by_environment):
    named = {"SIMPLELLMFUNC_TRACE": "runs.sqlite"} if by_environment else {}
    words = ("view", "--no-open", "--allow-run", "view_greetings", *([] if by_environment else ["runs.sqlite"]))
    with begun(*words, cwd=folder, **named) as process:
        try:
            first, second = process.stdout.readline(), process.stdout.readline()
            assert "runs.sqlite" in first
            base, token = re.fullmatch(r"\s*(http://127\.0\.0\.1:\d+)/#token=([\w-]{40,})\s*", second).groups()
            headers = {"X-SimpleLLMFunc-Token": token, "Origin": base}
            assert httpx.get(f"{base}/api/runs").status_code == 401
            runs = httpx.get(f"{base}/api/runs", headers=headers).json()["runs"]
            assert [each["function"] for each in runs] == ["mood"]
            reply = httpx.post(f"{base}/api/play/greet", headers=headers, json={"arguments": {"name": "Ann"}})
            assert '"value": "Hello."' in reply.text
        finally:
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert token not in errors
    seen = [each.function for each in TraceReader(folder / "runs.sqlite").runs().runs]
    assert sorted(seen) == ["greet", "mood"], "the run begun on the page is kept, once"


def test_the_browser_is_opened_where_there_is_one(monkeypatch):
    from SimpleLLMFunc.cli.commands import view

    opened = []
    monkeypatch.setattr(view.webbrowser, "open", lambda address: opened.append(address) or True)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    if sys.platform == "linux":
        assert view._opened("http://127.0.0.1:1/") is False
        assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    assert view._opened("http://127.0.0.1:1/") is True
    assert opened == ["http://127.0.0.1:1/"]
