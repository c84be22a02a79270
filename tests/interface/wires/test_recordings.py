"""Published and recorded replies of each service, read as we read them: tests/data/wires says where each comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from SimpleLLMFunc.errors import ProviderError
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.wires import CHAT, Received, ReplyAssembler, Wire, citations_in, server_tools_in
from SimpleLLMFunc.interface.wires.gemini import GeminiWire
from SimpleLLMFunc.interface.wires.messages import MessagesWire
from SimpleLLMFunc.interface.wires.responses import ResponsesWire
from SimpleLLMFunc.type import ChatCompletion
from tests.support.referees import CHECKS, is_of_today

DATA = Path(__file__).parents[2] / "data" / "wires"
WIRES: dict[str, Wire] = {each.name: each for each in (CHAT, MessagesWire("h"), ResponsesWire("h"), GeminiWire("h"))}
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text())
FILES = [
    f"{wire}/{path.name}" for wire in WIRES for path in sorted((DATA / wire).iterdir()) if path.name[:8] != "request-"
]
STREAMS = [file for file in FILES if file.endswith(".sse")]


def read_stream(wire: Wire, body: bytes, size: int, received: Received | None = None) -> ChatCompletion:
    decoder, chunks = wire.decoder(received or Received("m")), []
    for start in range(0, len(body), size):
        chunks += decoder.feed(body[start : start + size])
        if decoder.is_done:
            break
    return ReplyAssembler([*chunks, *decoder.close()]).completion()


def read(file: str, size: int = 1 << 30) -> ChatCompletion:
    wire, body = WIRES[file.split("/", maxsplit=1)[0]], (DATA / file).read_bytes()
    if file.endswith(".sse"):
        return read_stream(wire, body, size)
    data = json.loads(body)
    if "status" in data and isinstance(data.get("body"), dict):
        received = Received("m", status=data["status"], headers=data.get("headers") or {})
        raise wire.error(json.dumps(data["body"]).encode(), received)
    if "response" in data and "request" in data:
        body = json.dumps(data["response"]).encode()
    return wire.reply(body, Received("m"))


def facts(file: str, size: int = 1 << 30) -> dict[str, Any]:
    """What we make of a recording, in a form that can be read in a review."""
    try:
        reply = read(file, size)
    except (AttemptFailed, ProviderError) as error:
        inner: Any = getattr(error, "error", error)
        said: dict[str, Any] = {
            "error": type(inner).__name__, "again": getattr(error, "again", None),
            "wait": getattr(error, "retry_after", None) if isinstance(error, AttemptFailed) else None,
            "kind": "quota" if getattr(inner, "kind", "") == "quota" else None,
            "partial": len(getattr(inner, "partial", "")) or None,
        }  # fmt: skip
        return {name: value for name, value in said.items() if value is not None}
    message, usage = reply.message, reply.usage
    state, said = message.extra.get("provider_state"), {**message.extra, "content": reply.text}
    is_cut, calls = reply.finish_reason == "length", [call.function for call in reply.tool_calls]
    made: dict[str, Any] = {
        "finish": reply.finish_reason,
        "text": [len(reply.text), reply.text[:30]],
        "calls": [call.name if is_cut else [call.name, json.loads(call.arguments)] for call in calls],
        "thinking": len(message.reasoning_content or ""),
        "refusal": message.refusal,
        "state": [next(iter(item)) if "type" not in item else item["type"] for item in state["items"]] if state else None,
        "server tools": [[tool.type, str(tool.input)[:30], str(tool.output)[:30]] for tool in server_tools_in([said])],
        "citations": [[each.url[:30], each.title[:30], each.text[:30]] for each in citations_in(said)],
        "is": [reply.id[:12], reply.model, len(str(reply.created or ""))],
        "usage": usage and [getattr(usage.tokens, f"{each}_tokens") for each in ("input", "output", "cached", "reasoning")],
    }  # fmt: skip
    return {name: value for name, value in made.items() if value not in (None, [], 0)}


@pytest.mark.parametrize("file", FILES)
def test_a_recording_is_read_as_it_is_meant(file):
    assert facts(file) == EXPECTED[file]


@pytest.mark.parametrize("file", STREAMS)
def test_where_the_bytes_of_a_stream_are_cut_does_not_matter(file):
    assert {json.dumps(facts(file, size)) for size in (1, 7, 1000)} == {json.dumps(EXPECTED[file])}


# An old model of Gemini named its finish reason in each event, and nothing else tells the last one.
@pytest.mark.parametrize("file", [file for file in STREAMS if EXPECTED[file].get("finish") and "utf8" not in file])
def test_a_stream_that_breaks_off_is_never_an_answer(file):
    wire, body = WIRES[file.split("/")[0]], (DATA / file).read_bytes()
    whole = read_stream(wire, body, 1 << 30)
    step = max(1, len(body) // 40)
    for end in range(0, len(body), step):
        try:
            reply = read_stream(wire, body[:end], 1 << 30)
        except (AttemptFailed, ProviderError):
            continue
        # Read to the end of the answer: what was cut off is what may follow it, such as the last counts.
        assert (reply.text, reply.finish_reason) == (whole.text, whole.finish_reason)


@pytest.mark.parametrize("wire", CHECKS)
@pytest.mark.parametrize("name", ["tool-round", "schema-media"])
def test_the_referees_take_the_published_requests(wire, name):
    if wire == "responses" and not is_of_today("openai", 3):
        pytest.skip("it knows less than the service does")
    body = json.loads((DATA / wire / f"request-{name}.json").read_text())
    CHECKS[wire](body)
    with pytest.raises((AssertionError, ValueError, KeyError)):
        CHECKS[wire]({**body, "not_a_field": 1})
