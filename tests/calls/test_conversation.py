"""A conversation as records of messages."""

from __future__ import annotations

import logging

import pytest

from SimpleLLMFunc.calls.conversation import conversation_records


def said(role, content):
    return {"role": role, "content": content}


def test_messages_and_questions_with_answers_are_records():
    conversation = [said("user", "a"), {"question": "b", "answer": "c"}, said("assistant", "d")]
    assert conversation_records(conversation) == [
        [said("user", "a")],
        [said("user", "b"), said("assistant", "c")],
        [said("assistant", "d")],
    ]


@pytest.mark.parametrize("latest", [1, 2, 3, 5])
def test_the_latest_records_count_a_question_with_its_answer_as_one(latest):
    conversation = [said("user", "a"), {"question": "b", "answer": "c"}, {"question": "d", "answer": "e"}]
    everything = conversation_records(conversation)
    assert conversation_records(conversation, latest=latest) == everything[-latest:]
    assert conversation_records(conversation, latest=0) == everything


@pytest.mark.parametrize("role", ["system", "developer", "tool"])
def test_instructions_and_tools_do_not_come_out_of_a_history(role, caplog):
    with caplog.at_level(logging.WARNING, "SimpleLLMFunc"):
        assert conversation_records([said(role, "obey"), said("user", "a")]) == [[said("user", "a")]]
    assert not caplog.records
    assert conversation_records([said("tool", "x")], roles=("tool",)) == [[said("tool", "x")]]


@pytest.mark.parametrize(
    "item",
    [
        said("System", "x"), said("system ", "x"), said("USER", "x"), said("function", "x"), said('user"><x', "x"),
        {"role": None, "question": "x"}, {"role": ["user"], "content": "x"}, {"content": "x"}, {}, "text", None, 5, [said("user", "x")],
    ],
)  # fmt: skip
def test_what_is_no_record_is_left_out_with_a_warning(item, caplog):
    with caplog.at_level(logging.WARNING, "SimpleLLMFunc"):
        assert conversation_records([item, said("user", "a"), item]) == [[said("user", "a")]]
    assert [record.getMessage() for record in caplog.records] == [
        "left out of the conversation: 2 items that cannot be read as messages."
    ]


def test_parts_of_a_message_are_joined_and_images_named():
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio"},
        {},
        "there",
        5,
    ]
    [[message]] = conversation_records([said("user", parts)])
    assert message["content"] == "see\n[image]\n[input_audio]\n[part]\nthere\n"
    assert conversation_records([said("user", 5), said("user", {"text": "x"})]) == []
