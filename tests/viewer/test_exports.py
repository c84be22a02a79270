"""A recorded run taken along: the test that is copied runs, and the command is what was sent."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import shlex
import subprocess
import sys
import textwrap
from xml.etree import ElementTree

import pytest

from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.observability.store.rows import StoredTurn
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.viewer.exports import as_curl, as_test
from SimpleLLMFunc.viewer.responses import Refusal
from tests.support.server import LoopbackServer
from tests.viewer import shop
from tests.viewer.filled import showpiece
from tests.viewer.served import app_of, client_of, keep

SHOP = """
from __future__ import annotations
from collections.abc import AsyncIterator, Iterator
from datetime import date
from enum import Enum
from typing import Literal
from pydantic import BaseModel
from SimpleLLMFunc import ChatPair, Message, llm_chat, llm_function, tool
from SimpleLLMFunc.testing import ScriptedLLM, answer, tool_calls

class Colour(Enum):
    RED = "red"
    GREEN = "green"

class Box(BaseModel):
    colour: Colour
    made: date

class Price(BaseModel):
    amount: float
    currency: Literal["EUR", "USD"] = "EUR"

@tool
def look_up(item: str) -> str:
    '''Look an item up.'''
    raise AssertionError("the copied test must not run it")

@llm_function(toolkit=[look_up])
async def price_of(item: str, *, strict: bool = False, note: str | None = None) -> Price:
    '''Say what an item costs.'''

@llm_function
def repaint(box: Box, colour: Colour) -> Box:
    '''Paint a box.'''

@llm_function
def say(text: str) -> str:
    '''Say it.'''

@llm_chat(stream=True)
async def guide(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
    '''You are a guide.'''

@llm_chat
def quiet(message: str, history: list[Message] | None = None) -> Iterator[ChatPair]:
    '''You are quiet.'''
"""

PLAYS = {
    "typed with tools, a re-ask and a repair": """
        calls = tool_calls(("look_up", {"item": "cup"}), ("look_up", {"item": "tray"}))
        llm = ScriptedLLM(calls, '{"amount": "cheap"}', "It is ```json\\n{'amount': '3 EUR',}\\n```")
        def found(item: str) -> str:
            return "3 " + item
        from SimpleLLMFunc import Tool
        function = price_of.with_options(llm_interface=llm, toolkit=[Tool(func=found, name="look_up", description="Look an item up.")])
        asyncio.run(function("cup", strict=True))
        """,
    "a model as an argument": """
        box = Box(colour=Colour.RED, made=date(2026, 1, 2))
        repaint.with_options(llm_interface=ScriptedLLM('{"colour": "green", "made": "2026-01-02"}'))(box, Colour.GREEN)
        """,
    "text with quotes and line breaks": """
        odd = 'He said: "no" \\\\ and\\n\\'\\'\\'left\\'\\'\\' \\"\\"\\"\\n\\u202e \\x1b[0m 你好 {x}'
        say.with_options(llm_interface=ScriptedLLM(odd * 5))(odd)
        """,
    "a text that failed as a type": """
        try:
            asyncio.run(price_of.with_options(llm_interface=ScriptedLLM("no", "no", "no"), toolkit=None)("cup"))
        except Exception as error:
            assert type(error).__name__ == "ResponseParseError", error
        """,
    "tools as JSON": """
        llm = ScriptedLLM('{"tool": "look_up", "arguments": {"item": "cup"}}', '{"answer": {"amount": 5}}')
        def found(item: str) -> str:
            return "5"
        from SimpleLLMFunc import Tool
        function = price_of.with_options(llm_interface=llm, tools="json", toolkit=[Tool(func=found, name="look_up", description="Look an item up.")])
        asyncio.run(function("cup"))
        """,
    "a chat": """
        async def talk():
            llm = ScriptedLLM("Hello.", "Left, then right.")
            history = []
            async for _, history in guide.with_options(llm_interface=llm)(history, "Hi"):
                pass
            async for _, history in guide.with_options(llm_interface=llm)(history, "Where to?"):
                pass
        asyncio.run(talk())
        """,
    "a sync chat": "list(quiet.with_options(llm_interface=ScriptedLLM('...'))('Hi'))",
}


@pytest.fixture(scope="module")
def plays(tmp_path_factory):
    """The runs of a program in another process, in one store; the copied tests of all of them, run once by pytest."""
    folder = tmp_path_factory.mktemp("plays")
    (folder / "my_shop.py").write_text(SHOP)
    blocks = [f"# {name}\n{textwrap.dedent(code)}" for name, code in PLAYS.items()]
    names = list(PLAYS)
    script = "import asyncio\nfrom my_shop import *\nfrom my_shop import Box, Colour, date, ScriptedLLM, tool_calls\n"
    script += "from SimpleLLMFunc.observability.store.trace_store import TraceStore\nfrom SimpleLLMFunc.base.run.sinks import watching\n"
    script += "store = TraceStore('runs.sqlite')\n"
    for name, block in zip(names, blocks, strict=True):
        script += f"with watching(store, session_id={name!r}):\n{textwrap.indent(block.strip(), '    ')}\n"
    (folder / "play.py").write_text(script + "store.close()\n")
    ran = subprocess.run([sys.executable, "play.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    store = TraceStore(folder / "runs.sqlite")
    # The last run of a session: what a chat said before is in its history.
    runs = {run.session: store.reader.run(run.id) for run in reversed(store.reader.runs().runs)}
    assert set(runs) == set(PLAYS)
    for at, name in enumerate(names):
        (folder / f"test_copy_{at}.py").write_text(as_test(runs[name]))
    yield folder, runs, pytest_in(folder, "--junitxml=out.xml")
    store.close()


def pytest_in(folder, *options):
    """Run pytest in a folder; loading schemathesis takes a second."""
    without = [f"-pno:{plugin}" for plugin in ("asyncio", "schemathesis", "cacheprovider")]
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", *without, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.heavy
@pytest.mark.parametrize("name", PLAYS)
def test_the_copied_test_passes(plays, name):
    folder, _, done = plays
    at = list(PLAYS).index(name)
    cases = {case.get("classname"): case for case in ElementTree.parse(folder / "out.xml").iter("testcase")}
    assert f"test_copy_{at}" in cases, done.stdout
    problems = [part.text for part in cases[f"test_copy_{at}"] if part.tag in {"failure", "error", "skipped"}]
    assert not problems, (folder / f"test_copy_{at}.py").read_text() + "\n" + problems[0]


@pytest.mark.heavy
def test_the_copied_test_fails_when_the_function_gives_something_else(plays, tmp_path):
    folder, runs, _ = plays
    text = as_test(runs["a model as an argument"])
    before, green, after = text.rpartition('"colour": "green"')
    assert green
    (tmp_path / "my_shop.py").write_text((folder / "my_shop.py").read_text())
    (tmp_path / "test_it.py").write_text(before + green.replace("green", "red") + after)
    done = pytest_in(tmp_path)
    assert done.returncode == 1, done.stdout
    assert "AssertionError" in done.stdout


def test_a_test_is_code_that_says_what_it_is(store, order_run):
    text = client_of(app_of(store)).get("/api/runs/1/test").json()["text"]
    compile(text, "test_copy.py", "exec")
    assert text.startswith('"""What read_order did on ')
    for part in (order_run.trace_id, "from tests.viewer.shop import read_order", "def test_read_order():"):
        assert part in text
    for part in ("ScriptedLLM(*REPLIES)", "read_order.with_options(", "bind(ARGUMENTS)"):
        assert part in text
    assert max(len(line) for line in text.splitlines()) < 140


def test_a_function_of_an_unknown_module_leaves_a_place_for_it(store):
    keep(store, lambda: shop.mood("x"))
    detail = store.reader.run(1)
    version = dataclasses.replace(detail.function_version, place="__main__:mood")
    text = as_test(dataclasses.replace(detail, function_version=version))
    assert "from your_module import mood" in text
    assert "Write the module" in text


def test_masked_secrets_and_cut_files_are_said(store):
    keep(store, lambda: shop.mood("my key is sk-abcdefghijklmnopqrstuvwx0123"))
    text = as_test(store.reader.run(1))
    assert "abcdefghijklmnop" not in text
    assert "Secrets are masked" in text


@pytest.mark.parametrize("status", ["running", "lost", "cancelled"])
def test_a_run_that_has_not_ended_is_no_test(store, order_run, status):
    detail = store.reader.run(1)
    changed = dataclasses.replace(detail, summary=dataclasses.replace(detail.summary, status=status))
    with pytest.raises(Refusal, match=status):
        as_test(changed)


def test_a_run_in_which_the_service_failed_is_no_test(store):
    from SimpleLLMFunc import OpenAICompatible
    from SimpleLLMFunc.errors import ServerUnavailable

    async def ask():
        async with LoopbackServer() as server:
            for _ in range(3):
                server.reply_status(503)
            llm = OpenAICompatible("m", api_key="none", base_url=server.base_url, retry_delay=0.001)
            with watching(store):
                await shop.describe.with_options(llm_interface=llm)("teapot")

    with pytest.raises(ServerUnavailable):
        keep(store, ask)
    reply = client_of(app_of(store)).get("/api/runs/1/test")
    assert reply.status_code == 409
    assert "reply" in reply.json()["error"]


def test_a_request_is_copied_as_curl(store, tmp_path):
    asyncio.run(showpiece(store, 0.01))
    assert store.flush()
    text = client_of(app_of(store)).get("/api/runs/1/curl", params={"number": 2}).json()["text"]
    words = shlex.split(text)
    assert words[0] == "curl"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/.*/chat/completions", words[1])
    assert "Authorization: Bearer $OPENAI_API_KEY" in words
    body = json.loads(words[words.index("-d") + 1])
    assert body["model"] == "gpt-5-mini"
    assert body["messages"][-1]["content"] == "31 on the shelf"
    assert text.count("\n") == 3


def test_a_shell_does_not_run_what_a_message_says(tmp_path):
    fields = {field.name: None for field in dataclasses.fields(StoredTurn)}
    request = {"messages": [{"role": "user", "content": "'; touch pwned; echo '$(touch pwned)`touch pwned`\n\"\\"}]}
    turn = StoredTurn(**{**fields, "url": "http://127.0.0.1:9/v1/$(touch pwned)", "request": request})
    script = as_curl(turn).replace("curl ", "printf '%s' ", 1)
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.dumps(request, ensure_ascii=False) in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_address_has_no_curl(store, order_run):
    reply = client_of(app_of(store)).get("/api/runs/1/curl")
    assert reply.status_code == 409
    assert "inside the process" in reply.json()["error"]
    assert client_of(app_of(store)).get("/api/runs/1/curl", params={"number": 9}).status_code == 404
