"""Rows 27 to 32, 39 and 40: replies that deviate from the protocol, tools that fail, texts and sizes that are unusual."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.faults import scenario as checks
from tests.faults.replies import body_of, call, chunk, completion, delta, good, replies, says, sends, streams
from tests.faults.scenario import TOOL_TEXT, Scenario, answered, both, forecast_tool, has, sent_back, tool_that
from tests.faults.server import Act
from tests.support.connections import Exchange, with_length

QUIRK = "a quirk of servers that speak chat completions"
SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}
TOMORROW = {"city": "Köln", "day": "tomorrow"}
CALLED = [("Köln", "tomorrow")]


def streamed_calls(*deltas: Any, finish_reason: str | None = "tool_calls", **first: Any) -> Act:
    """A stream of tool-call pieces, one or a list of them per chunk."""
    said = [chunk(**{"role": "assistant", "content": None, **first})]
    said += [chunk(tool_calls=each if isinstance(each, list) else [each]) for each in deltas]
    return streams(*said, chunk(finish_reason), "[DONE]")


def whole_calls(*calls: dict[str, Any], finish_reason: str = "tool_calls", **message: Any) -> Act:
    """A whole reply with these calls, whatever was asked for."""
    return replies(
        completion(message.pop("content", None), finish_reason=finish_reason, tool_calls=list(calls), **message)
    )


def dialect(name: str, row: str, fault: str, act: Act, *contents: str | None, called: Any = CALLED) -> Scenario:
    """A call in an unusual form: the tool gets what was meant, and the answer follows."""
    check = answered(*(contents or (TOOL_TEXT,)), called=called)
    return Scenario(name, row, fault, [act, good]).using(toolkit=forecast_tool).then(requests=2, check=check)


def and_sends_back(scenario: Scenario, **extra: Any) -> Scenario:
    """The same, and what the provider added goes back to it."""
    assert scenario.check is not None
    return scenario.then(check=both(scenario.check, sent_back(**extra)))


TWO = [("Köln", "tomorrow"), ("Bonn", "today")]
BOTH = (TOOL_TEXT, TOOL_TEXT)

DIALECTS = [
    and_sends_back(
        dialect("gemini_stream", "27", "Gemini: pieces without index, finish_reason stop, a signature",
                streamed_calls(
                    delta(id="", name="forecast", arguments='{"city": "Köl', type="function", extra_content=SIGNATURE),
                    delta(arguments='n", "day": '), delta(arguments='"tomorrow"}'), finish_reason="stop")),
        extra_content=SIGNATURE).only("stream").without(QUIRK),
    and_sends_back(
        dialect("gemini_whole", "27", "Gemini: finish_reason stop, a signature",
                whole_calls(call("forecast", TOMORROW, extra_content=SIGNATURE), finish_reason="stop")),
        extra_content=SIGNATURE).only("whole").without(QUIRK),
    dialect("ollama_index", "28", "Ollama: every call has index 0 and its own id",
            streamed_calls(delta(0, id="a", name="forecast", arguments='{"city":"Köln","day":"tomorrow"}'),
                           delta(0, id="b", name="forecast", arguments='{"city":"Bonn"}')),
            *BOTH, called=TWO).only("stream").without(QUIRK),
    dialect("ollama_one_chunk", "28", "Ollama: both calls in one chunk, index 0, no ids",
            streamed_calls([delta(0, name="forecast", arguments='{"city":"Köln","day":"tomorrow"}'),
                            delta(0, name="forecast", arguments='{"city":"Bonn"}')]),
            *BOTH, called=TWO).only("stream").without(QUIRK),
    dialect("ollama_objects", "28", "Ollama: arguments as an object, no id",
            whole_calls({"function": {"name": "forecast", "arguments": TOMORROW}})).only("whole").without(QUIRK),
    dialect("ollama_objects_stream", "28", "Ollama: arguments as an object, in a stream",
            streamed_calls(delta(0, name="forecast", arguments=TOMORROW))).only("stream").without(QUIRK),
    dialect("vllm_repeats", "29", "vLLM: id and name again in each piece",
            streamed_calls(*(delta(0, id="a", type="function", name="forecast", arguments=piece)
                             for piece in ('{"city": "Kö', 'ln", "day"', ': "tomorrow"}')))).only("stream").without(QUIRK),
    dialect("vllm_empty_names", "29", "others: the name is empty in later pieces",
            streamed_calls(delta(0, id="a", name="forecast", arguments='{"city": "Köln",'),
                           delta(0, id="", name="", arguments=' "day": "tomorrow"}'))).only("stream").without(QUIRK),
    dialect("same_ids", "29", "two calls with the same id",
            whole_calls(call("forecast", TOMORROW), call("forecast", {"city": "Bonn"})),
            *BOTH, called=TWO).only("whole"),
    dialect("same_ids_stream", "29", "two calls with the same id, in a stream",
            streamed_calls(delta(0, id="a", name="forecast", arguments='{"city":"Köln","day":"tomorrow"}'),
                           delta(1, id="a", name="forecast", arguments='{"city":"Bonn"}')),
            *BOTH, called=TWO).only("stream").without(QUIRK),
    dialect("no_arguments", "29", 'a call without arguments, as ""', says(None, calls=[call("forecast", "")], finish_reason="tool_calls"),
            None, called=[]),
    Scenario("reasoning", "30", "reasoning_content with the answer",
             [says(..., reasoning_content="They ask about Bonn. No, Köln.")]),
    Scenario("reasoning_alone", "30", "reasoning without an answer is an empty answer, once",
             [says(None, reasoning_content="Hm."), good]).then(requests=2),
    Scenario("think_tags", "30", "<think> in front of a typed answer",
             [says('<think>{"city": "Bonn", "celsius": 99}</think>\n{"city": "Köln \U0001f327", "celsius": 7}')])
    .only("function"),
]  # fmt: skip


class Hopeless(BaseException):
    """Something that an `except Exception` does not catch."""


def raising(error: BaseException) -> Callable[[], Any]:
    """A function that raises."""

    def run() -> Any:
        raise error

    return run


def _cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


async def _coroutine() -> str:
    return TOOL_TEXT


async def _async_generator() -> Any:
    yield TOOL_TEXT
    yield "and windy"


def calls(name: str, arguments: Any) -> Act:
    """One call."""
    return says(None, calls=[call(name, arguments)], finish_reason="tool_calls")


BAD_CALLS = [
    dialect(name, "31", fault, calls(tool, arguments), said, called=[])
    for name, fault, tool, arguments, said in (
        ("arguments_no_json", "arguments are not JSON", "forecast", '{"city": nope', None),
        ("arguments_list", "arguments are a list", "forecast", "[1, 2]", None),
        ("arguments_text", "arguments are a text", "forecast", '"Köln"', None),
        ("arguments_wrong_type", "an argument has the wrong type", "forecast", {"city": ["Köln"]}, None),
        ("arguments_missing", "an argument is missing", "forecast", {"day": "today"}, "city"),
        ("arguments_unknown", "an unknown argument", "forecast", {"city": "Köln", "self": 1}, None),
        ("unknown_tool", "a tool that was not offered", "rm_rf", {"city": "Köln"}, "no tool"),
    )
] + [
    dialect("one_bad_of_three", "31", "one bad call of three: each is answered",
            says(None, calls=[call("forecast", TOMORROW, 0), call("nope", {}, 1), call("forecast", {"city": "Bonn"}, 2)],
                 finish_reason="tool_calls"),
            TOOL_TEXT, "no tool", TOOL_TEXT, called=TWO),
    Scenario("calls_for_ever", "31", "a model that only calls tools", [calls("forecast", TOMORROW)])
    .using(toolkit=forecast_tool, options={"max_tool_calls": 2})
    .then("ToolCallLimitExceeded", requests=3, check=has(limit=2)),
]  # fmt: skip


def tool_fault(name: str, fault: str, run: Callable[[], Any], said: str | None = None, **options: Any) -> Scenario:
    """A tool that misbehaves: the model reads about it, and the answer follows."""
    return (
        Scenario(name, "32", fault, [calls("forecast", TOMORROW), good])
        .using(toolkit=tool_that(run, **{key: value for key, value in options.items() if key == "timeout"}))
        .then(requests=2, check=answered(said, called=CALLED))
    )


TOOLS = [
    tool_fault("tool_raises", "a tool raises", raising(RuntimeError("postgres://u:pw@h/db is down")), "RuntimeError"),
    tool_fault("tool_base_exception", "a tool raises a BaseException", raising(Hopeless("stop")), "Hopeless"),
    tool_fault("tool_exits", "a tool raises StopIteration", raising(StopIteration("stop")), "StopIteration"),
    tool_fault("tool_surrogates", "a tool raises with a lone surrogate in the text", raising(ValueError("a\ud800b"))),
    tool_fault("tool_object", "a tool returns an object that JSON cannot say", object),
    tool_fault("tool_large", "a tool returns 10 MB", lambda: "x" * 10_000_000, "x" * 60_000),
    tool_fault("tool_bytes", "a tool returns bytes", lambda: b"\xff\x00\x01"),
    tool_fault("tool_generator", "a tool returns a generator", lambda: (n for n in "abc")),
    tool_fault("tool_coroutine", "a tool returns a coroutine", _coroutine, TOOL_TEXT),
    tool_fault("tool_async_generator", "a tool returns an async generator", _async_generator),
    tool_fault("tool_nan", "a tool returns NaN", lambda: {"celsius": float("nan")}),
    tool_fault("tool_cycle", "a tool returns a list that holds itself", _cycle),
    tool_fault("tool_hangs", "a tool hangs", lambda: time.sleep(0.4), "longer than 0.1 s", timeout=0.1)
    .then(most=1.0),
    Scenario("tool_hangs_deadline", "32", "a tool hangs, and nothing but the deadline ends it", [calls("forecast", TOMORROW), good])
    .using(toolkit=tool_that(lambda: time.sleep(1.5)))
    .then("DeadlineExceeded", deadline=1.0, least=1.0),
]  # fmt: skip


async def not_utf8(exchange: Exchange) -> None:
    """An answer with a byte that is not UTF-8, whole whatever was asked for."""
    await exchange.send(with_length(body_of(completion("a?b")).replace(b"?", b"\xff")))


TEXTS = [
    Scenario("surrogate_escape", "39", "a lone surrogate in the reply", [says("a\ud800b")])
    .using(returns=str, value="a\ufffdb", text="a\ufffdb"),
    Scenario("surrogate_pair", "39", "a surrogate pair, cut between two chunks",
             [streams('{"choices":[{"index":0,"delta":{"content":"\\ud83c"}}]}',
                      '{"choices":[{"index":0,"delta":{"content":"\\udf27"}}]}', chunk("stop"), "[DONE]")])
    .only("stream").using(returns=str, value="\U0001f327", text="\U0001f327")
    .without("no service is known to cut a character there"),
    Scenario("bytes_not_utf8", "39", "bytes in the reply that are not UTF-8", [not_utf8])
    .using(returns=str, value="a\ufffdb", text="a\ufffdb"),
    Scenario("nul", "39", "a NUL and an escape sequence in the reply", [says("a\x00b\x1b[31m")])
    .using(returns=str, value="a\x00b\x1b[31m", text="a\x00b\x1b[31m"),
    Scenario("surrogate_in_prompt", "39", "a lone surrogate in the prompt", [good])
    .using(argument="K\ud800ln\x00").then(check=checks.sends_json),
    Scenario("deep_reply", "40", "JSON 100,000 deep", [sends(with_length(b"[" * 100_000))])
    .then("BadReply", requests=2),
    Scenario("deep_answer", "40", "an answer 100,000 deep", [says("[" * 100_000)]).only("function", "whole")
    .using(options={"max_reasks": 0}).then("ResponseParseError"),
    Scenario("large_reply", "40", "an answer of 10 MB", [says("word " * 2_000_000)]).only("whole")
    .using(returns=str, value="word " * 2_000_000, text="word " * 2_000_000).then(deadline=20.0),
    Scenario("many_chunks", "40", "an answer in 2,000 chunks", [says("a b " * 2_000)]).only("stream")
    .using(returns=str, value="a b " * 2_000, text="a b " * 2_000).then(deadline=20.0),
]  # fmt: skip

REPLY_FAULTS = [*DIALECTS, *BAD_CALLS, *TOOLS, *TEXTS]
