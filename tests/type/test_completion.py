import pickle

import pytest

from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, ToolCall, ToolCallDelta, Usage

USAGE = {
    "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}  # fmt: skip
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}, "sig": {"s": 1}}
MESSAGE = {
    "role": "assistant", "content": "hi", "refusal": "no", "reasoning_content": "hm", "tool_calls": [CALL],
    "annotations": [],
}  # fmt: skip
REPLY = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "m", "system_fingerprint": "fp",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": {"content": []}, "message": MESSAGE}],
    "usage": USAGE,
}  # fmt: skip
PIECE = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
DELTA = {"role": "assistant", "content": "x", "tool_calls": [PIECE], "extra": 1}
CHUNK = {
    "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": None, "delta": DELTA}], "usage": USAGE,
}  # fmt: skip


def test_a_reply_is_read_with_the_names_of_the_openai_package():
    reply = ChatCompletion.from_dict(REPLY, tries=2, cached=True)
    assert reply.choices[0].message.content == reply.text == "hi"
    assert reply.choices[0].message.tool_calls[0].function.name == reply.tool_calls[0].function.name == "f"
    assert reply.choices[0].finish_reason == reply.finish_reason == "tool_calls"
    assert reply.usage.prompt_tokens == 10
    assert reply.usage.tokens == Usage(10, 5, 4, 2)
    assert (reply.tries, reply.cached, reply.raw) == (2, True, REPLY)


@pytest.mark.parametrize(("kind", "data"), [(ChatCompletion, REPLY), (ChatCompletionChunk, CHUNK)])
def test_what_is_written_and_read_again_is_the_same(kind, data):
    item = kind.from_dict(data)
    assert item.to_dict() == data
    assert kind.from_dict(item.to_dict()) == pickle.loads(pickle.dumps(item)) == item


def test_a_chunk_is_read_with_the_names_of_the_openai_package():
    chunk = ChatCompletionChunk.from_dict(CHUNK)
    function = chunk.tool_calls[0].function
    assert (chunk.text, chunk.finish_reason, function.name, function.arguments) == ("x", None, "f", "{")


def test_what_is_none_is_left_out_when_written():
    assert ChatCompletionChunk.from_dict({"choices": [{"delta": None}]}).to_dict()["choices"] == [
        {"index": 0, "delta": {}, "finish_reason": None}
    ]
    message = ChatCompletion.from_dict({"choices": [{"message": {"content": None}}]}).message
    assert message.to_dict() == {"role": "assistant", "content": None}
    assert ToolCallDelta().to_dict() == {"function": {}}


@pytest.mark.parametrize("choices", [None, [], "x", 3, [None], {"a": 1}])
def test_no_choices_are_no_choices(choices):
    for kind in (ChatCompletion, ChatCompletionChunk):
        item = kind.from_dict({"choices": choices, "usage": None})
        assert item.choices == ()
        assert (item.text, item.tool_calls, item.finish_reason, item.usage) == ("", [], None, None)


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": "x"}, {"tool_calls": [None, "y"]}, {"tool_calls": [{"function": "f"}]}, {"refusal": 3},
        {"content": 3}, {"content": {"a": 1}}, {"role": None}, None, "text",
    ],
)  # fmt: skip
def test_strange_messages_are_survived(message):
    ChatCompletion.from_dict({"choices": [{"message": message, "finish_reason": 3, "index": "0"}]})
    chunk = ChatCompletionChunk.from_dict({"choices": [{"delta": message, "finish_reason": 3}], "created": "now"})
    assert chunk.finish_reason is None


def test_choices_are_sorted_and_the_lowest_index_is_the_text():
    choices = [{"index": 1, "message": {"content": "b"}}, {"index": 0, "message": {"content": "a"}}]
    assert ChatCompletion.from_dict({"choices": choices}).text == "a"
    unnumbered = [{"message": {"content": "a"}}, {"message": {"content": "b"}}]
    assert [choice.index for choice in ChatCompletion.from_dict({"choices": unnumbered}).choices] == [0, 1]


def test_a_call_keeps_what_the_provider_added():
    call = ToolCall.from_dict({"id": 7, "function": {"name": "f", "arguments": None}, "extra_content": {"s": 1}})
    function = {"name": "f", "arguments": "{}"}
    assert call.to_dict() == {"id": "7", "type": "function", "function": function, "extra_content": {"s": 1}}


def test_reasoning_has_one_name():
    for name in ("reasoning_content", "reasoning"):
        message = ChatCompletion.from_dict({"choices": [{"message": {"content": "x", name: "hm"}}]}).message
        assert message.reasoning_content == "hm"
        assert message.extra == {}
        assert ChatCompletionChunk.from_dict({"choices": [{"delta": {name: "hm"}}]}).delta.reasoning_content == "hm"
    for thinking in ("hm", [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]):  # Mistral
        parts = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": "x"}]
        message = ChatCompletion.from_dict({"choices": [{"message": {"content": parts}}]}).message
        assert (message.reasoning_content, message.content) == ("hm", "x")


def test_what_cuts_or_blocks_an_answer_has_one_name():
    means = {"MAX_TOKENS": "length", "model_length": "length", "content_filter: SAFETY": "content_filter", "eos": "eos"}
    for said, reason in {**means, "sensitive": "content_filter", "model_context_window_exceeded": "length"}.items():
        for kind in (ChatCompletion, ChatCompletionChunk):
            assert kind.from_dict({"choices": [{"finish_reason": said}]}).finish_reason == reason


def test_the_usage_is_found_where_providers_put_it_and_in_their_words():
    told = {"usage": {"prompt_tokens": 3}}
    for data in (told, {"x_groq": told}, {"choices": [told]}):
        for kind in (ChatCompletion, ChatCompletionChunk):
            assert kind.from_dict(data).usage.prompt_tokens == 3
    usage = ChatCompletion.from_dict(
        {"usage": {"prompt_tokens": 3.0, "completion_tokens": None, "prompt_cache_hit_tokens": 2, "total_tokens": True}}
    ).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, usage.cached_tokens) == (3, 0, 3, 2)
