import pytest

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.profile import GENERIC, PROFILES, Profile
from SimpleLLMFunc.interface.wires import Asked
from SimpleLLMFunc.interface.wires.request_body import (
    build_body,
    check_base_url,
    endpoint,
    number,
    taken_apart,
)

MESSAGES = [{"role": "user", "content": "x"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def body(profile=GENERIC, *, tools=None, response_format=None, stream=False, **params):
    return build_body("m", Asked(MESSAGES, tools, response_format, params), profile, stream=stream)


def test_a_plain_body_holds_nothing_that_was_not_asked_for():
    assert body() == {"model": "m", "messages": MESSAGES}
    assert body(tools=[], temperature=None) == {"model": "m", "messages": MESSAGES}


def test_everything_given_is_in_the_body():
    sent = body(tools=[TOOL], response_format={"type": "json_object"}, temperature=0, seed=1)
    assert sent["tools"] == [TOOL]
    assert sent["response_format"] == {"type": "json_object"}
    assert (sent["temperature"], sent["seed"]) == (0, 1)
    assert "stream" not in sent


def test_a_stream_asks_for_its_usage_where_the_provider_tells_it():
    assert body(stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body(Profile(stream_usage=False), stream=True)
    assert body(stream=True, stream_options={"include_usage": False})["stream_options"] == {"include_usage": False}


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_limit_of_tokens_has_the_providers_name(name):
    assert body(PROFILES["openai"], **{name: 5})["max_completion_tokens"] == 5
    assert "max_tokens" not in body(PROFILES["openai"], **{name: 5})
    assert body(GENERIC, **{name: 5})["max_tokens"] == 5


def test_tool_options_go_out_only_with_tools():
    assert "tool_choice" not in body(tool_choice="auto", parallel_tool_calls=False)
    assert "parallel_tool_calls" not in body(tool_choice="auto", parallel_tool_calls=False)
    assert body(tools=[TOOL], tool_choice="auto")["tool_choice"] == "auto"
    assert "tool_choice" not in body(Profile(tool_choice=False), tools=[TOOL], tool_choice="auto")


def test_extra_body_and_timeout_are_taken_apart():
    given = {"a": 1, "b": None, "extra_body": {"c": 2, "a": None}, "timeout": 5}
    assert taken_apart(given) == ({"a": 1}, {"c": 2, "a": None}, 5)
    assert taken_apart({}) == ({}, {}, None)


def test_what_goes_out_always_stands_under_what_a_call_gives():
    always = {"a": 1, "b": 2, "extra_body": {"c": 3, "d": 4}}
    assert taken_apart({"a": None, "extra_body": {"d": 5}}, always) == ({"b": 2}, {"c": 3, "d": 5}, None)


@pytest.mark.parametrize("params", [{"timeout": 0}, {"timeout": "5"}, {"timeout": True}])
def test_what_cannot_be_taken_apart_is_refused(params):
    with pytest.raises(UsageError):
        taken_apart(params)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://x.example/v1", "https://x.example/v1"),
        (" https://x.example/v1/// ", "https://x.example/v1"),
        ("http://localhost:80/", "http://localhost:80"),
        ("http://[::1]:8000/v1#frag", "http://[::1]:8000/v1"),
        ("https://x.example/v1/?api-version=1", "https://x.example/v1?api-version=1"),
    ],
)
def test_an_address_is_tidied(given, expected):
    assert check_base_url(given) == expected


@pytest.mark.parametrize(
    "given", ["", "x.example/v1", "ftp://x.example", "https://", "http://x:99999", "http://[::1", None, 3]
)
def test_what_is_no_address_is_refused(given):
    with pytest.raises(ConfigError):
        check_base_url(given)


def test_a_password_in_the_address_is_refused_and_not_shown():
    with pytest.raises(ConfigError) as caught:
        check_base_url("https://user:hunter2secret@x.example/v1")
    assert "hunter2" not in str(caught.value)


def test_the_endpoint_keeps_the_query():
    assert endpoint("https://x.example/v1?a=1", "/chat/completions") == "https://x.example/v1/chat/completions?a=1"
    assert endpoint("https://x.example", "/chat/completions") == "https://x.example/chat/completions"


def test_numbers_are_checked():
    assert number("n", 0, least=0) == 0
    assert number("n", 1.5, above=0) == 1.5
    for value in (-1, float("nan"), float("inf"), "1", True, None):
        with pytest.raises(ConfigError, match="at least 0"):
            number("n", value, least=0)
    with pytest.raises(ConfigError, match="above 0"):
        number("n", 0, above=0)
