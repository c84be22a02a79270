"""The loop on each wire: its last turn, pauses, refused state, another wire, other models in the middle of a conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from SimpleLLMFunc import FallbackLLM
from SimpleLLMFunc.base.events import RunFinished
from SimpleLLMFunc.base.run import watching
from SimpleLLMFunc.errors import ToolCallLimitExceeded
from SimpleLLMFunc.interface.anthropic import Anthropic
from tests.support.functions import async_decorated, chat, weather
from tests.support.seen import Seen
from tests.support.server import LoopbackServer
from tests.support.services import MessagesService
from tests.support.wires import MODELS, SERVICES, made

NEW = ("messages", "responses", "gemini")
CALL = {"calls": [("weather", {"city": "Rome"})], "thinking": "hm"}


def model(name: str, server: LoopbackServer, model_name: str = "") -> Any:
    own = {**MODELS, "chat": "gpt-5.6", "messages": "claude-sonnet-4-5"}
    return made(name, server, model=model_name or own[name])


def forecaster(llm, **options):
    return async_decorated(str, llm, toolkit=[weather], **options)


# --- the last turn ---


NONE: dict[str, Any] = {
    "messages": lambda body: body["tool_choice"] == {"type": "none"},
    "responses": lambda body: body["tool_choice"] == "none",
    "gemini": lambda body: body["toolConfig"]["functionCallingConfig"] == {"mode": "NONE"},
}


@pytest.mark.parametrize(("name", "model_name"), [*((name, "") for name in NEW), ("messages", "claude-opus-5-5")])
async def test_the_last_turn_keeps_the_tools_and_says_that_none_may_be_called(name, model_name):
    service = SERVICES[name](CALL, {"texts": ["sun"]})
    async with LoopbackServer(service) as server:
        ask = forecaster(model(name, server, model_name), max_tool_calls=1, thinking="low", tool_choice="auto")
        result = await ask.call("Rome?")
    assert (result.value, result.downgrades) == ("sun", [])
    first, last = service.bodies
    assert json.dumps(first["tools"]) == json.dumps(last["tools"])
    assert not NONE[name](first)
    assert NONE[name](last)


@pytest.mark.parametrize("name", NEW)
async def test_a_function_without_rounds_offers_no_tool(name):
    service = SERVICES[name]({"texts": ["sun"]})
    async with LoopbackServer(service) as server:
        await forecaster(model(name, server), max_tool_calls=0)("Rome?")
    assert "tools" not in service.bodies[0]


# --- pauses ---


@pytest.mark.parametrize("model_name", ["claude-sonnet-4-5", "claude-opus-5-5"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_pause_goes_on_by_itself(stream, model_name):
    paused = {"texts": ["I look it up. "], "pause": True, "thinking": "hm"}
    service = MessagesService(paused, {**paused, "thinking": "more"}, {**CALL, "thinking": "so"}, {"texts": ["sun"]})
    async with LoopbackServer(service) as server:
        ask = forecaster(model("messages", server, model_name), thinking="low")
        if stream:
            assert "".join([piece async for piece in ask.stream("Rome?")]).endswith("sun")
        else:
            result = await ask.call("Rome?")
            assert result.downgrades == []
            assert (result.value, [call.function.name for call in result.tool_calls]) == ("sun", ["weather"])
    assert len(service.bodies) == 4
    assert {json.dumps(body["tools"]) for body in service.bodies} == {json.dumps(service.bodies[0]["tools"])}
    assert service.bodies[1]["messages"][-1]["content"][-1]["type"] == "server_tool_use"


async def test_pauses_count_as_rounds():
    paused = {"texts": ["I look it up. "], "pause": True}
    service = MessagesService(*[paused] * 4)
    async with LoopbackServer(service) as server:
        with pytest.raises(ToolCallLimitExceeded):
            await forecaster(model("messages", server), max_tool_calls=2)("Rome?")
    assert len(service.bodies) == 3


# --- re-asks ---


@pytest.mark.parametrize("name", NEW)
async def test_a_bad_answer_is_shown_again_as_text_without_its_state(name):
    said = {"texts": ["two"], "thinking": "hm", "opaque": True}
    service = SERVICES[name](said, {"texts": ["2"]})
    async with LoopbackServer(service) as server:
        count = async_decorated(int, model(name, server), output_mode="prompt")
        assert await count("a b") == 2
    again = json.dumps(service.bodies[1])
    assert '"two"' in again
    for state in ("encrypted", "redacted", "signature", "thoughtSignature", 'reasoning"', "final_answer"):
        assert state not in again.replace("reasoning.encrypted_content", "")


# --- state that a service refuses ---


STATE = {"messages": "signature", "responses": "gAAA", "gemini": "thoughtSignature"}
REFUSALS = [
    ("messages", "messages.1.content.0: The block is bound to a different conversation."),
    ("messages", "messages.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"),
    ("messages", "messages.1.content.0: Invalid `signature` in `thinking` block"),
    ("responses", "Reasoning input items can only be provided to a reasoning or computer use model."),
    ("responses", "The encrypted content for item rs_1 could not be verified."),
    ("responses", "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
    ("responses", "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."),
    ("gemini", "Corrupted thought signature."),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "said"), REFUSALS)
async def test_state_that_is_refused_is_left_out_once(name, said, stream, caplog):
    service = SERVICES[name](CALL, {"texts": ["sun"]})

    def handler(request):
        body = json.dumps(request.body).replace("skip_thought", "")
        own = STATE[name] in body.replace('"thoughtSignature": "_signature_validator"', "")
        return service.error(400, said) if own else service(request)

    async with LoopbackServer(handler) as server:
        ask = forecaster(model(name, server), thinking="low")
        if stream:
            assert "".join([piece async for piece in ask.stream("Rome?")]) == "sun"
            assert "provider state: what was refused is left out" in caplog.text
        else:
            result = await ask.call("Rome?")
            assert result.value == "sun"
            assert ("provider state: what was refused is left out", said) in result.downgrades
        assert len(server.requests) == 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SERVICES)
async def test_a_chat_with_tools_goes_on_from_a_stored_history(name, stream):
    two = {"calls": [("weather", {"city": city}) for city in ("Rome", "Oslo")], "thinking": "two", "opaque": True}
    service = SERVICES[name](two, {"texts": ["sun"], "thinking": "so"}, CALL, {"texts": ["sun again"]})
    async with LoopbackServer(service) as server:
        talk, stored = chat(model(name, server), toolkit=[weather], stream=stream), []
        for question, answer in (("Rome and Oslo?", "sun"), ("Rome?", "sun again")):
            pairs = [pair async for pair in talk(stored, question)]
            assert "".join(text for text, _ in pairs) == answer
            stored = json.loads(json.dumps(pairs[-1][1]))
    assert [json.dumps(body).count("sun in Rome") for body in service.bodies] == [0, 1, 1, 2]


# --- what thinking is bound to ---


def wind(city: str) -> str:
    """Tell the wind of a city."""
    return f"none in {city}"


def shortened(history: list[Any]) -> list[Any]:
    return history[-2:]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("changed", "is_left_out"),
    [
        ({}, False), ({"toolkit": [weather, wind]}, True), ({"toolkit": []}, True), ({"window": 1_200}, True),
        ({"window": 1_000, "compact": shortened}, True),
    ],
)  # fmt: skip
async def test_thinking_stays_out_where_what_it_is_bound_to_has_changed(changed, is_left_out, stream):
    said = [{**(CALL if at == 2 else {"texts": ["sun " * 300]}), "thinking": f"thought {at}"} for at in range(1, 5)]
    service = MessagesService(*said)
    async with LoopbackServer(service) as server:  # which refuses what is bound to something else
        history: list[Any] = []
        for at, how in enumerate(({}, {}, changed)):
            llm = model("messages", server, "claude-opus-5-5")
            if "window" in how:
                llm = Anthropic(llm.model_name, base_url=llm.base_url, api_key="k", context_window=how["window"])
            options = {"toolkit": [weather], **{name: each for name, each in how.items() if name != "window"}}
            talk = chat(llm, stream=stream, thinking="low", max_tokens=200, **options)
            with watching(seen := Seen()):
                async for _, more in talk(history, f"Rome? {at}"):
                    history = json.loads(json.dumps(more))
    assert len(server.requests) == len(service.bodies) == 4  # nothing was refused
    last = json.dumps(service.bodies[-1])
    assert ("thought" not in last) == is_left_out
    assert "Rome? 2" in last
    told = [("provider state: thinking blocks are left out", "what stands before the thinking has changed")]
    assert seen.of(RunFinished)[0].downgrades == (told if is_left_out else [])


# --- a wire that a service asks for ---


SAID = "Function tools with reasoning_effort are not supported for m. To use function tools, use /v1/responses."


# --- other models in the middle of a conversation ---


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("first", "second"), [(a, b) for a in SERVICES for b in SERVICES if a != b])
async def test_the_wire_changes_in_the_middle_of_a_conversation_with_tools(first, second, stream):
    said = {"calls": [("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})], "thinking": "two", "opaque": True}
    one = SERVICES[first](said)
    other = SERVICES[second]({"calls": [("weather", {"city": "Bonn"})], "thinking": "one more"}, {"texts": ["sun"]})

    def breaking(request):
        return one.error(503, "down") if one.bodies else one(request)

    async with LoopbackServer(breaking) as up, LoopbackServer(other) as down:
        ask = forecaster(FallbackLLM(model(first, up), model(second, down)), thinking="low")
        if stream:
            assert "".join([piece async for piece in ask.stream("Where?")]) == "sun"
        else:
            result = await ask.call("Where?")
            assert (result.value, len(result.tool_calls)) == ("sun", 3)
            kinds = {what.partition(":")[0] for what, _ in result.downgrades}
            assert kinds == {"messages": {"thinking"}, "gemini": {"provider state"}}.get(second, set())
    assert (len(one.bodies), len(other.bodies)) == (1, 2)
    assert "sun in Rome" in json.dumps(other.bodies[0])
    assert "sun in Bonn" in json.dumps(other.bodies[1])
