"""What a service sent goes back to it as it came, and what one wire wrote another one can read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.base.messages import build_assistant_response_message
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires import Asked, Received, Wire
from SimpleLLMFunc.interface.wires.messages import MessagesWire
from SimpleLLMFunc.type import ChatCompletion
from tests.interface.wires import test_recordings
from tests.support.referees import CHECKS
from tests.support.services import REPLIES
from tests.support.wires import MODELS, Json

WIRES = {**test_recordings.WIRES, "messages": MessagesWire("h", caches=False)}
NEW = tuple(CHECKS)
PROFILE = Profile()
PNG = "data:image/png;base64,iVBORw0KGgo="

WORDS = st.text(st.sampled_from('aZ0 \n"\\/{}<>é漢字🙂\u2028עم\t'), min_size=1, max_size=12).map(
    lambda text: f"x{text}x"
)
NAMED = ["search", "get_weather", "f-1"]
NAMES = st.sampled_from(NAMED)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["a", "ö", "n"]), WORDS | st.integers(-5, 5) | st.none() | st.lists(WORDS, max_size=2), max_size=2
)
EMPTY = {"type": "object", "properties": {}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": EMPTY}} for name in NAMED]


def sent(name: str, reply: Json) -> list[Json]:
    """What of a reply the service wants to see again."""
    if name == "messages":
        return list(reply["content"])
    return list(reply["output"]) if name == "responses" else list(reply["candidates"][0]["content"]["parts"])


@st.composite
def turns(draw: st.DrawFn) -> list[Json]:
    """A conversation: what the user says, what the model answers to it, and what its tools return."""
    made = []
    for number in range(draw(st.integers(1, 3))):
        calls = draw(st.lists(st.tuples(NAMES, ARGUMENTS), max_size=3))
        texts = draw(st.lists(WORDS, min_size=0 if calls else 1, max_size=2))
        content: Any = draw(WORDS)
        if draw(st.booleans()):
            content = [{"type": "text", "text": content}, {"type": "image_url", "image_url": {"url": PNG}}]
        said = {"number": number, "user": content, "texts": texts, "calls": calls}
        results = [draw(WORDS) for _ in calls]
        made.append({**said, "thinking": draw(st.none() | WORDS), "opaque": draw(st.booleans()), "results": results})
    return made


def streamed(wire: Wire, events: Sequence[Json], received: Received) -> ChatCompletion:
    body = b"".join(b"event: %s\ndata: %s\n\n" % (event.get("type", "").encode(), dumped(event)) for event in events)
    return test_recordings.read_stream(wire, body, len(body), received)


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def conversation(name: str, made: Sequence[Json], *, stream: bool) -> tuple[list[Any], list[Json]]:
    """Play the turns with a service; return the history, stored and loaded, and the replies."""
    wire, (reply_of, events_of) = WIRES[name], REPLIES[name]
    history: list[Any] = [{"role": "system", "content": "Be brief."}]
    replies = []
    for said in made:
        history.append({"role": "user", "content": said["user"]})
        raw = reply_of(said)
        request = wire.request(Asked(history, TOOLS), MODELS[name], PROFILE, stream=stream)
        received = Received("m", kept=request.kept)
        reply = streamed(wire, events_of(raw), received) if stream else wire.reply(dumped(raw), received)
        replies.append(raw)
        history.append(json.loads(json.dumps(build_assistant_response_message(reply))))
        for call, result in zip(reply.tool_calls, said["results"], strict=True):
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})
    history.append({"role": "user", "content": "and?"})
    return history, replies


def model_turns(name: str, body: Mapping[str, Any]) -> list[list[Json]]:
    """What the model said, of a request's body: turn by turn."""
    if name == "messages":
        return [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    if name == "gemini":
        return [content["parts"] for content in body["contents"] if content["role"] == "model"]
    made: list[list[Json]] = []
    was_model = False
    for item in body["input"]:
        is_model = item["type"] in {"reasoning", "function_call"} or item.get("role") == "assistant"
        if is_model and not was_model:
            made.append([])
        if is_model:
            made[-1].append(item)
        was_model = is_model
    return made


def check_goes_back(name: str, made: list[Json], *, stream: bool) -> None:
    history, replies = conversation(name, made, stream=stream)
    before = json.dumps(history)
    request = WIRES[name].request(Asked(history, TOOLS), MODELS[name], PROFILE, stream=stream)
    assert json.dumps(history) == before  # the caller's own is not changed
    assert not request.downgrades
    answers = [message for message in history if message["role"] == "assistant"]
    for raw, turn, message in zip(replies, model_turns(name, request.body), answers, strict=True):
        if "provider_state" in message:
            assert turn == sent(name, raw)
        else:
            assert said_in(name, turn) == said_in(name, sent(name, raw))


def said_in(name: str, turn: Sequence[Json]) -> tuple[str, list[Any]]:
    """The text of a turn, and its calls."""
    if name == "messages":
        calls = [(block["name"], block["input"]) for block in turn if block["type"] == "tool_use"]
        return "".join(block["text"] for block in turn if block["type"] == "text"), calls
    if name == "gemini":
        called = [part["functionCall"] for part in turn if "functionCall" in part]
        text = "".join(part.get("text", "") for part in turn if not part.get("thought"))
        return text, [(call["name"], call["args"]) for call in called]
    calls = [(item["name"], json.loads(item["arguments"])) for item in turn if item["type"] == "function_call"]
    parts = [part for item in turn if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in parts), calls


def check_is_read(name: str, other: str, made: list[Json]) -> Json:
    """Another wire takes the history: nothing that was said is lost, and nothing of the first wire goes along."""
    history, _ = conversation(name, made, stream=False)
    body = WIRES[other].request(Asked(history, TOOLS), MODELS[other], PROFILE, stream=False).body
    shown = json.dumps(body, ensure_ascii=False)
    assert "provider_state" not in shown
    assert not any(word in shown for word in ("sig==", "gAAA", "b3BhcXVl", "c2ln", "ZW5k"))
    if other != "chat":
        most = 1 if name == "gemini" else None
        wanted = [("".join(said["texts"][:most]), list(map(tuple, said["calls"]))) for said in made]
        assert [said_in(other, turn) for turn in model_turns(other, body)] == wanted
    for said in made:
        asked = said["user"] if isinstance(said["user"], str) else said["user"][0]["text"]
        for text in (asked, *said["results"]):
            assert json.dumps(text, ensure_ascii=False)[1:-1] in shown
    return body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", NEW)
@given(made=turns())
@settings(max_examples=30)
def test_what_came_goes_back(name, stream, made):
    check_goes_back(name, made, stream=stream)


@pytest.mark.parametrize("other", WIRES)
@pytest.mark.parametrize("name", NEW)
@given(made=turns())
@settings(max_examples=10)
def test_another_wire_reads_the_history(name, other, made):
    if name != other:
        check_is_read(name, other, made)


@pytest.mark.parametrize("name", CHECKS)
@given(made=turns())
@settings(max_examples=8)
def test_the_referees_take_what_goes_back(name, made):
    history, _ = conversation(name, made, stream=False)
    CHECKS[name](WIRES[name].request(Asked(history, TOOLS), MODELS[name], PROFILE, stream=False).body)
    other = {"messages": "gemini", "responses": "messages", "gemini": "responses"}[name]
    CHECKS[name](check_is_read(other, name, made))


THOUGHT = {"type": "thinking", "thinking": "", "signature": "s"}
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
ITEMS = [{"type": "reasoning", "id": "r"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}]
PARTS = [{"text": "a", "thought": True}, {"text": "b", "thought": False}, {"text": "", "thoughtSignature": "s"}]
ODD = {
    "messages": (
        {"content": [THOUGHT, {"type": "text", "text": ""}, CALL], "stop_reason": "tool_use"}, [THOUGHT, CALL],
    ),
    "responses": ({"status": "completed", "output": ITEMS}, ITEMS),
    "gemini": ([{"candidates": [{"content": {"parts": PARTS}, "finishReason": "STOP"}]}] * 2, PARTS * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_what_is_odd_goes_back_as_the_service_takes_it(name):
    (raw, back), question = ODD[name], {"role": "user", "content": "a"}
    asking = lambda *talk: WIRES[name].request(Asked([*talk], TOOLS), MODELS[name], PROFILE, stream=False)
    received = Received("m", kept=asking(question).kept)
    answer: Any = build_assistant_response_message(WIRES[name].reply(dumped(raw), received))
    request = asking(question, answer)
    assert (model_turns(name, request.body), request.downgrades) == ([back], [])
    call = {"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}
    for change in ({"content": "other"}, {"tool_calls": [call]}):
        (what, why), *_ = asking(question, {**answer, **change}).downgrades
        assert (what.partition(":")[0], why) == ("provider state", "the message was changed after it had come")
    assert bool(asking({**question, "content": "b"}, answer).downgrades) is (name == "messages")  # which binds it


@pytest.mark.heavy
@pytest.mark.timeout(900)  # about 13 ms each
@pytest.mark.parametrize("name", NEW)
@given(made=turns(), stream=st.booleans(), other=st.sampled_from(sorted(WIRES)))
@settings(max_examples=10_000 if settings.get_current_profile_name() == "faults-long" else 2_000)
def test_thousands_of_conversations(name, made, stream, other):
    check_goes_back(name, made, stream=stream)
    if other != name:
        check_is_read(name, other, made)
