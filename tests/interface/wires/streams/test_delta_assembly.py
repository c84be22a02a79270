import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.interface.wires.streams import delta_assembly as assembler
from SimpleLLMFunc.interface.wires.streams.delta_assembly import (
    ReplyAssembler,
    assemble_tool_calls,
    new_call_id,
    rekeyed,
)
from SimpleLLMFunc.type.completion import ChatCompletionChunk, FunctionCall, ToolCall, ToolCallDelta


def delta(index=None, call_id=None, name=None, arguments=None, **extra):
    return ToolCallDelta(index, call_id, name, arguments, extra=extra)


def shown(calls):
    """Return what the calls say, their generated ids by number."""
    made = [call.id for call in calls if re.fullmatch(r"call_[0-9a-f]{24}", call.id)]
    names = {call_id: f"new_{number}" for number, call_id in enumerate(made)}
    return [(names.get(call.id, call.id), call.function.name, call.function.arguments) for call in calls]


def assembled(*deltas):
    return shown(assemble_tool_calls(deltas))


def chunk(*, tries=1, usage=None, index=0, finish=None, **fields):
    data = {
        "id": "c",
        "model": "m",
        "created": 7,
        "choices": [{"index": index, "delta": fields, "finish_reason": finish}],
    }
    if usage:
        data["usage"] = usage
    return ChatCompletionChunk.from_dict(data, tries=tries)


# --- tool calls, provider by provider --------------------------------------------------------------------


def test_openai_id_and_name_first_then_arguments_by_index():
    assert assembled(
        delta(0, "a", "f", ""),
        delta(0, arguments='{"x"'),
        delta(1, "b", "g", ""),
        delta(0, arguments=": 1}"),
        delta(1, arguments="{}"),
    ) == [("a", "f", '{"x": 1}'), ("b", "g", "{}")]


def test_the_index_orders_the_calls():
    assert assembled(delta(1, "b", "g", "{}"), delta(0, "a", "f", "{}")) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_gemini_without_index_each_named_piece_is_a_call():
    assert assembled(delta(None, "a", "f", '{"x": 1}'), delta(None, "b", "f", '{"x": 2}')) == [
        ("a", "f", '{"x": 1}'),
        ("b", "f", '{"x": 2}'),
    ]
    assert assembled(delta(name="f", arguments='{"x": 1}'), delta(name="f", arguments='{"x": 2}')) == [
        ("new_0", "f", '{"x": 1}'),
        ("new_1", "f", '{"x": 2}'),
    ]


def test_gemini_arguments_split_across_pieces_without_index():
    assert assembled(delta(None, "a", "f", '{"city": '), delta(arguments='"Bern"'), delta(arguments="}")) == [
        ("a", "f", '{"city": "Bern"}')
    ]
    assert assembled(delta(None, "a", "f"), delta(None, "a", None, '{"x"'), delta(None, "a", None, ":1}")) == [
        ("a", "f", '{"x":1}')
    ]


def test_ollama_index_zero_for_all_with_different_ids():
    assert assembled(delta(0, "a", "f", '{"x": 1}'), delta(0, "b", "f", '{"x": 1}')) == [
        ("a", "f", '{"x": 1}'),
        ("b", "f", '{"x": 1}'),
    ]


def test_ollama_index_zero_for_all_interleaved_by_id():
    assert assembled(
        delta(0, "a", "f", "{"), delta(0, "b", "g", "{"), delta(0, "a", None, "}"), delta(0, "b", None, "}")
    ) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_ollama_index_zero_for_all_without_ids():
    assert assembled(delta(0, None, "f", '{"x": 1}'), delta(0, None, "f", '{"x": 2}'), delta(0, None, "g", "{}")) == [
        ("new_0", "f", '{"x": 1}'),
        ("new_1", "f", '{"x": 2}'),
        ("new_2", "g", "{}"),
    ]


def test_ollama_arguments_as_an_object():
    wire = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": "ü"}}},
        {"index": 0, "id": "b", "function": {"name": "g", "arguments": {}}},
    ]
    assert assembled(*map(ToolCallDelta.from_dict, wire)) == [("a", "f", '{"x": "ü"}'), ("b", "g", "{}")]


def test_vllm_id_and_name_repeated_in_each_piece():
    assert assembled(
        delta(0, "a", "tt", ""), delta(0, "a", "tt", '{"x"'), delta(0, "a", "tt", ": 1"), delta(0, "a", "tt", "}")
    ) == [("a", "tt", '{"x": 1}')]


def test_vllm_name_repeated_without_id():
    assert assembled(
        delta(0, "a", "tt", ""), delta(0, None, "tt", '{"x"'), delta(0, None, "tt", ": {}"), delta(0, None, "tt", "}")
    ) == [("a", "tt", '{"x": {}}')]


def test_a_repeated_name_after_the_end_of_the_arguments_changes_nothing():
    assert assembled(delta(0, "a", "f", "{}"), delta(0, "a", "f", ""), delta(0, "a", "f", "\n")) == [("a", "f", "{}\n")]


def test_an_empty_name_is_no_name():
    wire = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "id": "", "function": {"name": "", "arguments": "{}"}},
    ]
    assert assembled(*map(ToolCallDelta.from_dict, wire)) == [("a", "f", "{}")]


@pytest.mark.parametrize("names", [["get_", "weather"], ["get_", "get_weather"], ["get_weather", "get_weather"]])
def test_a_name_in_pieces_growing_or_repeated(names):
    deltas = [delta(0, "a", names[0], ""), delta(0, None, names[1], ""), delta(0, None, None, "{}")]
    assert assembled(*deltas) == [("a", "get_weather", "{}")]


def test_an_id_that_changes_with_each_piece_does_not_split_the_call():
    assert assembled(delta(0, "a", "f", ""), delta(0, "b", None, '{"x"'), delta(0, "c", None, ":1}")) == [
        ("a", "f", '{"x":1}')
    ]


def test_two_calls_with_the_same_id_are_told_apart():
    assert assembled(delta(0, "same", "f", "{}"), delta(1, "same", "g", "{}")) == [
        ("same", "f", "{}"),
        ("new_0", "g", "{}"),
    ]
    assert assembled(delta(None, "same", "f", '{"x": 1}'), delta(None, "same", "f", '{"x": 2}')) == [
        ("same", "f", '{"x": 1}'),
        ("new_0", "f", '{"x": 2}'),
    ]


@pytest.mark.parametrize("arguments", ["", None, "  "])
def test_no_arguments_are_an_empty_object(arguments):
    assert assembled(delta(0, "a", "now", arguments)) == [("a", "now", "{}")]


def test_named_entries_of_one_chunk_are_calls_of_their_own():
    assembler = ReplyAssembler()
    call = {"index": 0, "function": {"name": "now", "arguments": ""}}
    assembler.add(chunk(tool_calls=[call, call]))
    assert shown(assembler.completion().tool_calls) == [("new_0", "now", "{}"), ("new_1", "now", "{}")]


def test_extra_fields_of_a_call_are_kept():
    signature = {"google": {"thought_signature": "s1"}}
    (call,) = assemble_tool_calls([delta(None, "a", "f", "{", extra_content=signature), delta(arguments="}")])
    assert call.extra == {"extra_content": signature}
    assert call.to_dict()["extra_content"] == signature
    assert call.function.arguments == "{}"


def test_generated_ids_are_unique():
    assert len({new_call_id() for _ in range(100)}) == 100
    first, second = rekeyed([ToolCall("", FunctionCall("f", "{}")), ToolCall("", FunctionCall("f", "{}"))])
    assert first.id != second.id
    assert first.id.startswith("call_")


# --- whole replies ---------------------------------------------------------------------------------------


def test_a_text_is_put_together_with_all_its_facts():
    assembler = ReplyAssembler()
    assert assembler.text == ""
    assert not assembler.is_complete
    assembler.add(chunk(role="assistant", content=""))
    assembler.add(chunk(content="Hel"))
    assert assembler.text == "Hel"
    assembler.add(chunk(content="lo"))
    assert not assembler.is_complete
    assembler.add(chunk(finish="stop"))
    assert assembler.is_complete
    assembler.add(ChatCompletionChunk.from_dict({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}}))
    reply = assembler.completion()
    assert (reply.text, reply.finish_reason, reply.id, reply.model, reply.created) == ("Hello", "stop", "c", "m", 7)
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens) == (2, 5)
    assert reply.raw["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}
    assert reply.tries == 1


def test_nothing_added_is_an_empty_reply():
    reply = ReplyAssembler().completion()
    assert reply.choices == ()
    assert reply.text == ""


def test_content_is_null_where_only_tools_are_called_and_empty_where_nothing_was_said():
    assembler = ReplyAssembler()
    assembler.add(chunk(role="assistant", content=""))
    assert assembler.completion().message.content == ""
    assembler.add(chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]))
    assert assembler.completion().message.content is None


def test_reasoning_stays_apart_from_the_answer():
    assembler = ReplyAssembler()
    assembler.add(chunk(content=None, reasoning_content="let me "))
    assembler.add(chunk(content=None, reasoning="think"))
    assembler.add(chunk(content="42"))
    reply = assembler.completion()
    assert reply.text == "42"
    assert reply.message.reasoning_content == "let me think"
    assert reply.raw["choices"][0]["message"]["reasoning_content"] == "let me think"


def test_refusal_and_logprobs_add_up():
    assembler = ReplyAssembler()
    for part in ("I ", "won't"):
        assembler.add(
            ChatCompletionChunk.from_dict(
                {"choices": [{"index": 0, "delta": {"refusal": part}, "logprobs": {"content": [{"token": part}]}}]}
            )
        )
    reply = assembler.completion()
    assert reply.message.refusal == "I won't"
    assert reply.choices[0].logprobs == {"content": [{"token": "I "}, {"token": "won't"}]}


def test_several_choices_are_kept_apart_and_the_lowest_index_is_the_text():
    assembler = ReplyAssembler()
    assembler.add(chunk(index=1, content="b"))
    assembler.add(chunk(index=0, content="a"))
    assembler.add(chunk(index=0, finish="stop"))
    assert not assembler.is_complete
    assembler.add(chunk(index=1, finish="stop"))
    assert assembler.is_complete
    assert [choice.message.content for choice in assembler.completion().choices] == ["a", "b"]
    assert assembler.text == "a"


def test_usage_in_every_chunk_is_counted_once():
    assembler = ReplyAssembler()
    for count in (1, 2, 3):
        assembler.add(chunk(content="x", usage={"prompt_tokens": 5, "completion_tokens": count}))
        assert not assembler.is_complete
    assert assembler.completion().usage.completion_tokens == 3


def test_the_usage_after_content_ends_an_answer_without_finish_reason():
    assembler = ReplyAssembler()
    assembler.add(chunk(role="assistant", usage={"prompt_tokens": 5}))
    assert not assembler.is_complete
    assembler.add(chunk(content="x"))
    assert not assembler.is_complete
    assembler.add(ChatCompletionChunk.from_dict({"choices": [], "usage": {"prompt_tokens": 5}}))
    assert assembler.is_complete


def test_a_higher_number_of_tries_begins_again():
    assembler = ReplyAssembler()
    assembler.add(chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x'}}]))
    assembler.add(chunk(reasoning_content="first"))
    assembler.add(chunk(tries=2, content="second"))
    reply = assembler.completion()
    assert reply.tool_calls == []
    assert reply.message.reasoning_content is None
    assert (reply.text, reply.tries) == ("second", 2)


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"),
    [
        ("reasoning_details", [{"a": 1}], [{"b": 2}], [{"a": 1}, {"b": 2}]),
        ("citations", ["u"], ["u"], ["u"]),
        ("audio", {"id": "i", "data": "AA"}, {"data": "BB"}, {"id": "i", "data": "AABB"}),
        ("kind", "text", "text", "text"),
        ("score", 1, None, 1),
        ("flag", None, True, True),
        ("data", "a", "b", "ab"),
        ("mixed", "a", {"b": 1}, {"b": 1}),
        ("mixed", {"b": 1}, ["c"], ["c"]),
    ],
)
def test_fields_beyond_the_protocol_add_up(name, first, second, expected):
    assembler = ReplyAssembler()
    assembler.add(chunk(**{name: first}))
    assembler.add(chunk(**{name: second}))
    assert assembler.completion().message.extra == {name: expected}
    # Nothing of the chunks themselves was changed.
    again = ReplyAssembler()
    again.add(chunk(**{name: first}))
    assert again.completion().message.extra == {name: first}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(
    text=TEXTS,
    calls=st.lists(
        st.tuples(st.text(min_size=1, max_size=6), st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3)),
        max_size=3,
    ),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=10),
    repeats=st.booleans(),
)
def test_any_split_of_the_deltas_gives_the_same_reply(text, calls, sizes, repeats):
    def pieces(whole):
        at, turn = 0, 0
        while at < len(whole):
            size = sizes[turn % len(sizes)]
            yield whole[at : at + size]
            at, turn = at + size, turn + 1

    wire = [(f"id{number}", name, json.dumps(arguments)) for number, (name, arguments) in enumerate(calls)]
    assembler = ReplyAssembler()
    for piece in pieces(text):
        assembler.add(chunk(content=piece))
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
    assembler = ReplyAssembler()
    for _ in range(30_000):
        assembler.add(chunk(content="xy", audio={"data": "z"}))
    reply = assembler.completion()
    assert len(reply.text) == 60_000
    assert len(reply.message.extra["audio"]["data"]) == 30_000


def test_what_comes_from_a_cache_says_so():
    cached = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}
    assembler = ReplyAssembler()
    assembler.add(ChatCompletionChunk.from_dict(cached, tries=0, cached=True))
    reply = assembler.completion()
    assert (reply.cached, reply.tries) == (True, 0)
    assembler = ReplyAssembler()
    assembler.add(ChatCompletionChunk.from_dict(cached))
    assert (assembler.completion().cached, assembler.completion().tries) == (False, 1)


@pytest.mark.parametrize("end", [['"}'], ['"} and', *["more"] * 20], [], ['"}', *[" "] * 20]])
def test_an_id_with_every_piece_costs_at_most_one_reading(monkeypatch, end):
    """Not one for each piece: arguments of a megabyte come in a hundred thousand."""
    read = []
    real = assembler.json.loads
    monkeypatch.setattr(assembler.json, "loads", lambda text: read.append(text) or real(text))
    pieces = ['{"x": "', *["ab}"] * 500, *end]
    assert assembled(*(delta(0, "a", "f", piece) for piece in pieces)) == [("a", "f", "".join(pieces))]
    assert len(read) <= 1
