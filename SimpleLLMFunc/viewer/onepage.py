"""One run as one HTML file, to send by mail: no script, no address, no secret."""

from __future__ import annotations

from html import escape
from typing import Final

from SimpleLLMFunc.display import cards
from SimpleLLMFunc.display.cards import Card, Part, plainly
from SimpleLLMFunc.display.runs import run_card
from SimpleLLMFunc.observability.store import RunDetail

_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark"><title>{title}</title></head><body>
"""


def as_html(detail: RunDetail) -> str:
    """Return a run as an HTML page: its card, and every request and reply.

    Left out: addresses and headers of requests, user and session. Secrets are masked once more: some may have become
    known after the run was stored.
    """
    card, about = run_card(detail), detail.function_version
    facts = [*card.facts, ("asked as", detail.output_mode)]
    if about is not None:
        facts.append(("function", f"def {about.function}{about.signature}:\n    {about.docstring}"))
    if isinstance(detail.answer, str) and detail.answer != detail.value:
        facts.append(("as written", detail.answer))
    sent = [
        Part(f"request {turn.number}", [("sent", plainly(turn.request)), ("reply", plainly(turn.reply))])
        for turn in detail.turns
    ]
    body = cards.as_html(Card(card.title, facts, [*card.parts, *sent]), whole=True)
    return f"{_HEAD.format(title=escape(f'{detail.summary.function} {detail.summary.status}'))}{body}\n</body></html>\n"
