"""Chat completions: what goes out, a profile's wishes kept; and a wire of a user's own."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.profile import GENERIC, PROFILES, Profile
from SimpleLLMFunc.interface.wires import Asked, ChatCompletionsWire
from SimpleLLMFunc.interface.wires.chat import build_body, wire_messages
from tests.support.server import LoopbackServer

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
KEEPS = Profile(keep_reasoning=True)
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
PART = {"type": "text", "text": "b"}


# --- messages --------------------------------------------------------------------------------------------


def user(text):
    return {"role": "user", "content": text}


def system(text, role="system"):
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([system("s"), user("u"), {"role": "assistant", "content": "a"}, user("v")],) * 2,
        ([user("u"), system("s")], [system("s"), user("u")]), ([system("a"), system("b")], [system("a\n\nb")]),
        ([system("a"), user("u"), system("b", "developer"), system("c")], [system("a\n\nb\n\nc"), user("u")]),
        ([system("a", "developer"), system([PART]), system(""), user("u")],
         [system([{"type": "text", "text": "a"}, PART, {"type": "text", "text": ""}], "developer"), user("u")]),
    ],
)  # fmt: skip
def test_system_messages_stand_first_as_one(messages, expected):
    before = copy.deepcopy(messages)
    assert wire_messages(messages, GENERIC) == expected
    assert messages == before


ODD_CALL = {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}, "sig": "s"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": None}, {"content": ""}), ({}, {"content": ""}), ({"content": None, "tool_calls": [CALL]},) * 2,
        ({"tool_calls": [CALL]}, {"content": None, "tool_calls": [CALL]}),
        ({"content": "x", "tool_calls": None, "refusal": None}, {"content": "x"}),
        ({"content": "x", "extra_content": {"g": 1}},) * 2, ({"content": "x", "tool_calls": []}, {"content": "x"}),
        ({"content": "x", "annotations": [{"type": "url_citation"}]}, {"content": "x"}),  # services refuse those of others
        ({"tool_calls": [{**CALL, "function": {"name": "f", "arguments": ""}}]}, {"content": None, "tool_calls": [CALL]}),
        ({"content": "", "tool_calls": [ODD_CALL]},
         {"content": "", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"x": 1}'}, "sig": "s"}]}),
    ],
)  # fmt: skip
def test_an_assistant_message_has_what_the_wire_wants_and_the_callers_is_not_changed(message, expected):
    before = copy.deepcopy(message)
    (sent,) = wire_messages([{"role": "assistant", **message}], GENERIC)
    assert sent == {"role": "assistant", **expected}
    assert message == before


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_only_where_the_provider_wants_it(name):
    message = {"role": "assistant", "content": "x", name: "hm", "reasoning_details": [1]}
    assert wire_messages([message], KEEPS) == [message]
    assert wire_messages([message], GENERIC) == [{"role": "assistant", "content": "x", "reasoning_details": [1]}]


@pytest.mark.parametrize(
    "messages", [
        [], None, "hello", ["hello"], [{"content": "x"}], [None], [{"role": 3}], {"role": "user"}, [user(3)], [user(["x"])],
])  # fmt: skip
def test_what_is_no_conversation_is_refused(messages):
    with pytest.raises(UsageError):
        Asked.of(messages)


def test_a_function_is_no_tool_of_a_request():
    with pytest.raises(UsageError, match=r"Tool\(function\)\.to_openai_tool"):
        Asked.of([user("x")], tools=[print])


# --- the body --------------------------------------------------------------------------------------------


def body(profile=GENERIC, *, tools=None, response_format=None, stream=False, **params):
    return build_body("m", Asked(HELLO, tools, response_format, params), profile, stream=stream)


def test_a_plain_body_holds_nothing_that_was_not_asked_for():
    assert body() == body(tools=[], temperature=None) == {"model": "m", "messages": HELLO}


def test_a_stream_asks_for_its_usage_where_the_provider_tells_it():
    assert body(stream=True) == {**body(), "stream": True, "stream_options": {"include_usage": True}}
    assert "stream_options" not in body(Profile(stream_usage=False), stream=True)
    assert body(stream=True, stream_options={"include_usage": False})["stream_options"] == {"include_usage": False}


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_limit_of_tokens_has_the_providers_name(name):
    assert body(PROFILES["openai"], **{name: 5})["max_completion_tokens"] == 5
    assert "max_tokens" not in body(PROFILES["openai"], **{name: 5})
    assert body(**{name: 5})["max_tokens"] == 5


def test_tool_options_go_out_only_with_tools():
    assert body(tool_choice="auto", parallel_tool_calls=False) == body()
    assert body(tools=[TOOL], tool_choice="auto")["tool_choice"] == "auto"
    assert "tool_choice" not in body(Profile(tool_choice=False), tools=[TOOL], tool_choice="auto")


# --- a wire of a user's own: `HttpModel` asks it for the path, the headers and the key ----------------------


@dataclass(frozen=True)
class Elsewhere(ChatCompletionsWire):
    """The same body at another place, under another key."""

    def path(self, model_name, *, stream):
        return f"/models/{model_name}:{'stream' if stream else 'whole'}"

    def request(self, asked, model_name, profile, *, stream):
        request = super().request(asked, model_name, profile, stream=stream)
        return type(request)(self.path(model_name, stream=stream), request.body, {"x-version": "7"})

    def auth(self, key):
        return {"x-api-key": key}


class OtherModel(OpenAICompatible):
    wire = Elsewhere()


async def test_the_wire_says_where_with_which_headers_and_which_key():
    async with LoopbackServer() as server:
        llm = OtherModel("m", base_url=server.base_url, api_key="sk-one", max_retries=0)
        assert llm.url() == f"{server.base_url}/models/m:whole"
        assert llm.url(stream=True) == f"{server.base_url}/models/m:stream"
        server.reply_status(500)  # of any path
        with pytest.raises(Exception, match="500"):
            await llm.chat(HELLO)
        request = server.requests[0]
        assert request.path.endswith("/models/m:whole")
        assert (request.headers["x-api-key"], request.headers["x-version"]) == ("sk-one", "7")
        assert "authorization" not in request.headers
