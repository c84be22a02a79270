"""Replies as a provider gives them: whole, and in chunks that add up to the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.interface.wires import ReplyAssembler
from SimpleLLMFunc.testing import tool_calls
from SimpleLLMFunc.testing.reply_chunks import completion_of, split_reply

ASKED = [{"role": "user", "content": "eight by"}]


def reply_of(message, index=0):
    return completion_of(message, ASKED, index, "m")


@pytest.mark.parametrize(
    "message",
    [
        {"content": "A text of some words,\n 也有中文."},
        {"content": "half an ans", "finish_reason": "length", "reasoning_content": "hm"},
        {"content": None, "refusal": "I will not."},
        tool_calls(("search", {"q": "rain"}), ("clock", {}), content="Let me see."),
        {"content": "x", "extra_content": {"signature": "abc"}},
    ],
)
@pytest.mark.parametrize("chunk_size", [None, 1, 1000])
def test_the_chunks_add_up_to_the_whole(message, chunk_size):
    data = reply_of(message).to_dict()
    data["choices"][0]["logprobs"] = {"content": [{"token": "x", "logprob": -0.5}]}
    whole = reply_of(data)
    streamed = ReplyAssembler(split_reply(whole, chunk_size)).completion()
    for name in ("role", "refusal", "reasoning_content", "tool_calls", "extra"):
        assert getattr(streamed.message, name) == getattr(whole.message, name), name
    assert (streamed.text, streamed.finish_reason, streamed.usage) == (whole.text, whole.finish_reason, whole.usage)
    assert streamed.choices[0].logprobs == whole.choices[0].logprobs
    assert (streamed.id, streamed.model) == (whole.id, "m")


@given(st.text(max_size=60))
def test_no_character_of_a_text_is_lost(text):
    assert ReplyAssembler(split_reply(reply_of({"content": text}))).text == text


def test_what_a_reply_says_of_itself():
    reply = reply_of({"content": "four"}, index=3)
    assert reply.id == "scripted-3"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (2, 1, 3)
    calls = reply_of(tool_calls(("search", {}), ("clock", {})), index=3)
    assert [call.id for call in calls.tool_calls] == ["call_3_0", "call_3_1"]
    assert calls.finish_reason == "tool_calls"
