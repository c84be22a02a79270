"""A stream read and put together: linear in its length, and never an error of Python's own."""

from __future__ import annotations

import json
import sys

import pytest

from SimpleLLMFunc.errors import BadReply, SimpleLLMFuncError
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.wires import CHAT, Received
from tests.interface.wires.test_recordings import read_stream


def event(index, **delta):
    data = json.dumps({"id": "1", "choices": [{"index": index, "delta": delta}]})
    return f"data: {data}\n\n".encode()


def read(stream):
    """Return the reply that a stream adds up to."""
    return read_stream(CHAT, stream, len(stream))


def steps(stream):
    """Return how many instructions of Python are carried out while a stream is read."""
    done = 0

    def count(frame, what, _argument):
        nonlocal done
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        done += what == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        read(stream)
    finally:
        sys.settrace(before)
    return done


def choices(count):
    return b"".join(event(number, content=f"{number}") for number in range(count)) + b"data: [DONE]\n\n"


def calls(count, *, same_index):
    def delta(number):
        function = {"name": "f", "arguments": "{}"}
        return {"tool_calls": [{"index": 0 if same_index else number, "id": f"c{number}", "function": function}]}

    return b"".join(event(0, **delta(number)) for number in range(count)) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    "stream",
    [choices, lambda count: calls(count, same_index=True), lambda count: calls(count, same_index=False)],
    ids=["choices", "calls of one index", "calls"],
)
def test_many_numbers_in_a_stream_take_work_in_proportion(stream):
    once, twice = steps(stream(300)), steps(stream(600))
    assert twice < 2.2 * once


def test_many_numbers_are_put_together_in_order():
    reply = read(event(2, content="c") + event(0, content="a") + choices(3))
    assert [(choice.index, choice.message.content) for choice in reply.choices] == [(0, "a0"), (1, "1"), (2, "c2")]
    assert [call.id for call in read(calls(30, same_index=True)).tool_calls] == [f"c{number}" for number in range(30)]


def test_the_halves_of_a_character_that_two_events_bring_are_joined():
    halves = [
        b'data: {"choices":[{"delta":{"content":"a\\ud83c"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\udf27b"}}]}\n\n',
    ]
    decoder = CHAT.decoder(Received("m"))
    assert [chunk.text for half in halves for chunk in decoder.feed(half)] == ["a", "\U0001f327b"]
    assert read(halves[0] + b"data: [DONE]\n\n").text == "a"


TEXT = '"content":"a\\ud800"'
PLACES = {  # what the message holds, and what stands beside the choices
    "beside the content": (TEXT + ',"data":DEEP', ""),
    "in the content": ('"content":[{"text":"a\\ud800"},DEEP]', ""),
    "in the arguments": (TEXT + ',"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":DEEP}}]', ""),
    "beside the choices": (TEXT, '"x":DEEP,'),
    "in the usage": (TEXT, '"usage":{"x":DEEP},'),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("levels", [150, 190, 300, 450, 700, 990, 5000])
@pytest.mark.parametrize("pair", ["[]", "{}"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_any_depth_is_read_or_is_a_bad_reply(place, levels, pair, stream):
    opening = "[" if pair == "[]" else '{"a":'
    deep = opening * levels + "1" + pair[1] * levels
    said, more = PLACES[place]
    choice = '{"index":0,"finish_reason":"stop","%s":{%s}}' % ("delta" if stream else "message", said)
    body = ("{%s" % more + '"choices":[%s]}' % choice).replace("DEEP", deep)
    try:
        if stream:
            reply = read(f"data: {body}\n\ndata: {body}\n\ndata: [DONE]\n\n".encode())
        else:
            reply = CHAT.reply(body.encode(), Received("m"))
    except (AttemptFailed, SimpleLLMFuncError) as error:
        assert isinstance(getattr(error, "error", error), BadReply)
        assert levels > 180
    else:
        assert levels < 200
        assert reply.choices
