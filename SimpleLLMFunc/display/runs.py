"""The cards of a stored run and of a page of runs; untyped, since this room must not import the trace store."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from SimpleLLMFunc.display.cards import Card, conversation, in_dollars, in_tokens, listed, plainly


def page_card(page: Any) -> Card:
    """Return a `RunPage` of the trace store as a card."""
    rows = [
        (
            str(run.id),
            when(run.started),
            run.function,
            run.model,
            run.status,
            _seconds(run.seconds),
            str(run.input_tokens + run.output_tokens),
            "" if run.cost is None else f"{run.cost:.4f}",
            run.question,
            run.error if run.status == "error" else run.answer,
        )
        for run in page.runs
    ]
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
