"""Reasoning at the beginning of an answer is taken out of it, however the text is cut into pieces."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.interface.wires import ReplyAssembler, StreamedThoughts, answer_in, put_right
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk

TEXTS = [
    ("<think>a</think>b", "a", "b"), ("<think>", "", ""), ("< 3", "", "< 3"), ("\n\n", "", "\n\n"), ("", "", ""),
    ("\n <think>\na < b </thin </think>\n\nb", "\na < b </thin ", "b"),
    ("<think></think>\n\nb <think>c</think>", "", "b <think>c</think>"),
    ("<think>\n\n</think>\n\n<think>a</think>b", "\n\na", "b"),
    ("<think>a</think>\n<thi", "a", "<thi"),
    ("<think>a</think>\n", "a", ""),
    (" " * 1000 + "<think>a</think>b", "a", "b"), (" " * 1001 + "<think>a</think>b", "", " " * 1001 + "<think>a</think>b"),
    ("<thought>a</think></thought>b", "a</think>", "b"),
    ("[THINK]a[/THINK]\nb", "a", "b"), ("◁think▷a◁/think▷b", "a", "b"), ("[THIN]", "", "[THIN]"),
    ("<think>never ends </thi", "never ends </thi", ""),
    ("b<think>a</think>", "", "b<think>a</think>"),
    ("<thinker>a</thinker>", "", "<thinker>a</thinker>"),
    ("  <thi", "", "  <thi"),
]  # fmt: skip


def whole(text):
    message = {"role": "assistant", "content": text}
    return ChatCompletion.from_dict({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def chunk(delta, index=0, finish_reason=None, tries=1):
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    return ChatCompletionChunk.from_dict({"choices": [choice], "model": "m"}, tries=tries)


def streamed(pieces, *, finish_reason="stop"):
    thoughts = StreamedThoughts()
    chunks = [chunk({"role": "assistant"}), *(chunk({"content": piece}) for piece in pieces)]
    chunks.append(chunk({}, finish_reason=finish_reason))
    apart = [thoughts.apart(one) for one in chunks]
    return ReplyAssembler([*apart, *filter(None, [thoughts.rest()])]).completion().message


@pytest.mark.parametrize(("text", "reasoning", "answer"), TEXTS)
def test_whole_replies_and_doing_it_again_changes_nothing(text, reasoning, answer):
    reply = put_right(whole(text))
    assert (reply.text, reply.message.reasoning_content or "") == (answer, reasoning)
    assert reply.raw["choices"][0]["message"]["content"] == text
    assert put_right(reply) == reply
    assert answer_in(text) == answer == answer_in(answer)


@pytest.mark.parametrize("finish_reason", ["stop", None])
@given(st.data())
def test_any_cut_gives_the_same(finish_reason, data):
    text, reasoning, answer = data.draw(st.sampled_from(TEXTS))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    message = streamed(pieces, finish_reason=finish_reason)
    assert (message.content or "", message.reasoning_content or "") == (answer, reasoning)


def test_a_stream_that_begins_again_thinks_again():
    thoughts = StreamedThoughts()
    assert thoughts.apart(chunk({"content": "<think>a"}, tries=1)).text == ""
    assert thoughts.apart(chunk({"content": "b"}, tries=2)).text == "b"


@pytest.mark.parametrize("piece", ["<think></think>", " ", "<think>", "</think", "<"])
def test_it_takes_linear_time(piece):
    def steps(times):
        taken = StreamedThoughts()
        started = time.process_time()
        for _ in range(times):
            taken.apart(chunk({"content": piece}))
        put_right(whole(piece * times))
        return time.process_time() - started

    steps(10)
    assert min(steps(4000) for _ in range(3)) < 60 * min(steps(200) for _ in range(3))


def test_nothing_is_held_back_longer_than_needed():
    def shown(*pieces):
        thoughts = StreamedThoughts()
        deltas = [thoughts.apart(chunk({"content": piece})).delta for piece in pieces]
        assert thoughts.rest() is None
        return [(delta.reasoning_content, delta.content) for delta in deltas]

    assert shown("<b>", "<think>") == [(None, "<b>"), (None, "<think>")]
    assert shown("<think>one", " two</", "think> three") == [("one", None), (" two", None), (None, "three")]


def test_each_choice_for_itself_and_next_to_other_fields():
    thoughts = StreamedThoughts()
    assert thoughts.apart(chunk({"content": "<think>a"}, index=1)).choices[0].delta.content is None
    assert thoughts.apart(chunk({"content": "a"}, index=0)).text == "a"
    both = thoughts.apart(chunk({"content": "b</think>c", "reasoning_content": "a"}, index=1)).choices[0].delta
    assert (both.content, both.reasoning_content) == ("c", "ab")
