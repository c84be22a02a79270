"""Messages in the form of the GenAI conventions, and JSON texts that are always valid."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.observability.otel.content import LONGEST, chat_input, json_text, output_messages, parsed
from SimpleLLMFunc.type.completion import ChatCompletion

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=40)
@given(VALUES, st.none() | st.integers(1, 300))
def test_the_text_is_always_json_and_never_too_long(value, limit):
    text = json_text(value, limit)
    json.loads(text)
    text.encode()
    assert limit is None or len(text) <= limit


@given(st.text().map(lambda text: text.replace("\x00", "").strip()))
def test_a_plain_text_comes_back(text):
    cleaned = text.encode("utf-8", "replace").decode()
    assert json.loads(json_text({"q": text})) == {"q": cleaned}


def test_a_long_value_is_cut():
    assert LONGEST < len(json_text("x" * 10 * LONGEST)) + 10 <= LONGEST + 100


def test_the_roles():
    call = {"id": "1", "function": {"name": "f", "arguments": "{broken"}}
    instructions, messages = chat_input(
        [
            {"role": "system", "content": "be brief"}, {"role": "developer", "content": "be kind"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "reasoning_content": "hm", "refusal": "no"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "done"},
        ]
    )  # fmt: skip
    assert instructions == [{"type": "text", "content": "be brief"}, {"type": "text", "content": "be kind"}]
    assert messages == [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "no"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": "{broken"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "done"}]},
    ]


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "text", "text": "hi"}, {"type": "text", "content": "hi"}),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
         {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"}),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}},
         {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "<image 3000 B>"}),
        ({"type": "input_audio", "input_audio": {"data": "A" * 400, "format": "wav"}},
         {"type": "blob", "modality": "audio", "mime_type": "wav", "content": "<audio 300 B>"}),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
         {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "<document 3 B>"}),
        ({"type": "new", "what": 1}, {"type": "new", "what": 1}), ("bare", {"type": "text", "content": "bare"}),
    ],
)  # fmt: skip
def test_parts(part, shown):
    assert chat_input([{"role": "user", "content": [part]}])[1] == [{"role": "user", "parts": [shown]}]


def test_of_a_long_conversation_the_end_is_shown_too():
    asked = [{"role": "user", "content": f"{number}: {'x' * LONGEST}"} for number in range(20)]
    _, messages = chat_input([*asked, {"role": "user", "content": "and now?"}])
    shown = json.loads(json_text(messages))
    assert [each["parts"][0]["content"].partition(":")[0] for each in shown[:-1]] == [str(each) for each in range(20)]
    assert shown[-1]["parts"][0]["content"] == "and now?"
    assert len(json_text(messages)) < LONGEST


def test_every_choice_is_shown():
    choices = [
        {"index": at, "message": {"content": text}, "finish_reason": reason}
        for at, (text, reason) in enumerate((("a", "length"), ("b", None)))
    ]
    shown = output_messages(ChatCompletion.from_dict({"choices": choices}))
    assert [(each["parts"][0]["content"], each["finish_reason"]) for each in shown] == [("a", "length"), ("b", "stop")]


def test_a_text_that_is_json_is_read():
    assert [parsed(each) for each in ('{"a": 1}', "text", "[" * 100_000, 3)] == [{"a": 1}, "text", "[" * 100_000, 3]
