"""A stream read and put together: its events, however they are cut; linear in its length, never an error of Python's own."""

from __future__ import annotations

import itertools
import json
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.errors import BadReply, SimpleLLMFuncError
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.wires import CHAT, Received
from SimpleLLMFunc.interface.wires.streams.events import EventDecoder, ServerSentEvent
from tests.interface.wires.test_recordings import read_stream


def decoded(*pieces: bytes) -> list[ServerSentEvent]:
    decoder = EventDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    last = decoder.close()
    return events if last is None else [*events, last]


def texts(*pieces: bytes) -> list[str]:
    return [event.data.decode("utf-8", "replace") for event in decoded(*pieces)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_line_end_of_the_protocol_counts(end):
    stream = end.join([b"data: one", b"", b"data: two", b"", b""])
    assert texts(stream) == ["one", "two"]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data:no space\n\n", ["no space"]), (b"data:  two spaces\n\n", [" two spaces"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]), (b"data\ndata\n\n", ["\n"]), (b": comment\n\ndata: x\n\n", ["x"]),
        (b"data: x\n: in between\ndata: y\n\n", ["x\ny"]), (b"id: 7\nretry: 10\ndata: x\n\n", ["x"]),
        (b"unknown: y\ndata: x\n\n", ["x"]), (b"\n\n\n", []), (b"", []), (b"event: ping\n\ndata: x\n\n", ["x"]),
        (b"\xef\xbb\xbfdata: bom\n\n", ["bom"]), (b"data: \xff\n\n", ["\ufffd"]), (b"datax: no\ndata: yes\n\n", ["yes"]),
        ("data: caf\u00e9 \u2028 \u0085 \x0b\x0c x\n\n".encode(), ["caf\u00e9 \u2028 \u0085 \x0b\x0c x"]),
        # What the end cut off is left to the reader.
        (b"data: a\n\ndata: b", ["a", "b"]), (b"data: a\n\ndata: b\n", ["a", "b"]), (b"data: a\n\n: comm", ["a"]),
        (b"data: a\n\nda", ["a"]), (b"data: a\n\n\xef\xbb\xbfdata: no\n\n", ["a"]),
    ],
)  # fmt: skip
def test_a_stream_is_read_as_the_standard_says(stream, expected):
    assert texts(stream) == expected


@pytest.mark.parametrize("line", [b"\x00data: %b", b"dat: %b", b":data: %b", b"%b", b"id: %b"])
def test_a_piece_of_an_answer_under_a_broken_name_is_not_dropped(line):
    # Dropped, the answer would be shorter, and nobody would know.
    chunk = b'{"choices": []}'
    assert texts(line % chunk + b"\n\n") == [(line % chunk).decode()]


def test_the_type_belongs_to_its_event_only():
    events = decoded(b"event: error\ndata: a\n\ndata: b\n\nevent: x\n\ndata: c\n\n")
    assert [(event.event, event.data) for event in events] == [("error", b"a"), ("", b"b"), ("", b"c")]


def test_an_event_is_given_out_as_soon_as_it_is_complete():
    decoder = EventDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert [event.data for event in decoder.feed(b"\n")] == [b"a"]
    assert decoder.feed(b"data: b\r") == []
    # The blank line is complete with its CR; the LF that may follow is no second blank line.
    assert [event.data for event in decoder.feed(b"\n\r")] == [b"b"]
    assert decoder.feed(b"\n") == decoder.feed(b"data: c\r") == decoder.feed(b"\n") == []
    assert [event.data for event in decoder.feed(b"\n")] == [b"c"]
    assert decoder.close() is None


FIELD = st.sampled_from(["data: ", "data:", "data", ": ", "event: ", "id: ", "other: "])
TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
LINES = st.lists(st.one_of(st.builds(str.__add__, FIELD, TEXT), st.just("")), max_size=12)


ENDS, BOM = st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from([b"", b"\xef\xbb\xbf"])
STREAMS = st.builds(lambda lines, end, bom: bom + "".join(line + end for line in lines).encode(), LINES, ENDS, BOM)


@given(stream=STREAMS | st.binary(max_size=200), cuts=st.lists(st.integers(0, 400), max_size=20))
@example(stream="\ufeffdata: é\r\n\r\ndata: x\r\n\r\n".encode(), cuts=list(range(40)))
@settings(max_examples=200)
def test_any_bytes_are_survived_and_any_split_gives_the_same_events(stream, cuts):
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut <= len(stream))})
    pieces = [stream[left:right] for left, right in itertools.pairwise(edges)]
    assert decoded(*pieces) == decoded(stream)
    assert decoded(*(stream[at : at + 1] for at in range(len(stream)))) == decoded(stream)


def test_a_long_line_in_many_pieces_is_joined_once():
    decoder = EventDecoder()
    assert decoder.feed(b"data: ") == []
    for _ in range(20_000):
        decoder.feed(b"xy")
    (event,) = decoder.feed(b"\n\n")
    assert len(event.data) == 40_000


# --- events put together ------------------------------------------------------------------------------------


def event(index, **delta):
    data = json.dumps({"id": "1", "choices": [{"index": index, "delta": delta}]})
    return f"data: {data}\n\n".encode()


def read(stream):
    """Return the reply that a stream adds up to."""
    return read_stream(CHAT, stream, len(stream))


def steps(stream):
    """Return how many lines of Python are carried out while a stream is read."""
    done = 0

    def count(_frame, what, _argument):
        nonlocal done
        done += what == "line"
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


def test_half_a_character_at_the_end_and_an_event_without_data_say_nothing():
    half = b'data: {"choices":[{"delta":{"content":"a\\ud83c"}}]}\n\n'
    assert read(b"data:\n\n" + half + b"event: keepalive\ndata: \n\ndata: [DONE]\n\n").text == "a"


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


@pytest.mark.parametrize("character", ["\U00010000", "\U0001f327", "\U0010ffff"])
def test_the_halves_of_a_character_that_two_events_bring_are_joined(character):
    first, _, second = json.dumps(character)[1:-1].rpartition("\\")
    halves = [event(0, content="TEXT").replace(b"TEXT", text.encode()) for text in ("a" + first, f"\\{second}b")]
    decoder = CHAT.decoder(Received("m"))
    assert [chunk.text for half in halves for chunk in decoder.feed(half)] == ["a", character + "b"]
    assert read(halves[0] + b"data: [DONE]\n\n").text == "a"
