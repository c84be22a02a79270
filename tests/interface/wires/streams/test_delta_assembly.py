import json
import re
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.interface.wires import ReplyAssembler, assemble_tool_calls, chunk_of_reply, new_call_id, put_right
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, ToolCallDelta


def delta(index=None, call_id=None, name=None, arguments=None, **extra):
    return ToolCallDelta(index, call_id, name, arguments, extra=extra)


def shown(calls):
    """Return what the calls say, their generated ids by number."""
    made = [call.id for call in calls if re.fullmatch(r"call_[0-9a-f]{24}", call.id)]
    names = {call_id: f"new_{number}" for number, call_id in enumerate(made)}
    return [(names.get(call.id, call.id), call.function.name, call.function.arguments) for call in calls]


def assembled(*deltas):
    return shown(assemble_tool_calls(deltas))


def chunk(*, tries=1, usage=None, index=0, finish=None, cached=False, **fields):
    choices = [{"index": index, "delta": fields, "finish_reason": finish}]
    data = {"id": "c", "model": "m", "created": 7, "choices": choices, "usage": usage}
    return ChatCompletionChunk.from_dict(data, tries=tries, cached=cached)


# --- tool calls, provider by provider --------------------------------------------------------------------

CALLS = json.loads(Path(__file__).with_name("calls.json").read_text("utf-8"))
"""The pieces, as index, id, name and arguments or as they stand on the wire; and the calls that they are."""


@pytest.mark.parametrize("case", CALLS)
def test_the_pieces_of_calls_are_put_together(case):
    pieces, calls = CALLS[case]
    deltas = (delta(*piece) if isinstance(piece, list) else ToolCallDelta.from_dict(piece) for piece in pieces)
    assert assembled(*deltas) == [tuple(call) for call in calls]


def test_named_entries_of_one_chunk_are_calls_of_their_own():
    call = {"index": 0, "function": {"name": "now", "arguments": ""}}
    calls = put_together(chunk(tool_calls=[call, call]))[0].completion().tool_calls
    assert shown(calls) == [("new_0", "now", "{}"), ("new_1", "now", "{}")]


def test_extra_fields_of_a_call_are_kept_and_generated_ids_are_unique():
    signature = {"google": {"thought_signature": "s1"}}
    (call,) = assemble_tool_calls([delta(None, "a", "f", "{", extra_content=signature), delta(arguments="}")])
    assert (call.extra, call.function.arguments) == ({"extra_content": signature}, "{}")
    assert len({new_call_id() for _ in range(100)}) == 100


# --- whole replies ---------------------------------------------------------------------------------------


COUNT = ChatCompletionChunk.from_dict({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}})
CALL = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}


def put_together(*chunks):
    """Return the assembler, and after each chunk whether the answer was complete."""
    assembler, complete = ReplyAssembler(), []
    for one in chunks:
        assembler.add(one)
        complete.append(assembler.is_complete)
    return assembler, complete


def test_a_text_is_put_together_with_all_its_facts():
    assembler, complete = put_together(
        chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo"), chunk(finish="stop"), COUNT
    )
    reply = assembler.completion()
    assert complete == [False, False, False, True, True]
    assert assembler.text == reply.text == "Hello"
    assert (reply.finish_reason, reply.id, reply.model, reply.created, reply.tries) == ("stop", "c", "m", 7, 1)
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens) == (2, 5)
    assert reply.raw["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}
    empty = ReplyAssembler()
    reply = empty.completion()
    assert (empty.text, empty.is_complete, reply.choices, reply.tries, reply.cached) == ("", False, (), 1, False)


def test_content_is_null_where_only_tools_are_called_and_empty_where_nothing_was_said():
    first = chunk(role="assistant", content="")
    assert put_together(first)[0].completion().message.content == ""
    assert put_together(first, chunk(tool_calls=[CALL]))[0].completion().message.content is None


def test_reasoning_refusal_and_logprobs_add_up_next_to_the_answer():
    pieces = [chunk(content=None, reasoning_content="let me "), chunk(content=None, reasoning="think")]
    for part in ("no ", "no "):
        choice = {"index": 0, "delta": {"refusal": part}, "logprobs": {"content": [{"token": part}]}}
        pieces.append(ChatCompletionChunk.from_dict({"choices": [choice]}))
    reply = put_together(*pieces, chunk(content="42"))[0].completion()
    assert (reply.text, reply.message.reasoning_content, reply.message.refusal) == ("42", "let me think", "no no ")
    assert reply.raw["choices"][0]["message"]["reasoning_content"] == "let me think"
    assert reply.choices[0].logprobs == {"content": [{"token": "no "}, {"token": "no "}]}


def test_several_choices_are_kept_apart_and_the_lowest_index_is_the_text():
    assembler, complete = put_together(
        *(chunk(index=1, content="b"), chunk(index=0, content="a")),
        *(chunk(index=0, finish="stop"), chunk(index=1, finish="stop")),
    )
    assert complete == [False, False, False, True]
    assert [choice.message.content for choice in assembler.completion().choices] == ["a", "b"]
    assert assembler.text == "a"


def test_the_last_usage_counts_and_after_content_it_ends_an_answer_without_finish_reason():
    # One without text ends nothing, where usage came before.
    growing = [chunk(content=text, usage={"completion_tokens": count}) for count, text in enumerate(("x", "x", ""), 1)]
    assembler, complete = put_together(chunk(role="assistant", usage={"prompt_tokens": 5}), *growing)
    assert not any(complete)
    assert assembler.completion().usage.completion_tokens == 3
    assembler.add(COUNT)
    assert assembler.is_complete


def test_a_higher_number_of_tries_begins_again():
    first = [chunk(tool_calls=[CALL]), chunk(reasoning_content="first")]
    reply = put_together(*first, chunk(tries=2, content="second"))[0].completion()
    assert (reply.tool_calls, reply.message.reasoning_content) == ([], None)
    assert (reply.text, reply.tries) == ("second", 2)


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"),
    [
        ("reasoning_details", [{"a": 1}], [{"b": 2}], [{"a": 1}, {"b": 2}]), ("citations", ["u"], ["u"], ["u"]),
        ("audio", {"id": "i", "data": "AA"}, {"data": "BB"}, {"id": "i", "data": "AABB"}),
        ("kind", "text", "text", "text"), ("score", 1, None, 1), ("flag", None, True, True), ("data", "a", "b", "ab"),
        ("mixed", "a", {"b": 1}, {"b": 1}), ("mixed", {"b": 1}, ["c"], ["c"]),
    ],
)  # fmt: skip
def test_fields_beyond_the_protocol_add_up(name, first, second, expected):
    pieces = [chunk(**{name: first}), chunk(**{name: second})]
    assert put_together(*pieces)[0].completion().message.extra == {name: expected}
    # Nothing of the chunks themselves was changed.
    assert put_together(pieces[0])[0].completion().message.extra == {name: first}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


NAMED = st.tuples(st.text(min_size=1, max_size=6), st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3))
SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=10)


@given(text=TEXTS, calls=st.lists(NAMED, max_size=3), sizes=SIZES, repeats=st.booleans())
def test_any_split_of_the_deltas_gives_the_same_reply(text, calls, sizes, repeats):
    def pieces(whole):
        for size in cycle(sizes):
            if not whole:
                return
            yield whole[:size]
            whole = whole[size:]

    wire = [(f"id{number}", name, json.dumps(arguments)) for number, (name, arguments) in enumerate(calls)]
    assembler = ReplyAssembler(chunk(content=piece) for piece in pieces(text))
    for index, (id_, name, arguments) in enumerate(wire):
        assembler.add(chunk(tool_calls=[{"index": index, "id": id_, "function": {"name": name, "arguments": ""}}]))
        for piece in pieces(arguments):
            function = {"name": name, "arguments": piece} if repeats else {"arguments": piece}
            again = {"id": id_} if repeats else {}
            assembler.add(chunk(tool_calls=[{"index": index, **again, "function": function}]))
    reply = assembler.completion()
    assert reply.text == text
    assert shown(reply.tool_calls) == wire


def test_a_long_stream_is_linear_work():
    reply = put_together(*[chunk(content="xy", audio={"data": "z"})] * 30_000)[0].completion()
    assert (len(reply.text), len(reply.message.extra["audio"]["data"])) == (60_000, 30_000)


@pytest.mark.parametrize("character", ["a", "{", "}{"])
def test_an_id_with_every_piece_is_linear_work(monkeypatch, character):
    read = []
    real = json.loads
    monkeypatch.setattr(json, "loads", lambda text: read.append(text) or real(text))
    pieces = ['{"x": "', *(character * 25_000), '"}']
    assert assembled(*(delta(0, "a", "f", piece) for piece in pieces)) == [("a", "f", "".join(pieces))]
    assert len(read) < 20


def test_the_calls_of_a_whole_reply_are_put_right():
    given = [
        {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "a", "function": {"name": "g", "arguments": ""}}, {"function": {"name": "h"}, "extra_content": {"s": 1}},
    ]  # fmt: skip
    calls = put_right(ChatCompletion.from_dict({"choices": [{"message": {"tool_calls": given}}]})).tool_calls
    assert shown(calls) == [("a", "f", '{"x": 1}'), ("new_0", "g", "{}"), ("new_1", "h", "{}")]
    assert calls[2].extra == {"extra_content": {"s": 1}}
    assert calls[1].id != calls[2].id


def test_a_whole_reply_as_one_chunk_adds_up_to_itself():
    one = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {
        "content": "x", "tool_calls": [one, {**one, "id": "b"}], "reasoning_content": "r", "refusal": "no",
        "extra_content": {"s": 1},
    }  # fmt: skip
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": [1]}}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    data = {"id": "i", "model": "m", "created": 3, "choices": [choice], "usage": usage}
    whole = put_right(ChatCompletion.from_dict(data, tries=3))
    assembler, complete = put_together(chunk_of_reply(whole))
    assert (assembler.completion(), complete, assembler.completion().tries) == (whole, [True], 3)


@pytest.mark.parametrize(("cached", "tries"), [(True, 0), (False, 1)])
def test_what_comes_from_a_cache_says_so(cached, tries):
    reply = put_together(chunk(content="x", finish="stop", tries=tries, cached=cached))[0].completion()
    assert (reply.cached, reply.tries) == (cached, tries)
