"""A history that does not fit is shortened by whole exchanges, or by the caller's own function."""

from __future__ import annotations

import pytest

from SimpleLLMFunc import ConfigError, llm_chat
from SimpleLLMFunc.llm_decorator.steps.chat.message import fits, room_for_input, trimmed
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import function_of
from tests.support.wires import WIRES, wired

CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def exchange(number, *, size=100):
    return [
        {"role": "user", "content": f"question {number} " + "word " * size},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "result"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


HISTORY = [message for number in range(10) for message in exchange(number)]


def chatting(window, *replies, **options):
    llm = ScriptedLLM(*replies)
    llm.context_window = window

    @llm_chat(llm, **options)
    def chat(history: list, message: str):
        """Talk."""

    return chat, llm


def test_the_oldest_exchanges_go_with_their_tool_pairs(caplog):
    chat, llm = chatting(600, "ok")
    mine = [dict(message) for message in HISTORY]
    history = list(chat(mine, "now"))[-1][1]
    sent = llm.requests[0]
    assert sent[0] == {"role": "system", "content": "Talk."}
    assert sent[1]["content"].startswith("question ")
    assert sent[-1]["content"] == "message: now"
    roles = [message["role"] for message in sent[1:-1]]
    assert roles == ["user", "assistant", "tool", "assistant"] * (len(roles) // 4)
    assert 0 < len(roles) < len(HISTORY)
    assert sent[-2]["content"] == "answer 9"
    assert mine == HISTORY
    assert len(history) == len(sent) + 1
    assert any("do not fit" in record.getMessage() for record in caplog.records)


def test_what_fits_or_has_no_known_window_is_left_alone():
    for window in (None, 100_000):
        chat, llm = chatting(window, "ok")
        list(chat(HISTORY, "now"))
        assert len(llm.requests[0]) == len(HISTORY) + 2


def test_the_new_message_always_goes_out():
    chat, llm = chatting(50, "ok")
    list(chat(HISTORY, "now " * 200))
    assert [m["role"] for m in llm.requests[0]] == ["system", "user"]


@pytest.mark.parametrize("is_async", [False, True])
def test_compact_gets_a_copy_and_what_it_gives_is_sent(is_async):
    seen = []

    def compact(history):
        seen.append(len(history))
        history[0]["content"] = "changed"
        return [{"role": "user", "content": "what we said before, in short"}]

    async def acompact(history):
        return compact(history)

    chat, llm = chatting(600, "ok", "ok", compact=acompact if is_async else compact)
    assert [m["content"] for m in chat.preview(HISTORY, "now").messages][1] == "what we said before, in short"
    list(chat(HISTORY, "now"))
    assert seen == [len(HISTORY)] * 2
    assert [m["content"] for m in llm.requests[0]] == ["Talk.", "what we said before, in short", "message: now"]
    assert HISTORY[0]["content"] != "changed"


def test_a_compact_that_does_not_help_is_followed_by_trimming():
    chat, llm = chatting(600, "ok", compact=lambda history: history)
    list(chat(HISTORY, "now"))
    assert len(llm.requests[0]) < len(HISTORY)


def test_a_compact_that_gives_nonsense():
    chat, llm = chatting(600, "ok", compact=lambda history: "short")
    with pytest.raises(ConfigError, match="compact"):
        list(chat(HISTORY, "now"))
    assert llm.calls == []


def test_room_is_left_for_the_answer():
    assert room_for_input(4096, {"max_tokens": 96}) == 4000
    assert room_for_input(4096, {}) == 3072
    assert room_for_input(100_000, {}) == 100_000 - 1024
    assert room_for_input(100, {"max_tokens": 1000}) == 25


def test_a_conversation_without_a_user_is_left_alone():
    assert trimmed([{"role": "system", "content": "x" * 1000}], None, 10, "f") == [
        {"role": "system", "content": "x" * 1000}
    ]


def test_what_is_left_out_is_no_more_than_has_to_be():
    messages = [{"role": "system", "content": "Talk."}, *HISTORY, {"role": "user", "content": "now"}]
    for room in range(50, 2000, 37):
        kept = trimmed(messages, None, room, "f")
        assert fits(kept, None, room) or kept == [messages[0], messages[-1]]
        left_out = len(messages) - len(kept)
        if left_out:
            assert not fits([messages[0], *messages[1 + left_out - 4 :]], None, room)


def test_a_plain_function_that_shortens_may_ask_a_model():
    sum_up = function_of(ScriptedLLM("They talked."))
    chat, llm = chatting(600, "ok", compact=lambda history: [{"role": "user", "content": sum_up(str(history))}])
    list(chat(HISTORY, "now"))
    assert [message["content"] for message in llm.requests[0]][1:] == ["They talked.", "message: now"]


@pytest.mark.parametrize("options", [{"compact": 3}, {"stream": "yes"}], ids=str)
def test_an_option_that_cannot_be_is_told_before_the_first_call(options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        chatting(600, **options)


IMAGE = "data:image/png;base64,iVBORw0KGgo="
ODD = [
    3, b"x", {"text": "x"}, ["x"], [3], [{"type": "text"}], [{"type": "text", "text": 3}], [{"type": "image_url"}],
    [{"type": "image_url", "image_url": {}}], [{"type": "input_audio"}], [{"type": "file", "file": "a.pdf"}],
]  # fmt: skip


@pytest.mark.parametrize("content", ODD, ids=str)
def test_content_that_no_wire_could_read_is_left_out_with_a_warning(content, caplog):
    chat, llm = chatting(None, "ok")
    list(chat([{"role": "user", "content": content}, {"role": "assistant", "content": "hello"}], "now"))
    assert [message["role"] for message in llm.requests[0]] == ["system", "assistant", "user"]
    assert "role 'user', content that is no text and no list of parts" in caplog.text


@pytest.mark.parametrize("wire", WIRES)
async def test_an_image_may_be_told_by_its_bare_address(wire):
    chat, _ = chatting(None)
    async with wired(wire) as (llm, _server):
        said = [{"role": "user", "content": [{"type": "image_url", "image_url": IMAGE}]}]
        assert "iVBORw0KGgo=" in str(chat.with_options(llm_interface=llm).preview(said, "now").body)
