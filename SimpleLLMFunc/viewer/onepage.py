"""One run as one HTML file, to send by mail: no script, no address, no secret."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from SimpleLLMFunc.observability.store import RunDetail, StoredTurn
from SimpleLLMFunc.viewer.responses import clean

_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark"><title>{title}</title><style>
body {{ font: 15px/1.55 system-ui, sans-serif; max-width: 860px; margin: 32px auto; padding: 0 16px; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; border-radius: 6px; padding: 10px 12px; font-size: 13px; }}
h1 {{ font-size: 22px; }} h2 {{ font-size: 17px; margin-top: 28px; }} h3 {{ font-size: 14px; margin: 14px 0 4px; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 2px 18px; }} dt {{ opacity: 0.75; }} dd {{ margin: 0; overflow-wrap: anywhere; }}
</style></head><body>
"""


def as_html(detail: RunDetail) -> str:
    """Return a run as an HTML page: arguments, value, every request and reply, violations, tool calls.

    Left out: addresses and headers of requests, user and session. Secrets are masked once more: some may have become
    known after the run was stored.
    """
    run = detail.summary
    began = datetime.fromtimestamp(run.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [_HEAD.format(title=_text(f"{run.function} {run.status}")), f"<h1>{_text(run.function)}: {run.status}</h1>"]
    tokens = f"{run.input_tokens} read, {run.output_tokens} written"
    facts = {
        "Began": began,
        "Seconds": None if run.seconds is None else f"{run.seconds:.3f}",
        "Tokens": tokens,
        "Cost": None if run.cost is None else f"${run.cost:.6f}",
        "Model": f"{run.model} ({run.provider})",
        "Version": run.version,
        "Asked for as": detail.output_mode,
        "Run": run.trace_id,
        "Error": f"{run.error}: {detail.error_text}" if run.error else None,
        "Mark": ", ".join(
            filter(None, (run.thumb, "" if run.score is None else f"{run.score:g}", *run.tags, run.comment))
        ),
    }
    parts.append(_facts(facts))
    if detail.function_version is not None:
        about = detail.function_version
        parts += [_block("Function", f"def {run.function}{about.signature}:\n    {about.docstring}")]
    parts += [_block("Arguments", detail.arguments), _block("Value", detail.value)]
    if isinstance(detail.answer, str) and detail.answer != detail.value:
        parts.append(_block("Answer as written", detail.answer))
    for turn in detail.turns:
        parts += _turn(detail, turn)
    for call in detail.tool_calls:
        parts.append(f"<h2>Tool {_text(call.name)}{' (failed)' if call.failed else ''}</h2>")
        parts += [_block("", call.arguments), _block("", call.content)]
    return "\n".join(part for part in parts if part) + "\n</body></html>\n"


def _turn(detail: RunDetail, turn: StoredTurn) -> Iterable[str]:
    yield f"<h2>Request {turn.turn}</h2>"
    seconds = None if turn.seconds is None else f"{turn.seconds:.3f}"
    tokens = f"{turn.input_tokens} read, {turn.output_tokens} written"
    yield _facts({"Model": turn.model, "Seconds": seconds, "Tokens": tokens, "Ended with": turn.finish_reason})
    for each in detail.tries:
        if each.turn == turn.turn:
            yield _block("A try failed", f"{each.error} {each.text}")
    yield _block("Sent", turn.request)
    yield _block("Reply", turn.reply)
    for review in detail.reviews:
        if review.turn == turn.turn:
            for path, expected, got in review.violations:
                yield _block("Sent back", f"{path or 'the answer'}: expected {expected}, got {got}")
            for path, what in review.repairs:
                yield _block("Repaired", f"{path or 'the answer'}: {what}")


def _facts(facts: Mapping[str, Any]) -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts.items() if value)
    return f"<dl>{rows}</dl>"


def _block(name: str, value: Any) -> str:
    if value is None:
        return ""
    heading = f"<h3>{_text(name)}</h3>" if name else ""
    kept = clean(value)
    return f"{heading}<pre>{escape(kept if isinstance(kept, str) else json.dumps(kept, ensure_ascii=False, indent=2))}</pre>"


def _text(value: Any) -> str:
    return escape(str(clean(str(value))))
