"""Replies whose frame is right and whose content is not: any field of JSON missing, doubled, or of another kind; on each wire.

The oracle: an error of ours, or a value of the type that was asked for; never a foreign exception, never a hang.
``make faults-long`` draws 5,000 of them.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc import SimpleLLMFuncError, budget, llm_chat, llm_function
from tests.faults.replies import USAGE, call, chunk, completion, delta
from tests.faults.runner import model_of
from tests.faults.speech import SPEECHES, WIRES, wire_of
from tests.support.server import Answer, LoopbackServer, json_answer, sse

IS_LONG = settings.get_current_profile_name() == "faults-long"
DETAILS = {"prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 1}}
ERROR = {"error": {"message": "no", "type": "server_error", "code": "overloaded_error", "status": 503, "n_ctx": 5}}

WHOLE: list[Any] = [
    {**completion("7", reasoning_content="hm", refusal=None), "usage": {**USAGE, **DETAILS}},
    completion(None, finish_reason="tool_calls", tool_calls=[call("work", {"n": 1}, extra_content={"a": 1})]),
    completion("7", finish_reason="length"),
    ERROR,
    [ERROR],
]
STREAMS: list[list[Any]] = [
    [chunk(role="assistant", content=""), chunk(content="7"), chunk("stop"), {**chunk(), "choices": [], "usage": USAGE}],
    [chunk(tool_calls=[delta(0, id="a", name="work", arguments='{"n":')]), chunk(tool_calls=[delta(0, arguments="1}")]),
     chunk("tool_calls")],
    [chunk(content=None, reasoning_content="hm"), {**chunk(content="7"), "usage": USAGE}, chunk("stop")],
    [chunk(content="7"), ERROR],
]  # fmt: skip

ODD = st.sampled_from(
    [None, True, False, 0, -1, 1.5, 10**400, -(10**20), 1e308, math.inf, -math.inf, math.nan, "", "x", "7", "\ud800",
     "stop", "length", "content_filter", "[DONE]", "<think>", [], {}, [None], [[]], ["x"], {"a": 1}, {"error": 1},
     [{"type": "text", "text": 5}], [{"type": "text", "text": "7"}], {"index": "a"}, {"function": {"arguments": {}}}]
)  # fmt: skip
NAMES = st.sampled_from(
    ["error", "object", "index", "usage", "x_groq", "status", "code", "delta", "message", "id", "type", "content",
     "stop_reason", "output", "item", "output_index", "response", "phase", "content_block", "candidates", "parts",
     "promptFeedback", "functionCall", "partialArgs", "thought", "finishReason"]
)  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from(["set", "set", "set", "drop", "add"]), ODD, NAMES), max_size=3
)
MOVES = st.lists(st.tuples(st.integers(0, 10**4), st.sampled_from(["drop", "double", "move"])), max_size=2)
"""What becomes of whole events."""

HEADERS = st.dictionaries(
    st.sampled_from(
        ["retry-after", "retry-after-ms", "x-ratelimit-remaining-requests", "x-ratelimit-limit-requests",
         "x-ratelimit-reset-requests", "x-ratelimit-remaining-tokens", "x-request-id", "content-type"]
    ),
    st.sampled_from(
        ["0.001", "-1", "1e999", "inf", "nan", "", "x", "9" * 400, "1ms", "9" * 30 + "h", "0001-01-01T00:00:00",
         "Wed, 99 Foo 2015 07:28:00 GMT", "Mon, 01 Jan 9999 00:00:00 +2359", "text/html"]
    ), max_size=3,
)  # fmt: skip
PLACES = st.sampled_from(
    ["http://[::1", "//", "http://x.invalid:99999/", "file:///etc/passwd", "http://", "", " ", "javascript:1",
     "http://user:pw@127.0.0.1/", "\xff"]
)  # fmt: skip


def places_in(data: Any) -> list[tuple[Any, Any]]:
    """Every container in `data`, with each of its keys."""
    found = []
    items = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    for key, value in items:
        found += [(data, key), *places_in(value)]
    return found


def changed(data: Any, changes: list[Any]) -> Any:
    """A copy of `data` with some of it wrong."""
    data = copy.deepcopy(data)
    for number, how, odd, name in changes:
        places = places_in(data)
        if not places:
            break
        container, key = places[number % len(places)]
        odd = copy.deepcopy(odd)  # noqa: PLW2901 - drawn once, and may be set in several places
        if how == "drop":
            del container[key]
        elif how == "add":
            container.append(odd) if isinstance(container, list) else container.update({name: odd})
        else:
            container[key] = odd
    return data


def spoken(wire, events):
    """The events in the words of a wire."""
    speech = SPEECHES[wire]()
    return [event for each in (*events, "[DONE]") for event in speech.events(each) if event != "[DONE]"]


@st.composite
def answers(draw, wire):
    """What the server says to one request: to a stream in a stream, mostly."""
    headers = draw(HEADERS)
    # As ASCII, so that lone surrogates get out too.
    body = json.dumps(changed(SPEECHES[wire]().whole(draw(st.sampled_from(WHOLE))), draw(CHANGES))).encode()
    status = draw(st.sampled_from([200] * 8 + [302, 400, 401, 404, 413, 418, 429, 500, 503]))
    whole = Answer(status, {"content-type": "application/json", **headers}, body=body)
    if whole.status == 302:
        whole.headers["location"] = draw(PLACES)
    events = changed(spoken(wire, draw(st.sampled_from(STREAMS))), draw(CHANGES))
    for at, how in draw(MOVES):
        if not events:
            break
        event = events.pop(at % len(events))
        if how != "drop":
            events.insert(at // 7 % (len(events) + 1), event)
        if how == "double":
            events.insert(at % (len(events) + 1), event)
    said = sse(*map(json.dumps, events))
    streamed = Answer(headers={**headers, "content-type": "text/event-stream"}, body=said)
    keeps_form = draw(st.booleans()) or draw(st.booleans())
    return lambda request: streamed if (request.stream or ":stream" in request.path) == keeps_form else whole


def work(n: int = 0) -> str:
    """Work."""
    return "done"


def views(llm):
    options = {"deadline": 2.0, "retry_times": 0}

    @llm_function(llm, max_reasks=1, **options)
    async def number(text: str) -> int:
        """Count."""
        raise NotImplementedError

    @llm_function(llm, toolkit=[work], max_tool_calls=2, **options)
    async def text(text: str) -> str:
        """Say."""
        raise NotImplementedError

    @llm_chat(llm, toolkit=[work], stream=True, return_mode="raw", max_tool_calls=2, **options)
    async def chat(history: list, message: str):
        """Talk."""
        raise NotImplementedError

    async def numbers():
        return [value async for value in number.stream("x")][-1:] or [0]

    async def pieces():
        return "".join([piece async for piece in text.stream("x")])

    async def raw():
        return [str(item) async for item, _ in chat([], "x")]

    return {
        "number": number,
        "text": text,
        "numbers": lambda _: numbers(),
        "pieces": lambda _: pieces(),
        "raw": lambda _: raw(),
    }


KINDS = {"number": int, "text": str, "numbers": list, "pieces": str, "raw": list}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.timeout(3600 if IS_LONG else 90)
def test_a_reply_of_any_content_gives_a_value_or_an_error_of_ours(wire):
    @settings(
        settings.get_profile("faults-long"),
        max_examples=5_000 if IS_LONG else 200,
        derandomize=not IS_LONG,
        database=None,
    )
    @given(view=st.sampled_from(sorted(KINDS)), script=st.lists(answers(wire), min_size=1, max_size=3))
    def play(view, script):
        gives_a_value_or_an_error_of_ours(wire, view, script)

    play()


@pytest.mark.parametrize("odd", [{"usage": {"prompt_tokens": math.nan}}, {"created": 10**400}], ids=["nan", "far"])
def test_numbers_that_are_none(odd):
    gives_a_value_or_an_error_of_ours("chat", "number", [lambda _: json_answer({**completion("7"), **odd})])


def gives_a_value_or_an_error_of_ours(wire, view, script):
    number = itertools.count()

    def answer(request):
        assert wire_of(request.path.partition("?")[0]) == wire
        return script[min(next(number), len(script) - 1)](request)

    async def ask():
        async with LoopbackServer(answer) as server:
            llm = model_of(wire, server.base_url, api_key="k", retry_delay=0.001, max_retries=1, timeout=1)
            with budget(tokens=10**30) as spent:
                try:
                    async with asyncio.timeout(10):
                        value = await views(llm)[view]("x")
                except SimpleLLMFuncError as error:
                    assert str(error)
                else:
                    assert isinstance(value, KINDS[view])
            assert 0 <= spent.tokens < 10**30
            assert spent.requests <= len(server.requests)

    asyncio.run(ask())
