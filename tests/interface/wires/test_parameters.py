"""Which parameters a request may carry."""

from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires import CHAT, check_call_params, check_options, extra_headers_of, gives_logprobs
from SimpleLLMFunc.interface.wires.parameters import known_parameters
from tests.interface.wires.test_recordings import WIRES
from tests.support.referees import is_of_today

OURS = {"model", "messages", "tools", "response_format"}
GONE = {"functions", "function_call"}  # tools have taken their place


@pytest.mark.skipif(not is_of_today("openai", 3), reason="it knows less than services do")
def test_the_chat_wire_knows_what_the_openai_package_does():
    theirs = set(CompletionCreateParamsBase.__annotations__) - OURS - GONE
    assert CHAT.parameters == theirs | {"min_p", "repetition_penalty", "top_k"}


def test_known_is_what_some_wire_knows():
    for wire in WIRES.values():
        assert wire.parameters <= known_parameters()
    assert {"extra_body", "thinking", "safetySettings", "truncation", "betas"} <= known_parameters()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"temprature": 0}, r"no option temprature\. Did you mean temperature\?"),
        ({"shoes": 0}, r"no option shoes\. Did you mean shoe\?"),
        ({"qqqq": 1},
         r"no option qqqq\. A parameter that your service alone knows goes into extra_body={'qqqq': \.{3}}"),
        ({"sock": 1, "seed": 2, "qqqq": 1}, r"no option sock\. Wear it\. There is no option qqqq"),
        ({"timeout": 10}, "deadline="), ({"api_key": "x"}, "constructor of the model"),
        ({"extra_body": [1]}, "mapping"), ({"extra_body": {1: 2}}, "1 in extra_body"),
        ({"extra_body": {"model": "x", "stream": True}}, "model, stream in extra_body"),
        ({"extra_body": {"base_url": "x"}}, "base_url in extra_body"),
    ],
)  # fmt: skip
def test_an_option_that_no_one_knows_is_told(given, said):
    with pytest.raises(ConfigError, match=said):
        check_options(given, ["shoe"], {"sock": "Wear it"})
    check_options({"temperature": 0, "extra_body": {"enable_thinking": True}}, [], {})
    check_options({"extra_body": None}, [], {})


KEY_PLACES = (
    "base_url api_base api_key extra_headers default_headers organization project client extra_query http_client headers "
    "api_key_pool azure_endpoint proxy"
)


@pytest.mark.parametrize("name", KEY_PLACES.split())
def test_a_call_cannot_change_where_the_key_goes(name):
    with pytest.raises(UsageError, match=name):
        check_call_params({name: "x", "temperature": 1})
    with pytest.raises(ConfigError, match=name):
        extra_headers_of({name: "x"})


def test_ordinary_parameters_pass():
    check_call_params({"temperature": 1, "extra_body": {"a": 1}, "timeout": 3, "user": "u"})
    with pytest.raises(UsageError, match="chat_stream"):
        check_call_params({"stream": True})


@pytest.mark.parametrize(
    ("params", "said"),
    [
        *(({"extra_headers": {name: "Bearer sk-CANARY"}}, "key")
          for name in ("Authorization", "api-key", "X-API-Key", "Cookie")),
        *(({"extra_headers": headers}, "from names to texts") for headers in ([1], {"a": 1}, "x")),
        ({"temprature": 0}, "did you mean temperature"),
        ({"model": "x"}, "model in api_params"),
        ({"extra_body": {"messages": []}}, "messages in extra_body"),
    ],
)  # fmt: skip
def test_what_would_go_out_with_every_request_and_cannot_be_meant(params, said):
    with pytest.raises(ConfigError, match=said) as caught:
        extra_headers_of(params)
    assert "CANARY" not in str(caught.value)


def test_headers_are_told_apart_and_a_service_may_know_more_parameters_than_any_wire():
    assert extra_headers_of({"extra_headers": {"X-Title": "t"}, "top_p": 1}) == ({"X-Title": "t"}, {"top_p": 1})
    assert extra_headers_of({}) == ({}, {})
    params = {"enable_thinking": False, "samplers": ["top_k"], "top_a": 0.1}
    assert extra_headers_of(params) == ({}, params)


THINKS = {"model_name": "gpt-5.6"}


@pytest.mark.parametrize(
    ("llm", "params", "most"),
    [
        ({}, {}, 20), ({"profile": Profile("x")}, {}, 0), ({"wire_name": "messages"}, {}, 0), ({"wire_name": "responses"}, {}, 20),
        ({"profile": Profile("x", logprobs=20, grammar=True)}, {}, 20), (THINKS, {"thinking": "off"}, 20), (THINKS, {}, 0),
        ({"profile": Profile("x", logprobs=20, grammar=True), "wire_name": "responses"}, {}, 0), (THINKS, {"thinking": "low"}, 0),
        (THINKS, {"reasoning_effort": "none"}, 20), ({**THINKS, "api_params": {"reasoning_effort": "none"}}, {}, 20),
    ],
)  # fmt: skip
def test_log_probabilities_are_given_by_services_that_have_them_while_a_model_does_not_think(llm, params, most):
    own = {"profile": Profile("x", logprobs=20), "wire_name": "chat", "model_name": "m", "api_params": {}, **llm}
    asked: Any = SimpleNamespace(**own)
    assert gives_logprobs(asked, params) == most
