"""Rows 1 to 17: a service that is slow, overloaded or broken, or whose replies are none."""

from __future__ import annotations

import math
import time
from email.utils import formatdate

from tests.faults.replies import (
    LAST,
    STREAM_HEAD,
    answer_text,
    body_of,
    bytewise,
    call,
    completion,
    events_of,
    good,
    replies,
    says,
    sends,
    status,
)
from tests.faults.scenario import Scenario, forecast_tool, has, no_tool_ran, once, short_body, tells
from tests.faults.server import Act
from tests.support.connections import Exchange, head, in_chunk, with_length

OVERLOADED = {"error": {"message": "overloaded", "type": "overloaded_error", "code": None}}
NO_KEY = {"error": {"message": "no", "code": "invalid_api_key"}}
DOG = {"error": {"message": "the dog ate it"}}
PAGE = with_length(b"<!DOCTYPE html><p>Welcome", content_type="text/html")
PAST = "Wed, 21 Oct 2015 07:28:00 GMT"

# --- what the server does ---------------------------------------------------------------------------------


async def retry_after_date(exchange: Exchange) -> None:
    """429 with a date one to two seconds ahead: the header knows whole seconds only."""
    date = formatdate(math.ceil(time.time()) + 1, usegmt=True)
    await status(429, retry_after=date)(exchange)


async def half_body(exchange: Exchange) -> None:
    """A body of which half comes; the length of the whole was told."""
    whole = with_length(body_of(completion(answer_text(exchange.request))))
    await exchange.send(whole[:-60])
    exchange.close()


async def half_json(exchange: Exchange) -> None:
    """A body that is complete for HTTP, and cut for JSON."""
    await exchange.send(with_length(body_of(completion(answer_text(exchange.request)))[:-60]))


async def as_plain_text(exchange: Exchange) -> None:
    """The right answer under a wrong content type."""
    if exchange.request.stream:
        events = events_of(answer_text(exchange.request))
        await exchange.send(head(content_type="text/plain", transfer_encoding="chunked"), *map(in_chunk, events), LAST)
    else:
        body = body_of(completion(answer_text(exchange.request)))
        await exchange.send(with_length(body, content_type="text/plain; charset=utf-8"))


def drips(seconds: float) -> Act:
    """The right answer, byte by byte and never done in time."""

    async def act(exchange: Exchange) -> None:
        if exchange.request.stream:
            rest = STREAM_HEAD + b"".join(in_chunk(each) for each in events_of(answer_text(exchange.request) * 20))
        else:
            rest = with_length(body_of(completion(answer_text(exchange.request) * 200)))
        await exchange.send(*bytewise(rest), gap=seconds)

    return act


def told_key(code: int) -> Act:
    """A refusal that repeats the key, as some services do, and goes on and on."""

    async def act(exchange: Exchange) -> None:
        said = f"Incorrect API key provided: {exchange.request.key}. " + "x" * 3000
        await status(code, said)(exchange)

    return act


# --- scenarios --------------------------------------------------------------------------------------------

WAITING = [
    once("retry_after", "1", "429 with Retry-After in seconds", status(429, retry_after=1), least=1.0, most=1.75),
    once("retry_after_ms", "1", "429 with retry-after-ms", status(429, retry_after_ms=300), least=0.3, most=0.9),
    once("retry_after_503", "1", "503 with Retry-After", status(503, retry_after="0.4"), least=0.4, most=1.0),
    once("retry_after_date", "2", "429 with Retry-After as a date", retry_after_date, least=0.9, most=3.0),
    *(
        once(f"retry_after_{name}", "2", f"429 with Retry-After: {value}", status(429, retry_after=value), most=1.0)
        for name, value in (("negative", "-5"), ("nan", "nan"), ("garbage", "soon"), ("past", PAST))
    ),
    Scenario("retry_after_too_long", "3", "429 with a Retry-After beyond the deadline", [status(429, retry_after=30)])
    .then("RateLimited", deadline=2.0, most=1.0, check=has(retry_after=30.0, kind="rate")),
    Scenario("quota", "4", "429 insufficient_quota", [status(429, kind="insufficient_quota")])
    .then("RateLimited", check=has(kind="quota")),
]  # fmt: skip

STATUSES = [
    *(
        Scenario(f"burst_{code}", "5", f"{code} twice", [status(code), status(code), good]).then(requests=3)
        for code in (500, 502, 503, 529)
    ),
    Scenario("unavailable", "6", "503 for ever", [status(503)]).then("ServerUnavailable", requests=3),
    *(
        Scenario(f"refused_{code}", "7", f"{code}; the body is 3 kB long and repeats the key", [told_key(code)])
        .then("AuthenticationError" if code in {401, 403} else "BadRequest", check=short_body)
        for code in (400, 401, 403, 404, 422)
    ),
    *(once(f"again_{code}", "7", f"{code} once", status(code)) for code in (408, 409)),
]  # fmt: skip

CONNECTIONS = [
    once("reset_before_headers", "8", "reset before the headers, once", sends(end="reset")),
    once("close_before_headers", "8", "closed before the headers, once", sends(end="close")),
    Scenario("reset_for_ever", "8", "reset before the headers, always", [sends(end="reset")])
    .then("ConnectionFailed", requests=3),
    once("half_headers", "8", "closed within the headers, once", sends(b"HTTP/1.1 200 OK\r\ncontent-le", end="close")),
    once("reset_after_headers", "9", "reset after the headers, once", sends(STREAM_HEAD, end="reset")),
    Scenario("reset_after_headers_always", "9", "reset after the headers, always", [sends(STREAM_HEAD, end="reset")])
    .then("ConnectionFailed", requests=3).when_streamed("StreamInterrupted"),
    once("short_body", "9", "body shorter than its length says, once", half_body).only("whole"),
    Scenario("short_body_always", "9", "body shorter than its length says, always", [half_body]).only("whole")
    .then("ConnectionFailed", requests=3),
]  # fmt: skip

BODIES = [
    once("cut_json", "10", "200 with cut JSON, once", half_json),
    Scenario("cut_json_always", "10", "200 with cut JSON, always", [half_json]).then("BadReply", requests=2),
    Scenario("empty_body", "10", "200 with an empty body", [sends(with_length(b""))])
    .then("BadReply", requests=2).when_streamed("StreamInterrupted", requests=3),
    Scenario("web_page", "11", "200 with a web page", [sends(PAGE)])
    .then("BadReply", requests=2, check=tells("<!DOCTYPE html>")),
    Scenario("text_plain", "11", "the right answer as text/plain", [as_plain_text]),
    once("error_in_200", "12", "200 with an error whose code tells its status", replies(OVERLOADED)),
    Scenario("error_in_200_key", "12", "200 with an error that means the key", [replies(NO_KEY)])
    .then("AuthenticationError"),
    Scenario("error_in_200_unknown", "12", "200 with an error that means nothing we know", [replies(DOG)])
    .then("BadReply", check=tells("the dog ate it")),
    *(
        # The other wires are asked once more: what they send instead of an answer may be one the next time.
        Scenario(name, "12", fault, [replies(data)])
        .then("BadReply").on("messages", requests=2).on("responses", requests=2).on("gemini", requests=2)
        for name, fault, data in (
            ("no_choices", "200 with choices []", {**completion("x"), "choices": []}),
            ("null_choices", "200 with choices null", {**completion("x"), "choices": None}),
            ("not_an_object", "200 with JSON that is no object", ["hello"]),
        )
    ),
]  # fmt: skip

ANSWERS = [
    once("empty_once", "13", "an answer with content null, once", says(None)),
    Scenario("empty_always", "13", "an empty answer, always", [says("")]).then("EmptyResponseError", requests=3),
    Scenario("blank_always", "13", "an answer of white space, always", [says(" \n")])
    .then("EmptyResponseError", requests=3),
    Scenario("cut_value", "14", "finish_reason length; the cut text would parse", [says("[1, 2]", finish_reason="length")])
    .only("function").using(returns=list[int]).then("OutputTruncated", check=has(partial="[1, 2]")),
    Scenario("cut_text", "14", "finish_reason length; text is returned", [says("It is", finish_reason="length")])
    .using(returns=str, value="It is", text="It is"),
    Scenario("cut_call", "14", "finish_reason length within a tool call: it does not run",
             [says(None, calls=[call("forecast", {"city": "Köln"})], finish_reason="length")])
    .using(toolkit=forecast_tool).then("OutputTruncated", check=no_tool_ran),
    Scenario("content_filter", "15", "finish_reason content_filter", [says("It", finish_reason="content_filter")])
    .then("ContentBlocked", check=has(partial="It")),
    Scenario("refusal", "15", "a refusal", [says(None, refusal="I cannot help with that.")])
    .then("ContentBlocked", check=tells("I cannot help with that.")),
]  # fmt: skip

TIME = [
    *(
        Scenario(name, row, fault, [act]).then("DeadlineExceeded", deadline=1.0, least=1.0)
        for name, row, fault, act in (
            ("slow_drip", "16", "one byte every 10 ms, for minutes", drips(0.01)),
            ("no_answer", "17", "no answer at all", sends(end="hold")),
            ("no_first_event", "17", "headers, and then nothing", sends(STREAM_HEAD, end="hold")),
        )
    ),
    Scenario("no_answer_tries", "17", "no answer; the tries share one deadline", [sends(end="hold")])
    .using(llm={"timeout": 0.5, "max_retries": 5})
    .then("DeadlineExceeded", requests=3, deadline=1.4, least=1.4),
    Scenario("no_answer_given_up", "17", "no answer to any try", [sends(end="hold")])
    .using(llm={"timeout": 0.5})
    .then("ConnectionFailed", requests=3, least=1.5, most=2.5),
]

SERVICE_FAULTS = [*WAITING, *STATUSES, *CONNECTIONS, *BODIES, *ANSWERS, *TIME]
