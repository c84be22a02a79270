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


PART = {"type": "text", "text": "b"}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([system("s"), user("u"), {"role": "assistant", "content": "a"}, user("v")],) * 2,
        ([user("u"), system("s")], [system("s"), user("u")]),
        ([system("a"), user("u"), system("b"), system("c", "developer")], [system("a\n\nb\n\nc"), user("u")]),
        (
            [system("a"), system([PART]), system(""), user("u")],
            [system([{"type": "text", "text": "a"}, PART, {"type": "text", "text": ""}]), user("u")],
        ),
    ],
)
def test_system_messages_stand_first_as_one(messages, expected):
    assert wire_messages(messages, GENERIC) == expected


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
    message = {
        "content": "x", "tool_calls": [CALL, {**CALL, "id": "b"}], "reasoning_content": "r", "refusal": "no",
        "extra_content": {"s": 1},
    }  # fmt: skip
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": [1]}}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    data = {"id": "i", "model": "m", "created": 3, "choices": [choice], "usage": usage}
    whole = put_right(ChatCompletion.from_dict(data, tries=3))
    assembler = ReplyAssembler()
    assembler.add(chunk_of_reply(whole))
    assert assembler.completion() == whole
    assert assembler.completion().tries == 3
    assert assembler.is_complete
