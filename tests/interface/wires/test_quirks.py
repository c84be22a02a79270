import copy

import pytest

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.profile import GENERIC, Profile
from SimpleLLMFunc.interface.wires.quirks import chunk_of_reply, put_right, wire_messages
from SimpleLLMFunc.interface.wires.streams.delta_assembly import ReplyAssembler
from SimpleLLMFunc.type.completion import ChatCompletion

KEEPS = Profile(keep_reasoning=True)
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def user(text):
    return {"role": "user", "content": text}


def system(text, role="system"):
    return {"role": role, "content": text}


def test_messages_that_are_fine_go_out_as_they_are():
    messages = [system("s"), user("u"), {"role": "assistant", "content": "a"}, user("v")]
    sent = wire_messages(messages, GENERIC)
    assert sent == messages
    assert sent is not messages


def test_a_system_message_moves_to_the_front():
    assert wire_messages([user("u"), system("s")], GENERIC) == [system("s"), user("u")]


def test_several_system_messages_become_one():
    sent = wire_messages([system("a"), user("u"), system("b"), system("c", "developer")], GENERIC)
    assert sent == [system("a\n\nb\n\nc"), user("u")]


def test_system_parts_are_joined_as_parts():
    part = {"type": "text", "text": "b"}
    sent = wire_messages([system("a"), system([part]), system(""), user("u")], GENERIC)
    assert sent[0]["content"] == [{"type": "text", "text": "a"}, part, {"type": "text", "text": ""}]


def test_the_callers_messages_are_not_changed():
    messages = [
        user("u"),
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "a", "content": "r"},
        system("s"),
        system("t"),
        {"role": "assistant", "content": None, "reasoning_content": "r", "refusal": None},
    ]
    before = copy.deepcopy(messages)
    sent = wire_messages(messages, GENERIC)
    assert messages == before
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": None}, {"content": ""}),
        ({}, {"content": ""}),
        ({"content": None, "tool_calls": [CALL]}, {"content": None, "tool_calls": [CALL]}),
        ({"tool_calls": [CALL]}, {"content": None, "tool_calls": [CALL]}),
        ({"content": "x", "tool_calls": []}, {"content": "x"}),
        ({"content": "x", "tool_calls": None, "refusal": None}, {"content": "x"}),
        ({"content": "x", "extra_content": {"g": 1}}, {"content": "x", "extra_content": {"g": 1}}),
        (
            {"content": "", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}, "sig": "s"}]},
            {
                "content": "",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}, "sig": "s"}
                ],
            },
        ),
    ],
)
def test_an_assistant_message_has_what_the_wire_wants(message, expected):
    (sent,) = wire_messages([{"role": "assistant", **message}], GENERIC)
    assert sent == {"role": "assistant", **expected}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_only_where_the_provider_wants_it(name):
    message = {"role": "assistant", "content": "x", name: "hm", "reasoning_details": [1]}
    assert wire_messages([message], KEEPS) == [message]
    assert wire_messages([message], GENERIC) == [{"role": "assistant", "content": "x", "reasoning_details": [1]}]


@pytest.mark.parametrize("content", [None, "", "x", []])
def test_calls_that_this_package_wrote_go_out_as_they_are(content):
    message = {"role": "assistant", "content": content, "tool_calls": [CALL, {**CALL, "id": "b"}]}
    before = copy.deepcopy(message)
    (sent,) = wire_messages([message], GENERIC)
    assert sent == message == before
    (sent,) = wire_messages([{**message, "tool_calls": (CALL,), "refusal": None}], GENERIC)
    assert sent == {"role": "assistant", "content": content, "tool_calls": [CALL]}


def test_messages_of_the_openai_package_are_taken():
    from openai.types.chat import ChatCompletionMessage

    message = ChatCompletionMessage(role="assistant", content="hi")
    assert wire_messages([message], GENERIC) == [{"role": "assistant", "content": "hi"}]


@pytest.mark.parametrize("messages", [[], ["hello"], [{"content": "x"}], [None], [{"role": 3}]])
def test_what_is_no_conversation_is_refused(messages):
    with pytest.raises(UsageError):
        wire_messages(messages, GENERIC)


def reply(*calls, content=None):
    return ChatCompletion.from_dict(
        {"choices": [{"message": {"content": content, "tool_calls": list(calls)}, "finish_reason": "stop"}]}
    )


def test_the_calls_of_a_whole_reply_are_put_right():
    fixed = put_right(
        reply(
            {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
            {"id": "a", "function": {"name": "g", "arguments": ""}},
            {"function": {"name": "h"}, "extra_content": {"s": 1}},
        )
    )
    names = [call.function.name for call in fixed.tool_calls]
    arguments = [call.function.arguments for call in fixed.tool_calls]
    ids = [call.id for call in fixed.tool_calls]
    assert (names, arguments) == (["f", "g", "h"], ['{"x": 1}', "{}", "{}"])
    assert ids[0] == "a"
    assert len(set(ids)) == 3
    assert all(ids)
    assert fixed.tool_calls[2].extra == {"extra_content": {"s": 1}}


def test_a_reply_without_calls_is_left_alone():
    whole = reply(content="x")
    assert put_right(whole) == whole


def test_a_whole_reply_as_one_chunk_adds_up_to_itself():
    whole = put_right(
        ChatCompletion.from_dict(
            {
                "id": "i",
                "model": "m",
                "created": 3,
                "choices": [
                    {
                        "index": 0,
                        "message": {
                            "content": "x",
                            "tool_calls": [CALL, {**CALL, "id": "b"}],
                            "reasoning_content": "r",
                            "refusal": "no",
                            "extra_content": {"s": 1},
                        },
                        "finish_reason": "stop",
                        "logprobs": {"content": [1]},
                    }
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            },
            tries=3,
        )
    )
    assembler = ReplyAssembler()
    assembler.add(chunk_of_reply(whole))
    assert assembler.completion() == whole
    assert assembler.completion().tries == 3
    assert assembler.is_complete
