"""The cards of a call's result and preview, of a map's report, and of stored runs.

Stored runs are untyped, since this room must not import the trace store.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.base.run import Preview, Result
from SimpleLLMFunc.display.cards import Card, Part, conversation, in_dollars, in_tokens, listed, plainly
from SimpleLLMFunc.errors import CheckpointError, counted
from SimpleLLMFunc.type import ToolSpec, spec_name

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import MapReport, MapRow, MapRows

_SHOWN = 10
"""Rows that a card shows."""


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
    parts = [
        conversation(preview.messages),
        listed(tools, "tool", ("tool", "description", "parameters")),
        Part("response format", [] if preview.response_format is None else [(plainly(preview.response_format),)]),
        Part("as curl", [(preview.as_curl(),)]),
    ]
    return Card("Preview: nothing has been sent", facts, parts)


def _tool(spec: ToolSpec) -> tuple[str, str, str]:
    function = spec.get("function", {})
    parameters = function.get("parameters", {}) if "function" in spec else spec
    return spec_name(spec), function.get("description", ""), plainly(parameters)


def report_card(report: MapReport[Any]) -> Card:
    """Return the report of a map as a card."""
    counts = report.counts
    facts = [
        ("rows", str(counts.rows)),
        ("asked", str(counts.asked)),
        ("restored", str(counts.restored or "")),
        ("duplicates", str(counts.duplicates or "")),
        ("not asked", str(counts.invalid + counts.unasked or "")),
        ("failed", str(counts.failed)),
        ("tokens", in_tokens(report.usage)),
        ("cost", in_dollars(report.cost)),
        ("seconds", f"{report.seconds:.1f}"),
        ("stopped", "" if report.stopped is None else str(report.stopped)),
    ]
    errors = [(kind, str(count)) for kind, count in report.errors.items()]
    first = f"the first {min(len(report.rows), _SHOWN)} of {counted(len(report.rows), 'row')}"
    parts = [
        Part("errors by kind", errors, ("error", "rows")),
        Part(first, _rows_shown(report.rows), ("row", "given", "value or error")),
    ]
    return Card(f"Map of {report.name}" if report.name else "Map", facts, parts)


def _rows_shown(rows: MapRows[Any]) -> list[tuple[str, str, str]]:
    try:
        return [(str(row.index), plainly(row.row), _came_of(row)) for row in islice(rows, _SHOWN)]
    except CheckpointError as error:
        return [("", "", str(error))]


def _came_of(row: MapRow[Any]) -> str:
    error = row.error
    return plainly(row.value) if error is None else f"{type(error).__name__}: {error}"


def page_card(page: Any) -> Card:
    """Return a `RunPage` of the trace store as a card."""
    rows = []
    for run in page.runs:
        began = (str(run.id), when(run.started), run.function, run.model)
        took = (run.status, _seconds(run.seconds), str(run.input_tokens + run.output_tokens))
        cost = "" if run.cost is None else f"{run.cost:.4f}"
        rows.append((*began, *took, cost, run.question, run.error if run.status == "error" else run.answer))
    headers = ("run", "began", "function", "model", "status", "seconds", "tokens", "USD", "arguments", "answer")
    more = "there are more" if page.next is not None else ""
    return Card("Runs", [("runs", str(len(rows))), ("next", more)], [listed(rows, "run", headers)])


def run_card(detail: Any) -> Card:
    """Return a `RunDetail` of the trace store as a card."""
    run = detail.summary
    facts = [
        ("error", f"{run.error}: {detail.error_text}" if run.error else ""),
        ("value", _plainly_or_empty(detail.value)),
        ("arguments", "" if not detail.arguments else plainly(detail.arguments)),
        ("model", f"{run.model} ({run.provider})" if run.model else ""),
        ("began", when(run.started)),
        ("seconds", _seconds(run.seconds)),
        ("tokens", in_tokens(run)),
        ("cost", in_dollars(run.cost)),
        ("version", run.version),
        ("trace", run.trace_id),
        ("part of", run.parent),
        ("mark", marked(run)),
    ]
    turns = [
        (str(turn.turn), _seconds(turn.seconds), turn.model, _read_and_written(turn), turn.finish_reason)
        for turn in detail.turns
    ]
    calls = [
        (call.name, plainly(call.arguments), _plainly_or_empty(call.content), _seconds(call.seconds))
        for call in detail.tool_calls
    ]
    tries = [(f"{each.at:.2f}", each.error, each.text) for each in detail.tries]
    violations = [(str(path) or "the answer", *rest) for review in detail.reviews for path, *rest in review.violations]
    repairs = [(str(path) or "the answer", *rest) for review in detail.reviews for path, *rest in review.repairs]
    children = [(str(child.id), child.function, child.status, _seconds(child.seconds)) for child in detail.children]
    parts = [
        listed(turns, "turn", ("turn", "seconds", "model", "read / written", "ended")),
        listed(tries, "failed try", ("after s", "error", "text"), "failed tries"),
        listed(violations, "violation", ("where", "expected", "got")),
        listed(repairs, "repair", ("where", "what")),
        listed(calls, "tool call", ("tool", "arguments", "result", "seconds")),
        listed(children, "run inside", ("run", "function", "status", "seconds"), "runs inside"),
        conversation(detail.messages),
    ]
    return Card(f"Run {run.id}: {run.function} {run.status}", facts, parts)


def marked(run: Any) -> str:
    """Return the mark of a `RunSummary` in words; empty without one."""
    score = "" if run.score is None else f"score {run.score:g}"
    return ", ".join(filter(None, (run.thumb and f"thumb {run.thumb}", score, *run.tags, run.comment)))


def when(moment: float) -> str:
    """Return seconds since the epoch as date and time of this machine."""
    return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _plainly_or_empty(value: Any) -> str:
    return "" if value is None else plainly(value)


def _read_and_written(turn: Any) -> str:
    return f"{turn.input_tokens} / {turn.output_tokens}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
