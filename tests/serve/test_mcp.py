"""Decorated functions as MCP tools: our server as a process, our client or a hand-written one on the other side."""

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.errors import ConfigError, ToolFailed
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.serve import serve_mcp
from SimpleLLMFunc.serve.mcp import serve_http
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import Tool
from SimpleLLMFunc.tools.mcp.client import tools_from_mcp
from tests.support.command_line import PROGRAM, ROOT, begun
from tests.support.referees import is_of_today

pytest.importorskip("mcp")

CANARY = "sk-canary-1234567890abcdef"
SHOP = f'''
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from SimpleLLMFunc import llm_chat, llm_function
from SimpleLLMFunc.errors import ServerUnavailable
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

print("this module prints while it is loaded")


class Grade(BaseModel):
    points: int
    why: str = ""


@llm_function(llm_interface=ScriptedLLM('{{"points": 4, "why": "Fine: 好"}}', repeat=True))
async def grade(essay: str, level: Literal["easy", "hard"] = "easy") -> Grade:
    """Grade the essay. Be fair.

    Args:
        essay: what to grade.
        level: how strictly.
    """


@llm_function(llm_interface=ScriptedLLM(lambda request: "It says: " + request.messages[-1]["content"], repeat=True))
def summarise(text: str) -> str:
    """Sum up the text."""


@llm_function(llm_interface=ScriptedLLM("[1, 2, 3]", repeat=True))
def numbers(topic: str) -> Iterator[int]:
    """List numbers."""


@llm_function(llm_interface=ScriptedLLM('{{"value": [{{"points": 1}}]}}', repeat=True))
async def grades(topic: str) -> AsyncIterator[Grade]:
    """List grades."""


@llm_function(llm_interface=ScriptedLLM("7", repeat=True))
async def count(text: str) -> int:
    """Count."""


@llm_function(llm_interface=ScriptedLLM("ok", repeat=True))
async def nothing(text: str) -> None:
    """Do something."""


@llm_function(llm_interface=ScriptedLLM(ServerUnavailable("m", status=503, body="key {CANARY} is busy"), repeat=True))
async def broken(text: str) -> str:
    """Ask a service that is down."""


def noisy(text: str) -> str:
    """Print, and read from stdin, as a tool should not."""
    print("printed by a tool")
    os.system("echo printed by a child")
    return text + repr(sys.stdin.read())


async def stall(note: str) -> str:
    """Wait for ever."""
    Path(note).write_text("started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        Path(note).write_text("cancelled")
        raise
    return ""


@llm_function(llm_interface=ScriptedLLM(tool_calls(("noisy", {{"text": "x"}})), "done"), toolkit=[noisy])
async def prints(text: str) -> str:
    """Use a tool that prints."""


@llm_function(
    llm_interface=ScriptedLLM(lambda request: tool_calls(("stall", {{"note": request.messages[-1]["content"].split()[-1]}}))),
    toolkit=[stall],
)
def waits(path: str) -> str:
    """Use a tool that never ends."""


@llm_function
async def unasked(text: str) -> str:
    """There is no model to ask."""


@llm_function
async def _private(text: str) -> str:
    """Not offered."""


@llm_chat
def chat(history: list[dict[str, str]], message: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Not offered either."""
'''
COMMAND = [sys.executable, "-X", "dev", *PROGRAM[1:], "mcp", "serve"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    return folder


def started(folder: Path, *words: str, stdin: int | None = None) -> subprocess.Popen[str]:
    return begun(*words, program=COMMAND, cwd=folder, stdin=stdin)


def by_name(tools: list[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[dict[str, Tool]]:
    with tools_from_mcp(command=[*COMMAND, "shop"], cwd=folder, env={"PYTHONPATH": str(ROOT)}) as tools:
        yield by_name(tools)


# --- what is offered, and what comes back ---


def test_every_public_function_is_offered(shared: dict[str, Tool]) -> None:
    assert list(shared) == [
        "grade", "summarise", "numbers", "grades", "count", "nothing", "broken", "prints", "waits", "unasked",
    ]  # fmt: skip
    grade = shared["grade"]
    assert grade.description == "Grade the essay. Be fair."
    assert grade.parameters["properties"]["level"]["enum"] == ["easy", "hard"]
    assert grade.parameters["properties"]["essay"]["description"] == "what to grade."
    assert grade.parameters["required"] == ["essay"]


async def test_answers(shared: dict[str, Tool]) -> None:
    assert await shared["grade"](essay="On rain", level="hard") == {"points": 4, "why": "Fine: 好"}
    assert "On rain" in str(await shared["summarise"](text="On rain"))
    assert await shared["numbers"](topic="x") == [1, 2, 3]
    assert await shared["grades"](topic="x") == [{"points": 1, "why": ""}]
    assert await shared["count"](text="x") == 7
    assert await shared["nothing"](text="x") == ""


async def test_errors_are_results_without_secrets_and_tracebacks(shared: dict[str, Tool]) -> None:
    with pytest.raises(ToolFailed, match="ServerUnavailable") as caught:
        await shared["broken"](text="x")
    assert CANARY not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    with pytest.raises(ToolFailed, match="SIMPLELLMFUNC_MODEL"):
        await shared["unasked"](text="x")
    with pytest.raises(ToolFailed, match=r"do not fit grade: level"):
        await shared["grade"](essay="x", level="odd")
    with pytest.raises(ToolFailed, match="do not fit"):
        await shared["grade"](essay="x", _template_params={"a": 1})
    assert await shared["count"](text="x") == 7


@pytest.mark.skipif(not is_of_today("mcp", 2), reason="its version 1 does not tell the server")
async def test_a_call_that_is_given_up_ends_the_run_in_the_server(shared: dict[str, Tool], tmp_path: Path) -> None:
    note = tmp_path / "note"
    task = asyncio.create_task(shared["waits"](path=str(note)))
    async with asyncio.timeout(20):
        while not note.exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while note.read_text() != "cancelled":
            await asyncio.sleep(0.02)


# --- the protocol, by hand ---

INITIALIZE = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}},
}


class Client:
    """Speaks the protocol to a server process without any package."""

    def __init__(self, folder: Path, *targets: str) -> None:
        self.process = started(folder, *targets, stdin=subprocess.PIPE)
        self.number = 0
        self.ask(**INITIALIZE)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.number += 1
        self.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}})
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.number
        return answer["result"]  # type: ignore[no-any-return]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def end(self) -> tuple[str, str]:
        return self.process.communicate(timeout=30)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_on_the_wire(folder: Path) -> None:
    with Client(folder, "shop:grade", "count", "summarise", "nothing", "prints") as client:
        listed = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
        assert list(listed) == ["grade", "count", "summarise", "nothing", "prints"]
        assert listed["grade"]["outputSchema"]["properties"]["points"] == {"title": "Points", "type": "integer"}
        assert listed["count"]["outputSchema"]["properties"] == {"result": {"type": "integer"}}
        assert "outputSchema" not in listed["summarise"]
        graded = client.call("grade", essay="x")
        assert graded["structuredContent"] == {"points": 4, "why": "Fine: 好"}
        assert graded["content"] == [{"type": "text", "text": '{"points": 4, "why": "Fine: 好"}'}]
        assert not graded.get("isError")
        assert client.call("count", text="x")["structuredContent"] == {"result": 7}
        assert "structuredContent" not in client.call("summarise", text="x")
        assert client.call("nothing", text="x")["content"] == []
        unknown = client.call("other")
        assert unknown["isError"]
        assert "There is no tool 'other'" in unknown["content"][0]["text"]
        # Prints go to stderr; stdin is empty.
        assert client.call("prints", text="x")["content"] == [{"type": "text", "text": "done"}]
        out, told = client.end()
    assert client.process.returncode == 0
    assert out == ""
    assert "printed by a tool" in told
    assert "printed by a child" in told
    assert "this module prints while it is loaded" in told
    assert "Traceback" not in told
    assert "Warning" not in told


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_ends_it_while_stdin_is_open(folder: Path) -> None:
    with Client(folder, "shop") as client:
        client.process.send_signal(signal.SIGINT)
        assert client.process.wait(20) == 130, client.end()
        out, told = client.end()
    assert out == ""
    assert told.endswith("\nStopped.\n")
    assert "Traceback" not in told


@pytest.mark.heavy
def test_the_end_of_stdin_ends_a_call_that_runs(folder: Path, tmp_path: Path) -> None:
    note = tmp_path / "note"
    with Client(folder, "shop:waits") as client:
        arguments = {"name": "waits", "arguments": {"path": str(note)}}
        client.write({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": arguments})
        deadline = time.monotonic() + 20
        while not note.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        _, told = client.end()
        assert client.process.returncode == 0
    assert note.read_text() == "cancelled"
    assert "Traceback" not in told


# --- over HTTP ---


@contextlib.contextmanager
def http_process(folder: Path, *targets: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = started(folder, *targets, "--http", "--port", "0")
    try:
        assert process.stdout is not None
        while (line := process.stdout.readline()) and "Offering" not in line:
            pass
        found = re.search(r"at (http://127\.0\.0\.1:\d+/mcp); Ctrl-C ends it", line)
        assert found, line
        yield found[1], process
    finally:
        process.kill()
        process.communicate()


async def test_over_http(folder: Path) -> None:
    with http_process(folder, "shop") as (url, process):
        async with tools_from_mcp(url=url) as tools, tools_from_mcp(url=url, prefix="b_") as others:
            found = by_name([*tools, *others])
            answers = await asyncio.gather(
                found["grade"](essay="x"), found["b_count"](text="x"), found["numbers"](topic="x")
            )
            assert answers == [{"points": 4, "why": "Fine: 好"}, 7, [1, 2, 3]]
            with pytest.raises(ToolFailed, match="ServerUnavailable"):
                await found["broken"](text="x")
            llm = ScriptedLLM(tool_calls(("grade", {"essay": "x"})), "done")

            @llm_function(llm_interface=llm, toolkit=tools)
            def judge(essay: str) -> str:
                """Judge."""

            assert judge("x") == "done"  # sync, inside this running loop
            assert '"points": 4' in str(llm.requests[1][-1]["content"])
        await refuses_other_hosts(url)
        process.send_signal(signal.SIGINT)
        out, told = await asyncio.to_thread(process.communicate, timeout=30)
        assert process.returncode == 130
        assert out.strip() == ""
        assert told.endswith("\nStopped.\n")
        assert "Traceback" not in told
        assert "ResourceWarning" not in told


async def refuses_other_hosts(url: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, **INITIALIZE}
    accept = {"Accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession(headers=accept) as session:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            async with session.post(url, json=body, headers=headers) as reply:
                assert reply.status in {403, 421}
        async with session.post(url, json=body) as reply:
            assert reply.status == 200
        async with session.get(url) as reply:
            assert (reply.status, set(reply.headers["Allow"].split(", "))) == (405, {"POST", "DELETE"})
        async with session.post(url.replace("/mcp", "/other"), json=body) as reply:
            assert reply.status == 404


@llm_function(llm_interface=ScriptedLLM("hi", repeat=True))
async def greet(name: str) -> str:
    """Greet."""


async def test_inside_a_program_that_has_a_loop() -> None:
    at: asyncio.Queue[str] = asyncio.Queue()
    serving = asyncio.create_task(serve_http({"greet": greet}, announce=at.put_nowait))
    async with tools_from_mcp(url=await at.get()) as tools:
        assert await tools[0](name="Bo") == "hi"
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    assert len(asyncio.all_tasks()) == 1


def test_other_machines_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"on this machine only.*not at '0\.0\.0\.0'"):
        serve_mcp({"greet": greet}, http=True, host="0.0.0.0", port=0)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError, match=re.escape(install_line("mcp"))):
        serve_mcp({"greet": greet}, http=True, port=0)
