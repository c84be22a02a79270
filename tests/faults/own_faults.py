"""What only one wire can do wrong: its own events, stop reasons and errors; written in its own words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.faults.replies import STREAM_HEAD, answer_text, body_of, completion, events_of, good, says, sends, streams
from tests.faults.scenario import Scenario, forecast_tool, has, no_tool_ran, tells
from tests.faults.server import Act
from tests.support.connections import Exchange, in_chunk, with_length

ROW = "own"
PARTIAL = 3
"""How many pieces of text arrive before a stream breaks."""

Json = dict[str, Any]


def said(*events: Json | bytes) -> list[bytes]:
    """Events in the wire's own words."""
    return [each if isinstance(each, bytes) else _named(each) for each in events]


def _named(event: Json) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def says_events(*events: Json | bytes) -> Act:
    """These events, and the end of the body."""
    return streams(*said(*events))


def edited(change: Callable[[list[bytes]], list[bytes]]) -> Act:
    """The right answer as a stream, its events changed."""

    async def act(exchange: Exchange) -> None:
        await streams(*change(events_of(answer_text(exchange.request))))(exchange)

    return act


def within(*events: Json | bytes, first: int = 2) -> Act:
    """The right answer up to some text, and then these events; `first` of its events come before the text."""
    return edited(lambda right: [*right[: first + PARTIAL], *said(*events)])


def mapped(change: Callable[[Json], Json]) -> Act:
    """The right answer as a stream, each event changed."""

    def one(event: bytes) -> bytes:
        text = event.decode().partition("data: ")[2]
        return event if text.strip() == "[DONE]" else said(change(json.loads(text)))[0]

    return edited(lambda events: list(map(one, events)))


def altered(**fields: Any) -> Act:
    """The right answer, with other fields at its top."""

    async def act(exchange: Exchange) -> None:
        reply = {**json.loads(body_of(completion(answer_text(exchange.request)))), **fields}
        await exchange.send(with_length(json.dumps(reply).encode()))

    return act


def refuses(status: int, body: Any) -> Act:
    """An error in the wire's own words."""
    return sends(with_length(json.dumps(body).encode(), status))


def stream(name: str, fault: str, *acts: Act) -> Scenario:
    """Something that a stream does."""
    return Scenario(name, ROW, fault, acts).only("stream")


def interrupted(name: str, fault: str, act: Act, text: str = "") -> Scenario:
    """A stream that breaks after some text."""
    scenario = stream(name, fault, act).then("StreamInterrupted", partial=PARTIAL)
    return scenario.then(check=tells(text)) if text else scenario


def whole(name: str, fault: str, *acts: Act) -> Scenario:
    """Something that a whole reply does."""
    return Scenario(name, ROW, fault, acts).only("whole")


def cut(scenario: Scenario) -> Scenario:
    """The answer counts as cut: no value comes of it."""
    return scenario.only("function").using(returns=list[int]).then("OutputTruncated")


DONE = b"data: [DONE]\n\n"
DONE_BESIDE = stream("done_beside", "[DONE] of another wire after the end", edited(lambda events: [*events, DONE]))

# --- messages --------------------------------------------------------------------------------------------

START: Json = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {}}}
STOP: Json = {"type": "message_stop"}
PING: Json = {"type": "ping"}
NEWS: Json = {"type": "content_block_sparkle", "index": 0, "sparkle": {"text": "99"}}


def messages_error(kind: str, message: str, **details: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message, "details": details}, "request_id": "req_1"}


def ended(reason: str | None, **more: Any) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": {"output_tokens": 5}}


def block(index: int, kind: str, **fields: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


HALF_CALL = [
    START,
    block(0, "tool_use", id="toolu_1", name="forecast", input={}),
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"city": "Bo'}},
]
UNKNOWN_BLOCK = said(block(7, "hologram", text="99"), {"type": "content_block_stop", "index": 7})
OVERLOADED = messages_error("overloaded_error", "Overloaded")

SEARCHING: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
paused = altered(content=[SEARCHING], stop_reason="pause_turn")

MESSAGES = [
    stream("overloaded_first", "an overloaded error before any text, once", says_events(START, OVERLOADED), good)
    .then(requests=2),
    interrupted("overloaded_within", "an overloaded error within the text", within(OVERLOADED), "Overloaded"),
    stream("pings_between", "a ping before each event",
           edited(lambda events: [each for event in events for each in (*said(PING), event)])).then(usage=16),
    stream("unknown_events", "events of unknown types between the known",
           edited(lambda events: [each for event in events for each in (event, *said(NEWS))])),
    stream("unknown_block", "a block of an unknown type",
           edited(lambda events: [*events[:-2], *UNKNOWN_BLOCK, *events[-2:]])),
    stream("started_twice", "message_start twice, before any text", edited(lambda events: [events[0], *events])),
    interrupted("started_again", "message_start again, within the text",
                edited(lambda events: [*events[: 2 + PARTIAL], *events]), "a second time"),
    stream("no_message_stop", "a stop reason, and no message_stop", edited(lambda events: events[:-1])),
    interrupted("no_stop_reason", "message_stop without a stop reason", within(STOP)),
    interrupted("null_stop_reason", "message_stop after a stop reason null", within(ended(None), STOP)),
    interrupted("done_alone", "[DONE] of another wire, and no stop reason", within(DONE)),
    DONE_BESIDE,
    stream("usage_grows", "counts of the whole reply so far, twice",
           edited(lambda events: [*events[:-2], *said(ended(None)), *events[-2:]])).then(usage=16),
    stream("refused_within", "stop reason refusal, within the text",
           within(ended("refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "no such thing"})))
    .then("ContentBlocked", partial=PARTIAL, check=tells("no such thing")),
    stream("call_cut", "cut within the arguments of a call: it does not run",
           says_events(*HALF_CALL, {"type": "content_block_stop", "index": 0}, ended("max_tokens")))
    .using(toolkit=forecast_tool).then("OutputTruncated", check=no_tool_ran),
    cut(whole("window_full", "stop reason model_context_window_exceeded; the cut text would parse",
              altered(content=[{"type": "text", "text": "[1, 2]"}], stop_reason="model_context_window_exceeded"))),
    whole("content_null", "a reply without content, once", altered(content=None), good).then(requests=2),
    whole("error_200", "200 with an overloaded error, once", sends(with_length(body_of(OVERLOADED))), good)
    .then(requests=2),
    whole("paused", "stop reason pause_turn: it goes on by itself", paused, good).then(requests=2),
    stream("paused_stream", "stop reason pause_turn, streamed",
           says_events(START, block(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
                       {"type": "content_block_stop", "index": 0}, ended("pause_turn"), STOP), good)
    .then(requests=2),
    whole("paused_forever", "stop reason pause_turn each time", paused).then("ToolCallLimitExceeded", requests=6),
    Scenario("billing", ROW, "402 billing_error", [refuses(402, messages_error("billing_error", "no credit"))])
    .then("RateLimited", check=has(kind="quota")),
    Scenario("spend_limit", ROW, "429 with the error code of a spend limit",
             [refuses(429, messages_error("rate_limit_error", "limit", error_code="enforced_spend_limit_reached"))])
    .then("RateLimited", check=has(kind="quota")),
    Scenario("too_long", ROW, "400 prompt is too long",
             [refuses(400, messages_error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"))])
    .then("ContextTooLong", check=has(limit=200_000)),
    Scenario("timeout_error", ROW, "504 timeout_error, once",
             [refuses(504, messages_error("timeout_error", "late")), good]).then(requests=2),
]  # fmt: skip


# --- responses -------------------------------------------------------------------------------------------

CREATED: Json = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
FLAT: Json = {"type": "error", "code": "server_error", "message": "out of memory", "param": None}
NESTED: Json = {"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "out of memory"}}
QUOTA = "insufficient_quota"


def failed(code: str) -> Json:
    error = {"code": code, "message": "out of memory"}
    response = {"id": "resp_1", "status": "failed", "output": [], "error": error}
    return {"type": "response.failed", "response": response}


def incomplete(reason: str) -> Json:
    response = {"status": "incomplete", "output": [], "incomplete_details": {"reason": reason}}
    return {"type": "response.incomplete", "response": response}


def without_places(event: Json) -> Json:
    """The event as llama.cpp writes it: without the numbers of its place."""
    return {name: value for name, value in event.items() if name not in {"output_index", "content_index"}}


def two_calls(*names: str) -> list[Json]:
    """Two calls whose arguments come in turns, known by `names`."""
    calls = [{"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": "forecast"} for n in (1, 2)]
    places: list[Json] = [{name: {"output_index": n, "item_id": f"fc_{n + 1}"}[name] for name in names} for n in (0, 1)]
    texts = ['{"city": "Bonn"}', '{"city": "Ulm"}']
    events: list[Json] = [CREATED]
    events += [
        {"type": "response.output_item.added", **places[n], "item": {**calls[n], "arguments": ""}} for n in (0, 1)
    ]
    for half in (slice(0, 8), slice(8, None)):
        events += [
            {"type": "response.function_call_arguments.delta", **places[n], "delta": texts[n][half]} for n in (0, 1)
        ]
    items = [{**calls[n], "arguments": texts[n], "status": "completed"} for n in (0, 1)]
    events += [{"type": "response.output_item.done", **places[n], "item": items[n]} for n in (0, 1)]
    return [
        *events,
        {"type": "response.completed", "response": {"status": "completed", "output": items, "usage": None}},
    ]


def both_ran(error: Any, requests: Any, notes: list[Any]) -> None:
    """Check that each call ran with its own arguments."""
    assert sorted(notes) == [("Bonn", "today"), ("Ulm", "today")], notes


UNKNOWN: Json = {"type": "response.sparkle.delta", "output_index": 0, "delta": "99"}


def rotating() -> Act:
    """Each event tells another item id, as some proxies do."""
    count = iter(range(10**6))
    return mapped(lambda event: {**event, "item_id": f"id_{next(count)}"} if "delta" in event else event)


RESPONSES = [
    stream("error_flat_first", "a flat error before any text, once", says_events(CREATED, FLAT), good).then(requests=2),
    stream("error_nested_first", "a nested error before any text, once", says_events(CREATED, NESTED), good)
    .then(requests=2),
    interrupted("error_flat", "a flat error within the text", within(FLAT), "out of memory"),
    interrupted("error_nested", "a nested error within the text, and response.failed after it",
                within(NESTED, failed("server_error")), "out of memory"),
    stream("failed_first", "response.failed with server_error before any text, once",
           says_events(CREATED, failed("server_error")), good).then(requests=2),
    stream("failed_quota", "response.failed with insufficient_quota", says_events(CREATED, failed(QUOTA)))
    .then("RateLimited", check=has(kind="quota")),
    interrupted("failed_within", "response.failed within the text", within(failed("server_error")), "out of memory"),
    interrupted("cancelled_within", "response.cancelled within the text", within({"type": "response.cancelled"}), "cancelled"),
    interrupted("no_end", "the text, and no event that ends the reply", within()),
    interrupted("done_alone", "[DONE] of another wire, and no event that ends the reply", within(DONE)),
    DONE_BESIDE,
    stream("filtered_within", "incomplete for content_filter, within the text", within(incomplete("content_filter")))
    .then("ContentBlocked", partial=PARTIAL),
    cut(stream("incomplete_unknown", "incomplete for an unknown reason; the text would parse",
               says("[1, 2]", finish_reason="sparkle"))),
    stream("unknown_events", "events of unknown types between the known",
           edited(lambda events: [each for event in events for each in (event, *said(UNKNOWN))])).then(usage=16),
    stream("no_places", "no output_index", mapped(without_places)).then(usage=16),
    stream("ids_rotate", "another item_id in each event", rotating()),
    stream("calls_by_place", "two calls whose arguments come in turns", says_events(*two_calls("output_index")), good)
    .using(toolkit=forecast_tool).then(requests=2, check=both_ran),
    stream("calls_by_id", "two calls in turns, without output_index", says_events(*two_calls("item_id")), good)
    .using(toolkit=forecast_tool).then(requests=2, check=both_ran),
    whole("status_failed", "status failed with server_error, once",
          altered(status="failed", error={"code": "server_error", "message": "no"}), good).then(requests=2),
    whole("status_failed_quota", "status failed with insufficient_quota",
          altered(status="failed", error={"code": QUOTA, "message": "no"})).then("RateLimited", check=has(kind="quota")),
    whole("status_cancelled", "status cancelled", altered(status="cancelled")).then("BadReply", requests=2),
    whole("status_in_progress", "status in_progress, once", altered(status="in_progress"), good).then(requests=2),
    cut(Scenario("completed_at_limit", ROW, "status completed, and as many tokens as were allowed", [says("[1, 2]")])
        .using(llm={"api_params": {"max_tokens": 5}})),
]  # fmt: skip


# --- gemini ----------------------------------------------------------------------------------------------

BLOCKED: Json = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"totalTokenCount": 11}}
NO_SPACE: Json = {"error": {"code": 503, "message": "out of memory", "status": "UNAVAILABLE"}}
BARE = json.dumps(NO_SPACE, indent=2).encode()


def gemini_error(code: int, status: str, message: str, **detail: Any) -> Json:
    return {"error": {"code": code, "status": status, "message": message, "details": [detail]}}


def finished(reason: str, **more: Any) -> Json:
    return {"candidates": [{"finishReason": reason, "index": 0, **more}]}


def candidate(*parts: Json) -> Json:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}]}


async def bare_error(exchange: Exchange) -> None:
    """An error in the body that is no event, after some text."""
    events = events_of(answer_text(exchange.request))[: 1 + PARTIAL]
    await exchange.send(STREAM_HEAD, *map(in_chunk, [*events, BARE]), b"0\r\n\r\n")


async def as_list(exchange: Exchange) -> None:
    """The stream as a list of JSON, as the service writes it where events were not asked for."""
    events = [json.loads(each.partition(b"data: ")[2]) for each in events_of(answer_text(exchange.request))]
    await exchange.send(with_length(json.dumps(events).encode()))


MALFORMED = finished("MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: forecast(")
EMPTY = said(candidate(), {"candidates": [{"content": {}}]}, {"candidates": [{}]}, candidate({"text": ""}), {})
RETRY = gemini_error(429, "RESOURCE_EXHAUSTED", "slow down", retryDelay="0.4s",
                     **{"@type": "type.googleapis.com/google.rpc.RetryInfo"})  # fmt: skip
PER_DAY = gemini_error(429, "RESOURCE_EXHAUSTED", "quota", violations=[{"quotaId": "RequestsPerDayPerProject"}])
NO_KEY = gemini_error(400, "INVALID_ARGUMENT", "API key not valid.", reason="API_KEY_INVALID")
TOO_LONG = gemini_error(
    400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)."
)

GEMINI = [
    whole("prompt_blocked", "a blocked prompt: no candidates", sends(with_length(body_of(BLOCKED))))
    .then("ContentBlocked", check=tells("PROHIBITED_CONTENT")),
    stream("prompt_blocked_stream", "a blocked prompt: no candidates, in a stream", says_events(BLOCKED))
    .then("ContentBlocked", check=tells("PROHIBITED_CONTENT")),
    whole("malformed_call", "MALFORMED_FUNCTION_CALL, once", sends(with_length(body_of(MALFORMED))), good)
    .then(requests=2),
    stream("malformed_call_stream", "MALFORMED_FUNCTION_CALL before any text, once", says_events(MALFORMED), good)
    .then(requests=2),
    whole("malformed_always", "MALFORMED_FUNCTION_CALL, always", sends(with_length(body_of(MALFORMED))))
    .then("BadReply", requests=2, check=tells("MALFORMED_FUNCTION_CALL")),
    interrupted("malformed_within", "MALFORMED_FUNCTION_CALL within the text",
                within(MALFORMED, first=1), "MALFORMED_FUNCTION_CALL"),
    interrupted("bare_error", "an error as bare JSON within the text", bare_error, "out of memory"),
    stream("bare_error_first", "an error as bare JSON before any text, once",
           sends(STREAM_HEAD + in_chunk(BARE) + b"0\r\n\r\n"), good).then(requests=2),
    interrupted("error_within", "an error event within the text", within(NO_SPACE, first=1), "out of memory"),
    stream("usage_after_end", "usage alone, again and again, after the finish reason",
           edited(lambda events: [*events, *events[-1:], *events[-1:]])).then(usage=16),
    stream("empty_parts", "candidates without parts, texts that are empty, before and within the text",
           edited(lambda events: [*EMPTY, *events[:1 + PARTIAL], *EMPTY, *events[1 + PARTIAL:]])).then(usage=16),
    interrupted("no_finish", "no finish reason", within(first=1)),
    interrupted("done_alone", "[DONE] of another wire, and no finish reason", within(DONE, first=1)),
    DONE_BESIDE,
    stream("safety_within", "SAFETY within the text", within(finished("SAFETY"), first=1))
    .then("ContentBlocked", partial=PARTIAL),
    stream("thoughts_between", "thoughts between the pieces of text",
           edited(lambda events: [each for event in events
                                  for each in (*said(candidate({"text": "99", "thought": True})), event)])),
    stream("finish_twice", "the finish reason in each event", mapped(
        lambda event: {"candidates": [{**event["candidates"][0], "finishReason": "STOP"}]} if "candidates" in event else event)),
    whole("stream_as_list", "a list of pieces instead of a reply", as_list).then(usage=16),
    cut(whole("continuation", "finish reason CONTINUATION; the cut text would parse",
              altered(candidates=[{"content": {"parts": [{"text": "[1, 2]"}]}, "finishReason": "CONTINUATION"}]))),
    Scenario("retry_info", ROW, "429 with RetryInfo in the body", [refuses(429, RETRY), good])
    .then(requests=2, least=0.4, most=1.0),
    Scenario("quota_per_day", ROW, "429 with a quota per day", [refuses(429, PER_DAY)])
    .then("RateLimited", check=has(kind="quota")),
    Scenario("key_invalid", ROW, "400 with API_KEY_INVALID", [refuses(400, NO_KEY)]).then("AuthenticationError"),
    Scenario("too_long", ROW, "400 with more tokens than fit", [refuses(400, TOO_LONG)])
    .then("ContextTooLong"),
    Scenario("error_in_list", ROW, "503 with the error in a list, once", [refuses(503, [NO_SPACE]), good])
    .then(requests=2),
    whole("error_200", "200 with an error, once", sends(with_length(body_of(NO_SPACE))), good).then(requests=2),
]  # fmt: skip

OWN_FAULTS: dict[str, list[Scenario]] = {"chat": [], "messages": MESSAGES, "responses": RESPONSES, "gemini": GEMINI}
