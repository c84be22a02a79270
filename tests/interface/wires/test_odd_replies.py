"""Recorded replies with any field missing, doubled or of another kind, and their events dropped, doubled and moved.

The oracle: a reply, or an error of ours; never a foreign exception.
"""

import json
import random
from typing import Any

import pytest

from SimpleLLMFunc.errors import ContentBlocked, RateLimited, ServerUnavailable, SimpleLLMFuncError, StreamInterrupted
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.wires import CHAT, Received, citations_in, server_tools_in
from tests.interface.wires.test_recordings import DATA, FILES, WIRES, read_stream

ROUNDS = 30
"""Of each recording."""

ODD = [None, True, 0, -1, 1.5, 10**400, float("nan"), "", "x", "7", "\ud800", [], {}, [None], [[]], ["x"], {"a": 1}]
SIZE = 20_000
"""Bytes of a recording; those that are longer hold nothing else."""


def places_in(data):
    """Every container in `data`, with each of its keys."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in items for place in ((data, key), *places_in(value))]


def spoil(data, draw):
    """Change one or two fields."""
    for _ in range(draw.randint(1, 2)):
        places = places_in(data)
        if not places:
            return
        container, key = draw.choice(places)
        if draw.random() < 0.3:
            del container[key]
        else:
            container[key] = draw.choice(ODD)


def spoilt_stream(body, draw):
    """Change some events, and drop, double or move others."""
    events = [event for event in body.replace(b"\r\n", b"\n").split(b"\n\n") if b"data:" in event]
    for _ in range(draw.randint(0, 2)):
        event = events.pop(draw.randrange(len(events)))
        for _ in range(draw.randint(0, 2)):
            events.insert(draw.randint(0, len(events)), event)
        if not events:
            return event
    for _ in range(draw.randint(0, 3)):
        at = draw.randrange(len(events))
        name, _, data = events[at].partition(b"data:")
        try:
            value = json.loads(data)
        except ValueError:
            continue
        spoil(value, draw)
        events[at] = name + b"data: " + json.dumps(value).encode()
    return b"\n\n".join(events) + b"\n\n"


def read(wire, body, *, stream):
    if stream:
        reply = read_stream(wire, body, len(body))
    else:
        wire.error(body, Received("m", status=400, sent=b"{}"))
        reply = wire.reply(body, Received("m", sent=b"{}"))
    message = {**reply.message.extra, "content": reply.text}
    return server_tools_in([message, message]), citations_in(message)


@pytest.mark.parametrize("name", WIRES)
def test_an_odd_reply_is_read_or_refused(name):
    draw, read_well, refused = random.Random(7), 0, 0
    for file in FILES:
        body = (DATA / file).read_bytes()
        if not file.startswith(name) or len(body) > SIZE:
            continue
        for _ in range(ROUNDS):
            if file.endswith(".sse"):
                odd = spoilt_stream(body, draw)
            else:
                data = json.loads(body)
                spoil(data, draw)
                odd = json.dumps(data.get("response") or data if isinstance(data, dict) else data).encode()
            try:
                read(WIRES[name], odd, stream=file.endswith(".sse"))
                read_well += 1
            except (AttemptFailed, SimpleLLMFuncError):
                refused += 1
    assert read_well > 100
    assert refused > 100


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_in_a_stream_is_told_though_it_comes_without_its_kind(wire):
    with pytest.raises(AttemptFailed) as caught:
        read(WIRES[wire], b'data: {"error": {"message": "all slots are taken", "code": 503}}\n\n', stream=True)
    assert "all slots are taken" in str(caught.value.error)


def streamed(wire, *events):
    return read_stream(WIRES[wire], b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in events), 1 << 30)


def test_the_input_of_a_call_may_come_with_its_beginning():
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}
    ended = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    begun = {"type": "content_block_start", "index": 0, "content_block": call}
    delta = {"type": "input_json_delta", "partial_json": '{"x": 1}'}
    again = {"type": "content_block_delta", "index": 0, "delta": delta}
    for events in ([begun], [begun, again]):
        assert streamed("messages", *events, ended).tool_calls[0].function.arguments == '{"x": 1}'


def test_what_only_the_last_event_of_responses_tells_counts():
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'}
    begun = {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}}
    output = [call, {**call, "call_id": "b"}, {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]
    end = {"type": "response.completed", "response": {"status": "completed", "output": output}}
    reply = streamed("responses", {"type": "response.created"}, begun, end)
    assert [(each.id, each.function.arguments) for each in reply.tool_calls] == [("a", '{"x": 1}'), ("b", '{"x": 1}')]
    assert reply.message.refusal == "no"
    refused = {"type": "response.refusal.delta", "delta": "n"}, {"type": "response.refusal.delta", "delta": "o"}
    assert streamed("responses", {}, *refused, end).message.refusal == "no", "not again"
    moved = {"type": "response.output_item.done", "output_index": 0, "item": {**call, "call_id": "z"}}
    for told, output in (([moved], []), ([], [moved["item"]])):
        reply = streamed("responses", begun, *told, {**end, "response": {"status": "completed", "output": output}})
        assert [(each.id, each.function.arguments) for each in reply.tool_calls] == [("a", '{"x": 1}')], "not another"
    odd = {**begun, "output_index": 5, "item": {**call, "call_id": {}}}
    assert len(streamed("responses", odd, end).tool_calls) == 3
    items = [{"type": "reasoning"}, call, {**call, "call_id": "b"}]
    ended = [{"type": "response.output_item.done", "output_index": at, "item": items[at]} for at in (0, 2, 1)]
    reply = streamed("responses", *ended, {**end, "response": {"status": "completed", "output": items}})
    assert reply.message.extra["provider_state"]["items"] == items, "in their own order"


def test_a_piece_of_responses_that_names_no_item_belongs_to_the_latest():
    items = [{"type": "function_call", "id": each, "call_id": each, "name": "f", "arguments": ""} for each in "ab"]
    events = []
    for item in items:
        events.append({"type": "response.output_item.added", "item": item})
        events += [{"type": "response.function_call_arguments.delta", "delta": part} for part in ("[", item["id"], "]")]
    reply = streamed("responses", *events, {"type": "response.completed", "response": {"status": "completed"}})
    assert [(each.id, each.function.arguments) for each in reply.tool_calls] == [("a", "[a]"), ("b", "[b]")]


def test_parts_of_the_thinking_of_responses_stand_apart():
    begun = {"type": "response.reasoning_summary_part.added"}
    said = [{"type": "response.reasoning_summary_text.delta", "delta": each} for each in "abc"]
    end = {"type": "response.completed", "response": {"status": "completed"}}
    assert streamed("responses", begun, *said[:2], begun, said[2], end).message.reasoning_content == "ab\n\nc"


def test_the_pieces_of_a_block_are_joined_with_its_beginning_and_all_it_cites():
    begun = {"type": "content_block_start", "content_block": {"type": "text", "text": "He"}}
    cited = [{"type": "citations_delta", "citation": {"url": url}} for url in "ab"]
    deltas = [{"type": "text_delta", "text": "llo"}, *cited]
    grown = [{"type": "content_block_delta", "delta": delta} for delta in deltas]
    closed = {"type": "content_block_stop"}, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    before = begun, grown[0], closed[0]  # which another block of this number follows
    reply = streamed("messages", {}, *before, begun, *grown, *closed)
    (block,) = reply.message.extra["provider_state"]["items"]
    assert (reply.text, block["text"], block["citations"]) == ("HelloHello", "Hello", [{"url": "a"}, {"url": "b"}])


def test_the_citations_of_chat_stand_in_their_kind_or_next_to_it():
    cited = {"url": "u", "title": "t", "start_index": 1, "end_index": 3}
    message = {"content": "Hello", "annotations": [{"type": "url_citation", **cited}, {"type": "x", "x": cited}]}
    assert [(each.url, each.title, each.text) for each in citations_in(message)] == [("u", "t", "el")] * 2


TOLD = {"logprobs": [{"token": "a", "logprob": -1}]}
LOGPROBS: dict[str, dict[str, Any]] = {
    "responses": {"status": "completed", "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "a", **TOLD}]}]},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", "logprobsResult": {
        "chosenCandidates": [{"token": "a", "logProbability": -1}]}}]},
}  # fmt: skip


@pytest.mark.parametrize("wire", LOGPROBS)
def test_log_probabilities_have_the_form_of_chat(wire):
    data, said = LOGPROBS[wire], {"type": "response.output_text.delta", "delta": "a", **TOLD}
    events = [said, {"type": "response.completed", "response": data}] if wire == "responses" else [data]
    whole = WIRES[wire].reply(json.dumps(data).encode(), Received("m"))
    (one,), (other,) = (reply.choices[0].logprobs["content"] for reply in (whole, streamed(wire, *events)))
    assert {"token": "a", "logprob": -1}.items() <= one.items() == other.items()


def test_a_call_of_gemini_grows_where_its_pieces_say():
    pieces = [("$.a[0].b", "stringValue", "x"), ("$.a[0].b", "stringValue", "y"), ("$.a[1]", "numberValue", 2),
              ("$['c d'].e", "boolValue", True), ("$.a[0].n", "nullValue", None), ("$.f.g[0][0]", "numberValue", 3)]  # fmt: skip

    def reply(*pieces):
        calls = [
            {"partialArgs": [{"jsonPath": path, kind: value}], "willContinue": True} for path, kind, value in pieces
        ]
        calls = [{"name": "f", "willContinue": True}, *calls, {}]
        events = [{"candidates": [{"content": {"parts": [{"functionCall": call}]}}]} for call in calls]
        return streamed("gemini", *events, {"candidates": [{"finishReason": "STOP"}]})

    made = {"a": [{"b": "xy", "n": None}, 2], "c d": {"e": True}, "f": {"g": [[3]]}}
    assert json.loads(reply(*pieces).tool_calls[0].function.arguments) == made
    for path in ("$.a[3]", "$[0]", "$", "$.a[0][0].b[1]", "$.a.b"):
        with pytest.raises(AttemptFailed, match="a piece has no place"):
            reply(*pieces, (path, "stringValue", ""))


def test_the_usage_of_gemini_counts_without_a_total_and_of_its_candidates_the_first():
    whole = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}
    usage = [{"usageMetadata": one} for one in ({"promptTokenCount": 5, "candidatesTokenCount": 2}, {"trafficType": 1})]
    assert streamed("gemini", whole, *usage).usage.to_dict().items() >= {"prompt_tokens": 5, "total_tokens": 7}.items()
    other = {"candidates": [{**whole["candidates"][0], "index": 1}], "responseId": "r"}
    reply = streamed("gemini", other, whole, other)
    assert (reply.text, reply.id) == ("a", "r")


def test_what_is_blocked_after_some_text_is_told_with_it():
    said, error = {"type": "response.output_text.delta", "delta": "He"}, {"type": "error", "code": "bio_policy"}
    with pytest.raises(AttemptFailed) as caught:
        streamed("responses", said, error)
    assert (type(caught.value.error), caught.value.error.partial) == (ContentBlocked, "He")


def test_an_error_in_a_choice_or_in_place_of_them_is_told():
    choice = {"message": {"content": "He"}, "delta": {"content": "He"}, "error": {"message": "gone", "code": 429}}
    whole, bare = {"choices": [choice]}, {"message": "gone", "code": 429}
    with pytest.raises(AttemptFailed) as caught:
        read(CHAT, b'{"choices": [{"message": {}, "error": {"message": "gone"}}]}', stream=False)
    assert (type(caught.value.error), caught.value.error.status) == (ServerUnavailable, 503)
    with pytest.raises(AttemptFailed, match="broke off the answer"):
        read(CHAT, b'{"choices": [{"message": {}, "finish_reason": "network_error"}]}', stream=False)
    with pytest.raises(AttemptFailed) as caught:
        read(WIRES["gemini"], b' {"error": {\n"message": "gone", "code": 429\n}}\n', stream=True)
    assert isinstance(caught.value.error, RateLimited)
    for start, said, end in ((b"", whole, b""), (b"data: ", whole, b""), (b"data: ", bare, b": alive\n\nid: 7\n\n")):
        with pytest.raises(AttemptFailed) as caught:
            read(CHAT, start + json.dumps(said).encode() + b"\n\n" + end, stream=bool(start))
        assert isinstance(caught.value.error, RateLimited)
    with pytest.raises(StreamInterrupted, match="the connection was closed"):
        streamed("chat", {"type": "ping", "message": "queued"}, {"choices": [{"delta": {"content": "He"}}]})


@pytest.mark.parametrize("events", [
    [{"type": "content_block_start", "content_block": {"type": kind, "text": "a"}} for kind in ("text", "thinking")],
    [{"type": "response.output_text.delta", "delta": "a"}, {"type": "response.output_item.added", "item": {"type": "reasoning"}}],
])  # fmt: skip
def test_a_model_that_begins_to_think_is_not_writing(events):
    reader = WIRES["messages" if "content_block" in events[0] else "responses"].decoder(Received("m"))
    for event, expected in zip(events, (True, False), strict=True):
        list(reader.feed(b"data: %b\n\n" % json.dumps(event).encode()))
        assert reader.is_writing is expected


@pytest.mark.parametrize("ids", [({"id": "b"}, {"id": "b"}), ({}, {})], ids=["by its id", "by its place"])
def test_a_tool_of_gemini_finds_its_result(ids):
    called, result = ids
    items = [
        {"toolCall": {"toolType": "search", "args": {"q": "a"}, "id": "a"}},
        {"toolCall": {"toolType": "search", "args": {"q": "b"}, **called}},
        {"toolResponse": {"toolType": "search", "response": "two", **result}},
        {"toolResponse": {"toolType": "search", "response": "one", "id": "a"}},
    ]
    found = server_tools_in([{"provider_state": {"wire": "gemini", "items": items}}])
    assert [(tool.input, tool.output) for tool in found] == [({"q": "a"}, "one"), ({"q": "b"}, "two")]
