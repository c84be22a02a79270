"""The cards of a call's result and preview."""

from __future__ import annotations

from typing import Any

from SimpleLLMFunc.base.run import Preview, Result
from SimpleLLMFunc.display.cards import Card, Part, conversation, in_dollars, in_tokens, listed, plainly
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.type import ToolSpec, spec_name


def result_card(result: Result[Any]) -> Card:
    """Return the result of a call as a card."""
    value = plainly(result.value)
    facts = [
        ("value", value),
        ("answer", result.text if result.text != value else ""),
        ("thinking", result.thinking),
        ("tokens", in_tokens(result.usage)),
        ("cost", in_dollars(result.cost)),
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
    service_tools = [(each.type, plainly(each.input), plainly(each.output)) for each in result.server_tools]
    citations = [(each.title, each.url, each.text) for each in result.citations]
    parts = [
        listed([(path or "the answer", what) for path, what in result.repairs], "repair"),
        Part(counted(len(rejected), "violation") + " of rejected answers", rejected, ("where", "expected", "got")),
        listed(result.downgrades, "downgrade", ("what", "the service said")),
        listed(calls, "tool call", ("tool", "arguments")),
        Part(counted(len(service_tools), "tool") + " that the service ran", service_tools, ("tool", "input", "output")),
        listed(citations, "citation", ("title", "url", "text")),
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
        ("price", in_dollars(preview.cost) or "unknown"),
        ("improvement", preview.improvement),
        *((name, plainly(value)) for name, value in preview.params.items()),
    ]
    tools = [_tool(tool) for tool in preview.tools or ()]
    schema = [] if preview.response_format is None else [(plainly(preview.response_format),)]
    parts = [
        conversation(preview.messages),
        listed(tools, "tool", ("tool", "description", "parameters")),
        Part("response format", schema),
        Part("as curl", [(preview.as_curl(),)]),
    ]
    return Card("Preview: nothing has been sent", facts, parts)


def _tool(spec: ToolSpec) -> tuple[str, str, str]:
    function = spec.get("function", {})
    parameters = function.get("parameters", {}) if "function" in spec else spec
    return spec_name(spec), function.get("description", ""), plainly(parameters)
