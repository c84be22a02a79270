"""Parameters in the words of each wire, by family of models, under the types of the official SDKs.

Source of what each family takes: the design notes on the wires, sections 9, 10 and 12.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.anthropic import Anthropic
from SimpleLLMFunc.interface.gemini import Gemini
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires import Asked, WireRequest
from SimpleLLMFunc.interface.wires.messages import MessagesWire
from SimpleLLMFunc.interface.wires.responses import ResponsesWire
from tests.interface.wires.test_recordings import WIRES
from tests.support.referees import CHECKS

NEW = tuple(CHECKS)
NEWEST = {"messages": "claude-opus-5-5", "responses": "gpt-5.6", "gemini": "gemini-3.8-flash"}
HELLO: list[Any] = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}
TOOL: Any = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": SCHEMA, "strict": True}}
LOOSE: Any = {"type": "function", "function": {"name": "g"}}


def sent(
    name: str, model: str = "", *, messages: Any = HELLO, caches: bool = True, stream: bool = False, **params: Any
) -> WireRequest:
    tools, schema = params.pop("tools", None), params.pop("response_format", None)
    wire = WIRES[name]
    if not caches:
        wire = ResponsesWire("h", caches=False) if name == "responses" else MessagesWire("h", caches=False)
    asked = Asked(messages, tools, schema, params)
    request = wire.request(asked, model or NEWEST.get(name, "m"), Profile(), stream=stream)
    if name in CHECKS:
        # The newest types of Anthropic have no sampling parameters, which its older models take.
        old = {"temperature", "top_p", "top_k"} if name == "messages" else set()
        CHECKS[name]({word: value for word, value in request.body.items() if word not in old})
    return request


def part(body: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(body, dict) or step not in body:
            return None
        body = body[step]
    return body


HAS_OFF, HAS_NO_OFF = "It has: None, off, low, medium, high", "It has: None, low, medium, high"
THINKING = [
    # wire, models, the word, where it stands and what
    ("chat", "gpt-5", "off", {"reasoning_effort": "minimal"}),
    ("chat", "gpt-5.4 gpt-5.6", "off", {"reasoning_effort": "none"}),
    ("chat", "gpt-5.6", True, {"thinking": True, "reasoning_effort": None}),  # a parameter of a service's own
    ("responses", "gpt-5.6 gpt-5.1 gpt-6-sol gpt-9", "off", {"reasoning.effort": "none", "reasoning.summary": None}),
    ("responses", "gpt-5 gpt-5-mini", "off", {"reasoning.effort": "minimal"}),
    ("responses", "gpt-6-astra gpt-6.1-sol o3 gpt-5.4-pro gpt-5.3-codex", "off", HAS_NO_OFF),
    ("responses", "gpt-6-astra gpt-5.6", "medium", {"reasoning.effort": "medium", "reasoning.summary": "auto"}),
    ("responses", "gpt-5.6", 2048, HAS_OFF),
    ("responses", "gpt-4.1 gpt-4o gpt-5-chat gpt-35-turbo", "low", "It has: None, off"),
    ("responses", "gpt-4.1", "off", {"reasoning": None}),
    ("messages", "claude-haiku-4-5 claude-opus-4-5 claude-sonnet-4-5-20250929", "low",
     {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ("messages", "claude-opus-4-6 claude-sonnet-4-6 claude-haiku-4-5", 3000, {"thinking.budget_tokens": 3000}),
    ("messages", "claude-opus-4-6 claude-opus-4-7 claude-opus-5 claude-sonnet-5-5 claude-fable-9", "high",
     {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config.effort": "high"}),
    ("messages", "claude-opus-4-7 claude-opus-5-5", 3000, "It has: None"),
    ("messages", "claude-haiku-4-5", 1023, "a number of tokens"),
    ("messages", "claude-haiku-4-5", 1024, {"thinking.budget_tokens": 1024}),
    ("messages", "claude-opus-4-7 claude-opus-5 claude-fable-5 claude-sonnet-4-5", "off", {"thinking": {"type": "disabled"}}),
    ("messages", "claude-sonnet-5-5 claude-5-5-sonnet", "off", {"thinking": {"type": "between_tools"}}),
    ("messages", "claude-opus-5-5 claude-fable-5-1 claude-haiku-5-5", "off", HAS_NO_OFF),
    ("messages", "claude-3-5-haiku-20241022 claude-3-opus", "low", "It has: None, off"),
    ("messages", "claude-3-haiku", "off", {"thinking": None}),
    ("gemini", "gemini-2.5-flash gemini-2.5-flash-lite", "off", {"generationConfig.thinkingConfig.thinkingBudget": 0}),
    ("gemini", "gemini-2.5-pro", "off", "It has: None, low, medium, high, a number of tokens"),
    ("gemini", "gemini-2.5-pro models/gemini-2.5-flash", 512,
     {"generationConfig.thinkingConfig": {"thinkingBudget": 512, "includeThoughts": True}}),
    ("gemini", "gemini-3.6-flash gemini-3.8-flash-lite", "off", {"generationConfig.thinkingConfig.thinkingLevel": "minimal"}),
    ("gemini", "gemini-3.8-flash gemini-3.7-flash gemini-4-argon gemini-3.1-pro-preview gemini-9", "off", HAS_NO_OFF),
    ("gemini", "gemini-3.8-flash gemini-3-flash gemini-4-argon", "medium",
     {"generationConfig.thinkingConfig": {"thinkingLevel": "medium", "includeThoughts": True}}),
    ("gemini", "gemini-3-pro", "medium", "It has: None, low, high"),
    ("gemini", "gemini-3.8-flash", 512, "It has: None"),
    ("gemini", "gemini-2.0-flash", "low", "It has: None, off"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "model", "word", "expected"),
    [(name, model, word, expected) for name, models, word, expected in THINKING for model in models.split()],
)
def test_thinking_in_the_words_of_each_family(name, model, word, expected):
    if isinstance(expected, str):
        with pytest.raises(ConfigError, match=f"has no thinking={word!r}.*{expected}"):
            sent(name, model, thinking=word)
        return
    body = sent(name, model, thinking=word).body
    assert {path: part(body, path) for path in expected} == expected


@pytest.mark.parametrize(
    ("model", "most", "native"),
    [
        ("claude-opus-4-6", 128_000, True), ("claude-opus-5-5", 128_000, True), ("claude-haiku-4-5", 64_000, True),
        ("claude-opus-4-5", 64_000, True), ("claude-opus-4", 32_000, False), ("claude-3-7-sonnet-20250219", 64_000, False),
        ("claude-3-5-sonnet-20241022", 8_192, False), ("claude-3-haiku", 4_096, False), ("qwen3-coder", 32_000, False),
        ("claude-opus-4-7", 128_000, True),
    ],
)  # fmt: skip
def test_the_most_tokens_of_the_family_are_sent_where_none_are_said(model, most, native):
    assert Anthropic(model, api_key="k").profile.native is native
    assert sent("messages", model).body["max_tokens"] == most
    assert [sent("messages", model, max_tokens=said).body["max_tokens"] for said in (7, 0)] == [7, 0]
    assert "max_output_tokens" not in sent("responses").body
    assert "generationConfig" not in sent("gemini").body


@pytest.mark.parametrize(("name", "is_first"), [("messages", False), ("responses", True), ("gemini", False)])
def test_a_conversation_that_the_model_begins_gets_a_turn_before_it_where_the_wire_wants_one(name, is_first):
    said: list[Any] = [{"role": "assistant", "content": "Welcome."}, *HELLO]
    body = sent(name, messages=said).body
    first, *_ = body.get("messages") or body.get("input") or body["contents"]
    assert ("Welcome." in str(first)) is is_first
    assert (first["role"] == "user") is not is_first


SAID = [{"role": "assistant", "content": "hello"}, {"role": "user", "content": "and?"}]
ROUND: list[Any] = [
    *HELLO,
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "5"},
]


def test_the_tools_of_a_history_are_named_where_none_are_offered():
    assert [tool["name"] for tool in sent("messages", messages=ROUND).body["tools"]] == ["f"]


def test_a_round_that_began_without_thinking_ends_without_it():
    request = sent("messages", "claude-sonnet-4-5", messages=ROUND, thinking=2048)
    assert request.body["thinking"] == {"type": "disabled"}
    assert [what for what, _ in request.downgrades] == ["thinking: off for this turn"]
    for talk in (HELLO, [*ROUND, *SAID]):
        assert sent("messages", "claude-sonnet-4-5", messages=talk, thinking=2048).body["thinking"]["type"] == "enabled"
    assert "thinking" not in sent("messages", "claude-sonnet-4-5", messages=ROUND).body
    odd = {"wire": "messages", "service": "h", "items": [{"type": {}}], "prefix": "of something else"}
    talk = [*HELLO, {"role": "assistant", "content": "", "provider_state": odd}]
    assert MessagesWire("h").request(Asked(talk), NEWEST["messages"], Profile(), stream=False).downgrades


def test_a_budget_fits_below_the_limit():
    for limit, thinking, budget in ((1000, "high", 16_384), (16_384, "high", 16_384), (1000, 64_000, 64_000)):
        body = sent("messages", "claude-sonnet-4-5", thinking=thinking, max_tokens=limit).body
        assert body["max_tokens"] > body["thinking"]["budget_tokens"] == budget


SAMPLING = [
    ("messages", "claude-sonnet-4-5 claude-opus-4-6", True), ("responses", "gpt-4.1", True), ("responses", "gpt-5.6 o3", False),
    ("messages", "claude-opus-4-7 claude-sonnet-5 claude-opus-5-5", False), ("gemini", "gemini-4-argon", False),
    ("gemini", "gemini-3.8-flash gemini-2.5-pro", True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "model", "takes"), [(name, model, takes) for name, models, takes in SAMPLING for model in models.split()]
)
def test_sampling_goes_to_models_that_take_it_and_is_told_where_not(name, model, takes):
    request = sent(name, model, temperature=0.5)
    assert [what for what, _ in request.downgrades] == [] if takes else ["sampling: temperature is left out"]
    assert ("0.5" in json.dumps(request.body)) is takes


def test_a_model_that_thinks_takes_no_temperature_on_messages():
    request = sent("messages", "claude-sonnet-4-5", thinking=2048, temperature=0.5)
    assert request.downgrades == [("sampling: temperature is left out", "a model that thinks takes none")]
    assert sent("messages", "claude-sonnet-4-5", thinking=2048, temperature=1).body["temperature"] == 1
    assert sent("responses", "gpt-5.6", thinking="off", temperature=0.5).body["temperature"] == 0.5
    asked = Asked(HELLO, params={"top_p": 0.5})
    for version, takes in {"2026-10-21": False, "vertex-2023-10-16": True}.items():
        request = MessagesWire("h", version=version).request(asked, "claude-opus-4-6", Profile(), stream=False)
        assert ("top_p" in request.body) is takes is not bool(request.downgrades)


WORDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "messages": (
        "claude-sonnet-4-5",
        {"max_tokens": 9, "stop": "END", "user": "u", "top_p": 0.5, "n": 1, "reasoning_effort": "low"},
        {"max_tokens": 9, "stop_sequences": ["END"], "metadata": {"user_id": "u"}, "top_p": 0.5, "output_config": {"effort": "low"}},
    ),
    "responses": (
        "gpt-4.1", {"max_completion_tokens": 9, "verbosity": "low", "n": 1, "top_logprobs": 2, "user": "u"},
        {"max_output_tokens": 9, "text": {"verbosity": "low"}, "top_logprobs": 2, "user": "u",
         "include": ["reasoning.encrypted_content", "message.output_text.logprobs"]},
    ),
    "gemini": (
        "gemini-2.5-flash",
        {"max_tokens": 9, "stop": ["A", "B"], "seed": 1, "n": 2, "top_k": 3, "top_logprobs": 4, "presence_penalty": 0.1},
        {"generationConfig": {"maxOutputTokens": 9, "stopSequences": ["A", "B"], "seed": 1, "candidateCount": 2, "topK": 3,
                              "responseLogprobs": True, "logprobs": 4, "presencePenalty": 0.1}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_common_parameters_are_said_in_the_words_of_the_wire(name):
    model, given, expected = WORDS[name]
    body = sent(name, model, **given).body
    assert {word: body.get(word) for word in expected} == expected
    assert not {"stop", "max_completion_tokens", "n", "logprobs"} & body.keys()


@pytest.mark.parametrize(
    ("name", "word", "advice"),
    [("responses", word, 'wire="chat"') for word in ("stop", "seed", "n", "logit_bias", "presence_penalty")]
    + [("messages", word, "Leave it out") for word in ("seed", "n", "logprobs", "logit_bias", "frequency_penalty")]
    + [("gemini", word, "Leave it out") for word in ("logit_bias", "user", "verbosity")],
)
def test_what_a_wire_has_no_word_for_is_refused_before_anything_is_sent(name, word, advice):
    with pytest.raises(ConfigError, match=f"has no word for {word}.*{advice}"):
        sent(name, **{word: 2})


def test_schemas_and_strict_tools():
    form = sent("responses", response_format=FORMAT).body["text"]["format"]
    assert form == {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}
    assert sent("messages", response_format=FORMAT).body["output_config"]["format"]["schema"] == SCHEMA
    profiles = [Gemini(each, api_key="k").profile for each in ("gemini-2.5-pro", "gemini-3.8-flash")]
    assert [each.schema_with_tools for each in profiles] == [False, True]
    config = sent("gemini", response_format=FORMAT).body["generationConfig"]
    assert (config["responseMimeType"], config["responseJsonSchema"]) == ("application/json", SCHEMA)
    strict = [tool["strict"] for tool in sent("responses", tools=[TOOL, LOOSE]).body["tools"]]
    assert strict == [True, False]  # left out it would count as true
    takes = [tool["input_schema"] for tool in sent("messages", tools=[TOOL, LOOSE]).body["tools"]]
    declared = sent("gemini", tools=[TOOL, LOOSE]).body["tools"][0]["functionDeclarations"]
    assert takes == [SCHEMA, {"type": "object", "properties": {}}]
    assert [tool["parametersJsonSchema"] for tool in declared] == [SCHEMA, {"type": "object"}]
    assert sent("messages", tools=[TOOL]).body["tools"][0]["strict"] is True
    with pytest.raises(ConfigError, match="response_format"):
        sent("messages", response_format={"type": "json_object"})


def test_gemini_requires_no_field_that_leads_back_to_its_object():
    ref = {name: {"$ref": f"#/$defs/{name}"} for name in ("Node", "Twig", "Leaf")}
    node = {**SCHEMA, "properties": {"v": TEXT, "kids": {"items": ref["Twig"]}}, "required": ["v", "kids"]}
    twig = {**SCHEMA, "properties": {"leaf": ref["Leaf"], "back": ref["Node"]}, "required": ["leaf", "back"]}
    other = {**SCHEMA, "properties": {"value": ref["Node"]}, "required": ["value"]}
    for root, required in ((node, ["v"]), (other, ["value"])):
        schema = {**root, "$defs": {"Node": node, "Twig": twig, "Leaf": SCHEMA, "Any": True}}
        tool: Any = {"type": "function", "function": {"name": "f", "parameters": schema}}
        body = sent("gemini", response_format={**FORMAT, "json_schema": {"schema": schema}}, tools=[tool]).body
        made = body["generationConfig"]["responseJsonSchema"]
        assert made == body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
        assert made["$defs"].pop("Any") is True
        assert [each["required"] for each in (made, *made["$defs"].values())] == [required, ["v"], ["leaf"], ["a"]]


def test_what_messages_does_not_enforce_is_told_in_the_description():
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string", "default": "a"}}
    fields = {
        "number": {"type": "integer", "minimum": 1, "description": "How many."}, "one": {"oneOf": [text]},
        "date": {**text, "format": "date"}, "phone": {**text, "format": "téléphone"}, "any": {**texts, "minItems": 0},
        "some": {**texts, "minItems": 1}, "more": {**texts, "minItems": 2}, "open": {"type": "array", "items": True},
        "other": {"$ref": "#/$defs/x", "description": "Another."},
    }  # fmt: skip
    schema = {"type": "object", "title": "A", "properties": fields, "$defs": {"x": {"type": "object", "title": "X"}}}
    asked = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    body = sent("messages", response_format=asked).body
    plain = {"type": "array", "items": text}
    told = {
        "number": {"type": "integer", "description": "How many. {minimum: 1}"}, "one": {"anyOf": [text]},
        "phone": {**text, "description": '{format: "téléphone"}'}, "any": {**plain, "minItems": 0},
        "some": {**plain, "minItems": 1}, "more": {**plain, "description": "{minItems: 2}"}, "other": {"$ref": "#/$defs/x"},
    }  # fmt: skip
    closed = {"type": "object", "additionalProperties": False}
    made = {**closed, "properties": {**fields, **told}, "$defs": {"x": closed}}
    assert body["output_config"]["format"]["schema"] == made


CHOICES = [
    ("required", {"type": "any"}, "required", {"mode": "ANY"}),
    ("none", {"type": "none"}, "none", {"mode": "NONE"}),
    ("auto", {"type": "auto"}, "auto", {"mode": "AUTO"}),
    ({"type": "function", "function": {"name": "f"}}, {"type": "tool", "name": "f"}, {"type": "function", "name": "f"},
     {"mode": "ANY", "allowedFunctionNames": ["f"]}),
]  # fmt: skip


@pytest.mark.parametrize(("choice", "messages", "responses", "gemini"), CHOICES)
def test_which_tool_may_be_called(choice, messages, responses, gemini):
    assert sent("messages", "claude-opus-5", tools=[TOOL], tool_choice=choice).body["tool_choice"] == messages
    assert sent("responses", tools=[TOOL], tool_choice=choice).body["tool_choice"] == responses
    config = sent("gemini", tools=[TOOL], tool_choice=choice).body["toolConfig"]
    assert config["functionCallingConfig"] == gemini
    assert sent("gemini", tools=[TOOL], tool_choice=gemini).body["toolConfig"] == config, "as it is"
    for name in NEW:
        assert not {"tool_choice", "toolConfig"} & sent(name, tool_choice=choice).body.keys()  # without a tool
        assert not {"tool_choice", "toolConfig"} & sent(name, tools=[TOOL]).body.keys()


def test_the_newest_models_cannot_be_made_to_call_a_tool():
    request = sent("messages", tools=[TOOL], tool_choice="required", parallel_tool_calls=False)
    assert request.body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert [what for what, _ in request.downgrades] == ["tools: no tool is forced"]
    none = sent("messages", tools=[TOOL], tool_choice="none", parallel_tool_calls=False)
    assert (none.body["tool_choice"], none.downgrades) == ({"type": "none"}, [])
    assert sent("responses", tools=[TOOL], parallel_tool_calls=False).body["parallel_tool_calls"] is False
    told = sent("gemini", tools=[TOOL], parallel_tool_calls=False).downgrades
    assert [what for what, _ in told] == ["tools: parallel_tool_calls is left out"]


TALK: list[Any] = [{"role": "system", "content": "Be brief."}, *HELLO, *SAID]


def test_the_prompt_cache_is_told_where_it_may_begin():
    body = sent("messages", messages=TALK, tools=[LOOSE, TOOL]).body
    assert [tool["name"] for tool in body["tools"]] == ["g", "f"]
    for each in (body["tools"][-1], body["system"][-1], body["messages"][1]["content"][-1]):
        assert each["cache_control"] == {"type": "ephemeral"}
    assert json.dumps(body).count("cache_control") == 3
    assert "cache_control" in sent("messages", messages=ROUND).body["messages"][-1]["content"][-1]
    assert "cache_control" not in json.dumps(sent("messages").body)
    assert "cache_control" not in json.dumps(sent("messages", messages=TALK, tools=[TOOL], caches=False).body)


def test_the_key_of_the_prompt_cache_is_that_of_the_prefix():
    keys = [sent("responses", messages=said).body["prompt_cache_key"] for said in (TALK, [*TALK, *HELLO], HELLO)]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0] != sent("responses", messages=TALK, tools=[TOOL]).body["prompt_cache_key"]
    assert "prompt_cache_key" not in sent("responses", caches=False).body


def test_requests_of_responses_are_stateless():
    assert [sent(name, stream=True).body.get("stream") for name in NEW] == [True, True, None]
    body = sent("responses", include=["web_search_call.results"]).body
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content", "web_search_call.results"]


def test_system_prompts_stand_apart_as_one_text():
    more = {"role": "developer", "content": [{"type": "text", "text": "B."}]}
    talk: list[Any] = [{"role": "system", "content": "A."}, *HELLO, more]
    assert sent("messages", messages=talk).body["system"][0]["text"] == "A.\n\nB."
    assert sent("responses", messages=talk).body["instructions"] == "A.\n\nB."
    assert sent("gemini", messages=talk).body["systemInstruction"] == {"parts": [{"text": "A.\n\nB."}]}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    for name in NEW:
        with pytest.raises(ConfigError, match="system prompt holds something that is not text"):
            sent(name, messages=[{"role": "system", "content": [image]}, *HELLO])


CALL = {"id": "weird id/1", "type": "function", "function": {"name": "f", "arguments": "[1]"}}


@pytest.mark.parametrize("name", NEW)
def test_calls_with_one_id_stay_apart_and_results_stand_in_the_order_of_the_calls(name):
    asked = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": each} for each in "ab"]}
    first, second = ([{"role": "tool", "tool_call_id": each, "content": at + each} for each in "xba"] for at in "12")
    shown = [json.dumps(sent(name, messages=[*HELLO, asked, *first, *rest]).body) for rest in ([asked, *second], HELLO)]
    assert re.findall(r'\b([12][abx])"', shown[0]) == ["1a", "1b", "1x", "2a", "2b", "2x"]
    ids = [re.findall(r'"(?:id|call_id)": "(\w+)"', each) for each in shown]
    assert (len(set(ids[0])), set(ids[1]) <= set(ids[0])) == (0 if name == "gemini" else 4, True)


@pytest.mark.parametrize("name", NEW)
def test_a_history_that_was_cut_fits(name):
    """A call without its result, a result without its call, an answer at the beginning, arguments that are no object."""
    talk = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "lost", "content": [{"type": "text", "text": "spät"}]}, *HELLO,
    ]  # fmt: skip
    shown = json.dumps(sent(name, messages=talk).body, ensure_ascii=False)
    assert "The result of this call is not known." in shown
    assert re.search("The result of an earlier tool call: .*spät", shown)
    assert "weird id/1" not in shown or name == "responses"
    answered = [*talk[:1], {"role": "tool", "tool_call_id": CALL["id"], "content": "fine"}, *HELLO]
    assert "is not known" not in json.dumps(sent(name, messages=answered).body)


@pytest.mark.parametrize(
    ("name", "mark"), [("chat", []), ("responses", []), ("messages", ["is_error"]), ("gemini", ["error"])]
)
def test_a_failed_tool_is_marked_where_the_wire_has_a_mark(name, mark):
    result = {"role": "tool", "tool_call_id": CALL["id"], "content": "no such city"}
    for results, marks in (([result], []), ([{**result, "is_error": True}], mark), ([], mark)):
        body = sent(name, messages=[{"role": "assistant", "content": None, "tool_calls": [CALL]}, *results]).body
        assert re.findall(r'"(is_error|error)": (?:true|")', json.dumps(body)) == marks
        if name == "gemini":
            assert body["contents"][-1]["parts"][0]["functionResponse"]["name"] == "f"


DATA = "data:application/pdf;base64,JVBERi0="
FILE = {"filename": "a.pdf", "file_data": DATA}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
PNG, LINK = {**PDF, "media_type": "image/png"}, {"type": "url", "url": "https://h/a.png"}
TEXT = {"type": "text", "media_type": "text/plain", "data": "hi"}
SOUND = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}


@pytest.mark.parametrize(
    ("name", "given", "goes_out"),
    [
        ("chat", FILE, {"type": "file", "file": FILE}), ("responses", FILE, {"type": "input_file", **FILE}),
        ("messages", FILE, {"type": "document", "source": PDF, "title": "a.pdf"}),
        ("messages", {"file_data": "data:text/csv;base64,aGk="}, {"type": "document", "source": TEXT}),
        ("messages", {"file_data": "data:application/json,h%69"}, {"type": "document", "source": TEXT}),
        ("messages", {"file_data": "data:text/plain;base64,a"}, "not base64"),
        ("messages", {"file_data": "data:application/zip,a"}, "not application/zip"),
        ("messages", {"file_id": "f1"}, {"type": "document", "source": {"type": "file", "file_id": "f1"}}),
        ("gemini", FILE, {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}}),
        ("gemini", {"file_id": "f1"}, {"fileData": {"fileUri": "f1"}}), ("gemini", {}, "Send the data"),
        ("gemini", {"file_data": "data:text/plain,a"}, "Send the data"),
        ("gemini", SOUND, {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}}), ("chat", SOUND, SOUND),
        ("messages", SOUND, "takes no audio"), ("responses", SOUND, "takes no audio"),
        *(("messages", {"type": "image_url", "image_url": {"url": url}}, {"type": "image", "source": source})
          for url, source in ((DATA.replace("application/pdf", "image/png"), PNG), (LINK["url"], LINK))),
    ],
)  # fmt: skip
def test_files_and_sounds_go_out_in_the_words_of_the_wire(name, given, goes_out):
    talk: list[Any] = [{"role": "user", "content": [given if "type" in given else {"type": "file", "file": given}]}]
    if isinstance(goes_out, str):
        with pytest.raises(ConfigError, match=goes_out):
            sent(name, messages=talk)
        return
    body = sent(name, messages=talk).body
    said = (body.get("messages") or body.get("input") or body["contents"])[0]
    assert (said.get("content") or said["parts"]) == [goes_out]
