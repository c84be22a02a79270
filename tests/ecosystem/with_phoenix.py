# /// script
# dependencies = ["arize-phoenix", "SimpleLLMFunc[otel]"]
# ///
"""`setup_tracing` with a service name: a run with a tool and a repaired answer is sent to it, and read back through its API."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function, watching
from SimpleLLMFunc.observability.otel.setup import setup_tracing


class Place(BaseModel):
    """Where a book stands."""

    shelf: int
    free: bool


def search(query: str) -> str:
    """Search the catalogue."""
    return json.dumps({"shelf": 12, "query": query})


@llm_function(OpenAICompatible("gpt-4o-mini"), toolkit=[search], temperature=0.2)
async def find_book(topic: str) -> Place:
    """Find a book about the topic."""


async def send(url: str) -> Any:
    provider = setup_tracing(url, service_name="shop", capture_content=True)
    answers({"calls": [["search", {"query": "tides"}]]}, '{"shelf": "12", "free": true}')
    with watching(session_id="one", user_id="ann"):
        result = await find_book.call("tides")
    provider.shutdown()
    return result


def read(path: str) -> Any:
    with urllib.request.urlopen(f"{url}/v1/projects/shop/{path}", timeout=30) as reply:
        return json.load(reply)["data"]


def until(what: str, look: Any) -> Any:
    """Return what `look` finds, after some time."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        check("Phoenix has ended", process.poll(), None)
        try:
            if found := look():
                return found
        except OSError:
            pass
        time.sleep(0.3)
    raise SystemExit(f"{what} has not come: {Path('log.txt').read_text(errors='replace')[-3000:]}")


with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
    port, grpc_port = one.getsockname()[1], other.getsockname()[1]
url = f"http://127.0.0.1:{port}"
settings = {
    "WORKING_DIR": str(Path.cwd()),
    "HOST": "127.0.0.1",
    "PORT": str(port),
    "GRPC_PORT": str(grpc_port),
    "TELEMETRY_ENABLED": "false",
    "ALLOW_EXTERNAL_RESOURCES": "false",
}
environment = {**os.environ, **{f"PHOENIX_{name}": value for name, value in settings.items()}}
with Path("log.txt").open("w") as log:
    command = [sys.executable, "-m", "phoenix.server.main", "serve"]
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
until("Phoenix", lambda: urllib.request.urlopen(f"{url}/healthz", timeout=5).close() or True)
result = asyncio.run(send(url))
spans = until("the run", lambda: len(found := read("spans?limit=100")) == 4 and found)
kinds = {kind: [span for span in spans if span["span_kind"] == kind] for kind in ("AGENT", "LLM", "TOOL")}
(agent,), models, (tool,) = kinds.values()
facts = agent["attributes"]
check("the run", (agent["name"], facts["simplellmfunc.trace_id"]), ("invoke_agent find_book", result.trace_id))
check("its arguments", (json.loads(facts["input.value"]), facts["user.id"]), ({"topic": "tides"}, "ann"))
check(
    "its value",
    (json.loads(facts["output.value"]), result.value),
    ({"shelf": 12, "free": True}, Place(shelf=12, free=True)),
)
check("the repair", [event["name"] for event in agent["events"]], ["simplellmfunc.repair"])
check("what stands below it", {each["parent_id"] for each in [*models, tool]}, {agent["context"]["span_id"]})
tokens = [sum(each["attributes"][f"llm.token_count.{kind}"] for each in models) for kind in ("prompt", "completion")]
check("tokens", tokens, [result.usage.input_tokens, result.usage.output_tokens])
check("the tool", (tool["attributes"]["tool.name"], tool["attributes"]["tool.parameters.query"]), ("search", "tides"))
(last,) = [each["attributes"] for each in models if "llm.input_messages.3.message.role" in each["attributes"]]
check("what the model read", last["llm.input_messages.3.message.role"], "tool")
check("the answer", last["llm.output_messages.0.message.content"], '{"shelf": "12", "free": true}')
check("errors", [each["status_message"] for each in spans if each["status_code"] == "ERROR"], [])
check("sessions", [each["session_id"] for each in read("sessions")], ["one"])
process.kill()
seen(
    f"4 spans in the project of the service: the function, two model calls with {sum(tokens)} tokens, the tool; one session"
)
