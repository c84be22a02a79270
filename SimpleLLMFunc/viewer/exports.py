"""A stored run as a shell command, as a test, and as one HTML file to send by mail: no script, no address, no secret."""

from __future__ import annotations

import json
import keyword
import pprint
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, Template

from SimpleLLMFunc import errors
from SimpleLLMFunc.base.run import curl_command
from SimpleLLMFunc.display import cards
from SimpleLLMFunc.display.cards import Card, Part, plainly
from SimpleLLMFunc.display.results import run_card
from SimpleLLMFunc.logger import MASK
from SimpleLLMFunc.observability.store import RunDetail, StoredTurn, is_omitted
from SimpleLLMFunc.viewer.responses import Refusal

_NO_CONTENT: Final = "The store was told to keep no content: there is nothing to make this of."
_SHORTENED = re.compile(r"<(?:image|audio|file|bytes|base64) \d+ k?B>")


def as_curl(turn: StoredTurn) -> str:
    """Return a request as a shell command; the key is read from a variable.

    Raises:
        Refusal: the request is not known.
    """
    if turn.request is None or is_omitted(turn.request):
        raise Refusal(409, _NO_CONTENT)
    if not turn.url:
        raise Refusal(409, "This model has no address: it runs inside the process.")
    return curl_command(turn.url, turn.headers, turn.request)


def as_test(detail: RunDetail) -> str:
    """Return a run as a test: the same arguments, the same replies of the model and the tools, the same value.

    Raises:
        Refusal: the run cannot be played again.
    """
    run, version = detail.summary, detail.function_version
    place, _, qualname = (version.place if version else "").partition(":")
    is_importable = place and qualname and "<locals>" not in qualname
    path = (qualname if is_importable else run.function).split(".")
    module = "your_module" if place in {"", "__main__"} else place
    replies = [_reply(turn.reply) for turn in detail.turns if turn.reply is not None]
    if problem := _problem(detail, path, replies):
        raise Refusal(409, problem)
    return _template().render(
        about=_about(detail, ".".join(path), module, replies),
        is_chat=run.kind == "chat",
        error=run.error if run.status == "error" else "",
        module=module,
        path=path,
        arguments=detail.arguments or {},
        replies=replies,
        tools=[tool.get("function", tool) for tool in (version.tools if version else [])],
        tool_results={_call_key(call.name, call.arguments): call.content for call in detail.tool_calls},
        options=_options(detail),
        **_claim(detail),
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)  # noqa: S701 - Python, no HTML
    environment.filters["literal"] = partial(pprint.pformat, width=110, sort_dicts=False)
    return environment.from_string(files("SimpleLLMFunc.viewer").joinpath("recorded_test.py.jinja").read_text("utf-8"))


def _problem(detail: RunDetail, path: Sequence[str], replies: Sequence[Any]) -> str:
    """Return why a run cannot become a test; empty if it can."""
    run = detail.summary
    if run.kind not in {"function", "chat"}:
        return f"Only runs of functions and chats become a test; this is one of a {run.kind or 'caller'}."
    if run.status not in {"ok", "error"}:
        return f"Only a run that has ended becomes a test; this one is {run.status}."
    contents = [detail.arguments, *(turn.reply for turn in detail.turns), *(c.content for c in detail.tool_calls)]
    if any(map(is_omitted, contents)):
        return _NO_CONTENT
    if not replies:
        return "The model gave no reply in this run: there is nothing to play again."
    is_ours = isinstance(getattr(errors, run.error, None), type)
    if run.status == "error" and (detail.turns[-1].reply is None or not is_ours):
        return "The service failed in this run; its answer cannot be played again."
    if not all(each.isidentifier() and not keyword.iskeyword(each) for each in path):
        return "The function has no name that it can be imported by."
    return ""


def _about(detail: RunDetail, name: str, module: str, replies: Sequence[Any]) -> str:
    """Return the docstring of the file."""
    began = datetime.fromtimestamp(detail.summary.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [f"What {name} did on {began}, played again: no model is asked.", ""]
    lines.append(f"Run {detail.summary.trace_id}")
    if module == "your_module":
        lines.append("Write the module of the function in place of your_module.")
    whole = json.dumps([detail.arguments, replies], ensure_ascii=False)
    if MASK in whole or _SHORTENED.search(whole):
        lines.append("Secrets are masked here, and files named by their size: put in what the function needs.")
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', r"\"\"\"")


def _options(detail: RunDetail) -> Iterator[str]:
    """Yield the options of the run that are not those of every test."""
    if detail.function_version is not None and detail.function_version.tools:
        requests = [turn.request for turn in detail.turns if isinstance(turn.request, Mapping)]
        if requests and not any(request.get("tools") for request in requests):
            yield 'tools="json"'
    if detail.output_mode in {"native", "tool", "prompt", "choice"} and detail.summary.kind != "chat":
        yield f'output_mode="{detail.output_mode}"'


def _claim(detail: RunDetail) -> dict[str, Any]:
    """Return the outcome that the test compares, as code, and its expected value."""
    if detail.summary.kind == "chat":
        return {"outcome": 'pairs[-1][1][-1]["content"]', "expected": detail.answer}
    if detail.value is None and detail.answer:
        # The value had no JSON form, so the test compares the text.
        return {"outcome": "result.text", "expected": detail.answer}
    return {"outcome": "to_jsonable_python(result.value)", "expected": detail.value}


def _reply(reply: Any) -> Any:
    """Return a reply for `ScriptedLLM`: a text, else a message, else the whole reply."""
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices:
        return reply
    message = {name: part for name, part in (choices[0].get("message") or {}).items() if part not in (None, [], "")}
    message.pop("role", None)
    finish_reason = choices[0].get("finish_reason")
    if len(choices) > 1:
        return {"choices": choices}
    if finish_reason == "stop" and message.keys() <= {"content"}:
        return message.get("content", "")
    if finish_reason == "tool_calls" and message.keys() == {"tool_calls"}:
        return message
    return {"content": None, **message, "finish_reason": finish_reason}


def _call_key(name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {}
    return name + json.dumps(arguments or {}, sort_keys=True)


# --- one page ---


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
