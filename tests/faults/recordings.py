"""Streamed bodies as providers send them: what stands on the wire, and what it says.

Written after their published formats; ids and signatures are made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.faults.replies import USAGE, chunk, delta, event, events_of

TEXT = "caf\u00e9 \u2028 \U0001f600 \u201cdone\u201d\n\n[DONE]"


@dataclass(frozen=True)
class Recording:
    """One streamed body.

    Attributes:
        text, calls: what it says: the text, and the calls as (name, arguments).
    """

    name: str
    body: bytes
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish_reason: str | None = "stop"


def _body(*events: Any, end: bytes = b"\n") -> bytes:
    return b"".join(each if isinstance(each, bytes) else event(each, end) for each in events)


def _calls(*deltas: Any) -> list[dict[str, Any]]:
    return [chunk(tool_calls=each if isinstance(each, list) else [each]) for each in deltas]


COUNT = {**chunk(), "choices": [], "usage": USAGE}
FORECAST = (("forecast", '{"city":"K\u00f6ln"}'),)
TWO = (*FORECAST, ("forecast", '{"city":"Bonn"}'))

RECORDINGS = [
    Recording("openai", b"".join(events_of(TEXT)), TEXT),
    Recording("openai_crlf", b"".join(events_of(TEXT, end=b"\r\n")), TEXT),
    Recording("cr", b"".join(events_of(TEXT, end=b"\r")), TEXT),
    Recording("byte_order_mark", b"\xef\xbb\xbf" + b"".join(events_of(TEXT)), TEXT),
    Recording("no_done", b"".join(events_of(TEXT, done=False, usage=False)), TEXT),
    Recording("no_finish_reason", _body(chunk(content=TEXT), chunk(), COUNT, "[DONE]"), TEXT, finish_reason=None),
    Recording(
        "openrouter_comments",
        _body(b": OPENROUTER PROCESSING\n\n", chunk(role="assistant", content=""), b": OPENROUTER PROCESSING\n\n",
              chunk(content=TEXT), chunk("stop"), COUNT, "[DONE]"),
        TEXT,
    ),
    Recording(
        "several_lines",
        b'event: message\ndata: {"choices": [{"index": 0,\ndata:  "delta": {"content": "a b"}}]}\nid: 1\n\n'
        + _body(chunk("stop"), "[DONE]"),
        "a b",
    ),
    Recording(
        "surrogate_halves",
        _body('{"choices":[{"index":0,"delta":{"content":"a\\ud83c"}}]}',
              '{"choices":[{"index":0,"delta":{"content":"\\udf27b"}}]}', chunk("stop"), "[DONE]"),
        "a\U0001f327b",
    ),
    Recording(
        "openai_calls",
        _body(chunk(role="assistant", content=None),
              *_calls(delta(0, id="call_a", type="function", name="forecast", arguments=""),
                      delta(0, arguments='{"city":'), delta(0, arguments='"K\u00f6ln"}'),
                      delta(1, id="call_b", type="function", name="forecast", arguments=""),
                      delta(1, arguments='{"city":"Bonn"}')),
              chunk("tool_calls"), COUNT, "[DONE]"),
        calls=TWO, finish_reason="tool_calls",
    ),
    Recording(
        "gemini_calls",
        _body(*_calls(delta(id="x", type="function", name="forecast", arguments='{"city":',
                            extra_content={"google": {"thought_signature": "c2lnbmVk"}}), delta(arguments='"K\u00f6ln"}')),
              chunk("stop"), "[DONE]"),
        calls=FORECAST,
    ),
    Recording(
        "ollama_calls",
        _body(*_calls(delta(0, id="a", name="forecast", arguments='{"city":"K\u00f6ln"}'),
                      delta(0, id="b", name="forecast", arguments='{"city":"Bonn"}')), chunk("stop"), "[DONE]"),
        calls=TWO,
    ),
    Recording(
        "vllm_calls",
        _body(*_calls(*(delta(0, id="a", type="function", name="forecast", arguments=piece)
                        for piece in ('{"city"', ':"K\u00f6', 'ln"}'))), chunk("tool_calls"), "[DONE]"),
        calls=FORECAST, finish_reason="tool_calls",
    ),
    Recording(
        "deepseek_reasoning",
        _body(chunk(role="assistant", content=None, reasoning_content=""), chunk(content=None, reasoning_content="Hm."),
              chunk(content=TEXT, reasoning_content=None), {**chunk("stop", content=""), "usage": USAGE}, "[DONE]"),
        TEXT,
    ),
    Recording(
        "usage_in_each",
        _body(*({**chunk(content=piece), "usage": USAGE} for piece in ("a", "b")), {**chunk("stop"), "usage": USAGE}, COUNT),
        "ab",
    ),
    Recording(
        "azure_filters",
        _body({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}, chunk(content=TEXT), chunk("stop"), "[DONE]"),
        TEXT,
    ),
]  # fmt: skip
