"""`output_mode="choice"`: the labels are told, one comes back, on a service with a grammar, a schema, or neither."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import pytest

from SimpleLLMFunc import ConfigError, FallbackLLM, LocalModel, OpenAICompatible
from tests.support.functions import async_decorated, weather
from tests.support.server import LoopbackServer, completion, error_answer, json_answer, text_answer

TOPICS = Literal["card", "card_arrival", "7", "退款"]


def model(server, profile, **options):
    return OpenAICompatible("m", api_key="k", base_url=server.base_url, profile=profile, max_retries=0, **options)


def topic_of(llm, returns=TOPICS, **options):
    return async_decorated(returns, llm, **{"output_mode": "choice", **options})


@pytest.mark.parametrize(
    ("profile", "form", "said"),
    [("llama.cpp", "grammar", "card"), ("openai", "schema", '{"value": "card"}'), ("groq", "words", "Card.")],
)
async def test_the_labels_stand_in_the_prompt_and_hold_the_answer(profile, form, said):
    async with LoopbackServer(lambda _: json_answer(completion(said))) as server:
        topic = topic_of(model(server, profile, wire="chat"), examples=[("Where is it?", "card_arrival")])
        result = await topic.call("My card?")
    (request,) = server.requests
    body = request.body
    assert (result.value, result.output_mode) == ("card", "choice")
    assert all(label in body["messages"][0]["content"] for label in ("card_arrival", "card", "7", "退款"))
    shown = [each["content"] for each in body["messages"] if each["role"] == "assistant"]
    assert shown == ['{"value": "card_arrival"}' if form == "schema" else "card_arrival"]
    assert body.get("grammar") == ('root ::= "card" | "card_arrival" | "7" | "退款"' if form == "grammar" else None)
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    wanted = ["card", "card_arrival", "7", "退款"] if form == "schema" else None
    assert schema.get("properties", {}).get("value", {}).get("enum") == wanted


async def test_what_is_no_label_is_asked_again_and_a_refused_schema_is_left_out():
    def answer(request):
        if "response_format" in request.body:
            return error_answer(400, "Invalid schema for response_format 'Literal': no.")
        return json_answer(completion("none of these" if len(request.body["messages"]) < 3 else "退款"))

    async with LoopbackServer(answer) as server:
        result = await topic_of(model(server, "openai", wire="chat")).call("Money back!")
    assert result.value == "退款"
    assert [attempt.text for attempt in result.attempts] == ["none of these", "退款"]
    assert [what for what, _ in result.downgrades] == ["output mode: choice in words instead of a schema"]
    assert len(server.requests) == 3


async def test_auto_takes_it_for_a_small_model_alone():
    async with LoopbackServer(lambda _: json_answer(completion('{"value": "card"}'))) as server:
        plain = topic_of(model(server, "llama.cpp", wire="chat"), output_mode="auto")
        assert (await plain.call("x")).output_mode == "native"
        behind_two = FallbackLLM(model(server, "llama.cpp", wire="chat"), model(server, "openai", wire="chat"))
        assert "grammar" not in topic_of(behind_two).preview("x").body  # one of them takes none
    assert topic_of(LocalModel(), output_mode="auto").preview("x").output_mode == "choice"
    tools = {"output_mode": "auto", "toolkit": [weather]}
    assert topic_of(LocalModel(), **tools).preview("x").output_mode == "native"
    own = topic_of(LocalModel(), system_prompt_template="Choose: {function_description}").preview("x")
    assert "card_arrival" in own.messages[0]["content"]


@pytest.mark.parametrize(
    ("returns", "options", "said"),
    [
        (int, {}, "output_mode='choice' is for"), (list[bool], {}, "output_mode='choice' is for"),
        (Literal["1", 1], {}, "differ from each other"), (AsyncIterator[bool], {}, "output_mode='choice' is for"),
        (bool, {"toolkit": [weather]}, "takes no toolkit"),
    ],
)  # fmt: skip
def test_what_is_no_choice_is_an_error_at_decoration(returns, options, said):
    with pytest.raises(ConfigError, match=said):
        topic_of(LocalModel(), returns, **options)


async def test_a_type_with_one_label_asks_nothing():
    async with LoopbackServer(lambda _: error_answer(500, "never")) as server:
        only = topic_of(model(server, "openai", wire="chat"), Literal["card"])
        result = await only.call("x")
        assert (result.value, result.tries, result.usage.input_tokens) == ("card", 0, 0)
        assert [event async for event in only.events("x")][-1].reply.text == "card"
        assert [value async for value in only.stream("x")] == ["card"]
    assert server.requests == []


async def test_a_stream_shows_no_beginning_of_a_label():
    async with LoopbackServer(text_answer("card_arrival")) as server:
        topic = topic_of(model(server, "llama.cpp", wire="chat"))
        assert [value async for value in topic.stream("x")] == ["card_arrival"]
