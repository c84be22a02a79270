"""A real run is sent to a real tracing service and read back: ``python -m tests.release.phoenix``; takes some minutes.

Phoenix comes from the package index, into an environment of its own (``--environment FOLDER`` keeps it for the next
time); it is started on loopback, with its own folder. With ``--local`` the model inside this process is asked too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from SimpleLLMFunc import LocalModel, OpenAICompatible, llm_function, watching
from SimpleLLMFunc.observability.otel.setup import setup_tracing
from tests.support.server import LoopbackServer

INSTALL_SECONDS = 600
START_SECONDS = 180
SEEN_SECONDS = 30
SESSION = "release-check"


class Failure(Exception):
    """Phoenix does not show what was sent, or could not be had."""


class Place(BaseModel):
    """Where a book stands."""

    shelf: int
    free: bool


def interpreter(home: Path) -> Path:
    """Return a Python that has Phoenix, in `home`."""
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "arize-phoenix"]
    try:
        done = subprocess.run(install, timeout=INSTALL_SECONDS, check=False, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        raise Failure(f"Phoenix could not be installed in {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise Failure(f"Phoenix could not be installed:\n{done.stderr[-3000:]}")
    return python


@contextlib.contextmanager
def phoenix(python: Path, work: Path) -> Iterator[str]:
    """Run Phoenix, and give its address."""
    port, grpc_port = free_port(), free_port()
    log = work / "phoenix.log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PHOENIX_", "PYTHON"))}
    environment |= {
        "PHOENIX_WORKING_DIR": str(work),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc_port),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [python, "-m", "phoenix.server.main", "serve"], env=environment, stdout=out, stderr=out, cwd=work
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_up(url, process, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Failure(f"Phoenix ended at once:\n{log.read_text(errors='replace')[-3000:]}")
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
            return
        time.sleep(0.5)
    raise Failure(f"Phoenix did not start in {START_SECONDS} s:\n{log.read_text(errors='replace')[-3000:]}")


def search(query: str) -> str:
    """Search the catalogue."""
    return json.dumps({"shelf": 12, "query": query})


async def send() -> tuple[str, int, int]:
    """Make a run with a tool and a repaired answer; return its trace id and the tokens it took."""
    async with LoopbackServer() as server:
        server.reply_tool_calls([("search", {"query": "tides"})])
        server.reply('{"shelf": "12", "free": true}')
        llm = OpenAICompatible("gpt-4o-mini", base_url=server.base_url)

        @llm_function(llm_interface=llm, toolkit=[search], temperature=0.2)
        async def find_book(topic: str) -> Place:
            """Find a book about the topic."""
            raise NotImplementedError

        with watching(session_id=SESSION, user_id="ann"):
            result = await find_book.call("tides")
    if result.value != Place(shelf=12, free=True):
        raise Failure(f"the run itself gave {result.value!r}")
    return result.trace_id, result.usage.input_tokens, result.usage.output_tokens


async def send_local() -> tuple[str, int, int]:
    """The same with the model inside this process, streamed."""

    @llm_function(llm_interface=LocalModel(seed=1), max_tokens=40)
    async def greet(name: str) -> str:
        """Greet the person in one sentence."""
        raise NotImplementedError

    with watching(session_id=SESSION):
        result = await greet.call("Ann")
    return result.trace_id, result.usage.input_tokens, result.usage.output_tokens


def read(url: str, path: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/v1/projects/release-check/{path}", timeout=30) as reply:
        return json.load(reply)["data"]


def check(url: str, sent: tuple[str, int, int]) -> None:
    """Compare what Phoenix shows with what was sent.

    Raises:
        Failure: something is not shown.
    """
    trace_id, input_tokens, output_tokens = sent
    end = time.monotonic() + SEEN_SECONDS
    root: dict[str, Any] | None = None
    while root is None:
        spans = read(url, "spans?limit=1000")
        root = next((span for span in spans if span["attributes"].get("simplellmfunc.trace_id") == trace_id), None)
        if root is None and time.monotonic() > end:
            raise Failure(f"no span of the run {trace_id} has come")
        time.sleep(0.2)
    spans = [span for span in spans if span["context"]["trace_id"] == root["context"]["trace_id"]]
    inner = [span for span in spans if span is not root]
    calls = [span["attributes"] for span in inner if span["span_kind"] == "LLM"]
    shown = (
        sum(call.get("llm.token_count.prompt", 0) for call in calls),
        sum(call.get("llm.token_count.completion", 0) for call in calls),
    )
    expect("the kind of the function", root["span_kind"], "AGENT")
    expect("tokens", shown, (input_tokens, output_tokens))
    expect("what stands below the function", {span["parent_id"] for span in inner}, {root["context"]["span_id"]})
    expect("errors", [span["status_message"] for span in spans if span["status_code"] == "ERROR"], [])
    [session] = [each for each in read(url, "sessions") if each["session_id"] == SESSION]
    traces = {each["trace_id"] for each in session["traces"]}
    if root["context"]["trace_id"] not in traces:
        raise Failure(f"the session {SESSION!r} does not show the run; it shows {traces}")
    print(f"{root['name']}: {len(spans)} spans, {shown[0]} + {shown[1]} tokens, session {session['session_id']}")


def check_tool(url: str) -> None:
    """Compare the span of the tool, and what the model was shown."""
    spans = read(url, "spans?limit=1000")
    [tool] = [span for span in spans if span["span_kind"] == "TOOL"]
    expect("the tool", tool["name"], "execute_tool search")
    expect("its name", tool["attributes"].get("tool.name"), "search")
    expect("its arguments", tool["attributes"].get("tool.parameters.query"), "tides")
    [last] = [span["attributes"] for span in spans if "llm.input_messages.3.message.role" in span["attributes"]]
    expect("the result the model read", last["llm.input_messages.3.message.role"], "tool")
    expect("the answer", last["llm.output_messages.0.message.content"], '{"shelf": "12", "free": true}')
    [agent] = [span for span in spans if span["name"] == "invoke_agent find_book"]
    expect("the arguments", json.loads(agent["attributes"]["input.value"]), {"topic": "tides"})
    expect("the value", json.loads(agent["attributes"]["output.value"]), {"shelf": 12, "free": True})
    expect("the user", agent["attributes"]["user.id"], "ann")
    expect("the repair", [event["name"] for event in agent["events"]], ["simplellmfunc.repair"])


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise Failure(f"{what}: Phoenix shows {found!r}, and {wanted!r} was sent")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, help="where Phoenix is installed, or will be")
    parser.add_argument("--local", action="store_true", help="ask the model inside this process too")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="phoenix-"))
    try:
        python = interpreter((options.environment or work / "environment").absolute())
        with phoenix(python, work) as url:
            provider = setup_tracing(url, service_name="release-check", capture_content=True)
            sent = [asyncio.run(send())]
            if options.local:
                sent.append(asyncio.run(send_local()))
            provider.shutdown()
            for each in sent:
                check(url, each)
            check_tool(url)
    except Failure as failure:
        print(f"phoenix: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
