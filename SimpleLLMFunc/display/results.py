"""The cards of a call's result and preview."""

from __future__ import annotations

from typing import Any

from SimpleLLMFunc.base.run import Preview, Result
from SimpleLLMFunc.display.cards import Card, Part, conversation, plainly
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.type import spec_name


def result_card(result: Result[Any]) -> Card:
    """Return the result of a call as a card."""
    usage = result.usage
    value = plainly(result.value)
    facts = [
        ("value", value),
        ("answer", result.text if result.text != value else ""),
        ("thinking", result.thinking),
        ("tokens", f"{usage.input_tokens} read, {usage.output_tokens} written"),
        ("cost", _usd(result.cost)),
        ("seconds", f"{result.seconds:.2f}{' (from a cache)' if result.cached else ''}"),
        ("asked for", result.output_mode_reason or result.output_mode),
        ("ended", result.finish_reason if result.finish_reason not in {None, "stop", "tool_calls"} else ""),
        ("trace", result.trace_id),
    ]
    rejected = [
        (path or "the answer", expected, got)
        for attempt in result.attempts
        for path, expected, got in attempt.violations
    ]
    calls = [(call.function.name, call.function.arguments) for call in result.tool_calls]
    parts = [
        Part(counted(len(result.repairs), "repair"), [(path or "the answer", what) for path, what in result.repairs]),
        Part(counted(len(rejected), "violation") + " of rejected answers", rejected, ("where", "expected", "got")),
        Part(counted(len(result.downgrades), "downgrade"), result.downgrades, ("what", "the service said")),
        Part(counted(len(calls), "tool call"), calls, ("tool", "arguments")),
        Part(
            counted(len(result.server_tools), "tool") + " that the service ran",
            [(each.type, plainly(each.input), plainly(each.output)) for each in result.server_tools],
            ("tool", "input", "output"),
        ),
        Part(
            counted(len(result.citations), "citation"),
            [(each.title, each.url, each.text) for each in result.citations],
            ("title", "url", "text"),
        ),
        conversation(result.messages),
    ]
    return Card("Result", [(name, text or "") for name, text in facts], parts)


def preview_card(preview: Preview) -> Card:
    """Return a request that was not sent as a card."""
    facts = [
        ("model", preview.model),
        ("address", preview.url),
        ("asked for", preview.output_mode_reason or preview.output_mode),
        ("input", f"about {preview.input_tokens} tokens"),
        ("price", _usd(preview.cost) or "unknown"),
        ("improvement", preview.improvement),
        *((name, plainly(value)) for name, value in preview.params.items()),
    ]
    tools = [
        (
            spec_name(tool),
            told.get("description", ""),
            plainly(told.get("parameters", {}) if "function" in tool else tool),
        )
        for tool in preview.tools or ()
        for told in (tool.get("function", {}),)
    ]
    schema = [] if preview.response_format is None else [(plainly(preview.response_format),)]
    parts = [
        conversation(preview.messages),
        Part(counted(len(tools), "tool"), tools, ("tool", "description", "parameters")),
        Part("response format", schema),
        Part("as curl", [(preview.as_curl(),)]),
    ]
    return Card("Preview: nothing has been sent", facts, parts)


def _usd(cost: float | None) -> str:
    return "" if cost is None else f"{cost:.6f} USD"
