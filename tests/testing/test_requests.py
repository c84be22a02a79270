import json

import pytest

from SimpleLLMFunc.interface.wires import schema_of
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.testing.requests import answer_message, answer_tool_of, asks_for_action, request_text

OBJECT = {"type": "object", "properties": {"x": {"type": "integer"}}}
WRAPPED = {"type": "object", "properties": {"value": {"type": "array"}}}


def native(schema, name="value"):
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def tool(name, parameters=OBJECT):
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def said(data, *, system="Be brief.", tools=None, response_format=None):
    message = answer_message(data, [{"role": "system", "content": system}], tools, response_format)
    if message.get("tool_calls"):
        (call,) = message["tool_calls"]
        return call["function"]["name"], json.loads(call["function"]["arguments"])
    return message["content"]


@pytest.mark.parametrize(
    ("data", "options", "text"),
    [
        ("plain", {}, "plain"), ({"x": 1}, {}, '{"x": 1}'),
        ("plain", {"response_format": native(WRAPPED)}, '{"value": "plain"}'),
        ([1], {"response_format": native(WRAPPED)}, '{"value": [1]}'),
        ({"value": [1]}, {"response_format": native(WRAPPED)}, '{"value": [1]}'),
        ({"x": 1}, {"response_format": native(OBJECT)}, '{"x": 1}'),
        ({"x": 1}, {"response_format": native({"anyOf": []}, "action")}, '{"answer": {"x": 1}}'),
        ("a", {"system": "Reply with exactly one JSON object and nothing else:\n…"}, '{"answer": "a"}'),
        ({"x": 1}, {"tools": [tool("look"), tool("answer")]}, ("answer", {"x": 1})),
        ([1], {"tools": [tool("answer", WRAPPED)]}, ("answer", {"value": [1]})),
        ({"x": 1}, {"tools": [tool("look")]}, '{"x": 1}'),
    ],
)  # fmt: skip
def test_a_value_goes_the_way_it_is_asked_for(data, options, text):
    assert said(data, **options) == text


def test_what_a_request_asks_for():
    assert schema_of(native(OBJECT)) == OBJECT
    assert schema_of({"type": "json_object"}) is schema_of(None) is None
    assert answer_tool_of([tool("answer"), tool("look")]) is None  # ours is offered last
    assert answer_tool_of(None) is None
    asked = {"role": "user", "content": "Reply with exactly one JSON object and nothing else:"}
    assert not asks_for_action([asked], None)


def test_a_request_as_lines():
    call = {"id": "1", "function": {"name": "look", "arguments": '{"at": "rain"}'}}
    text = request_text(
        [
            {"role": "system", "content": "Be brief.\nBe kind."},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "wet", "tool_call_id": "1"},
        ],
        tools=[{"function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}],
        response_format={"type": "json_object"},
        params={"seed": 1},
    )
    assert text.split("\n") == [
        "[system]", "Be brief.", "Be kind.", "[user]", '{"type": "text", "text": "hello"}', "[assistant]",
        'calls look({"at": "rain"})', "[tool]", "wet", "[tool look] Look.", "{", ' "type": "object"', "}", "[response_format]",
        "{", ' "type": "json_object"', "}", "[params]", "{", ' "seed": 1', "}",
    ]  # fmt: skip


def test_long_messages_are_cut_and_secrets_masked():
    remember_secret("a-secret-that-is-known")
    text = request_text([{"role": "user", "content": "a-secret-that-is-known " + "x" * 5000}], limit=100)
    assert "a-secret" not in text
    assert len(text) < 200
    assert request_text([{}]) == "[?]"
