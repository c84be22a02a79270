"""How a result looks in a notebook and on a terminal with `rich`: cards of named facts, as HTML or as a table; and tables of text.

Models, users and services wrote the contents of a card: all of it is shown as text, without secrets, markup or terminal
escapes.
"""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.base.run import KEY_VARIABLE
from SimpleLLMFunc.errors import counted, cut
from SimpleLLMFunc.logger import escape_control, redact_head

if TYPE_CHECKING:
    from rich.console import RenderableType

_LONGEST = 4_000
"""Characters of one text that a card shows."""

_MOST = 50
"""Lines of a list, rows of a table."""

_STYLE = (
    ".slf{font:13px/1.45 system-ui,sans-serif;max-width:72em}"
    ".slf table{border-collapse:collapse;margin:.3em 0}"
    ".slf th,.slf td{text-align:left;vertical-align:top;padding:.15em .9em .15em 0;background:none}"
    ".slf th{font-weight:600;white-space:nowrap}"
    ".slf pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.4 ui-monospace,monospace;background:none}"
    ".slf summary{cursor:pointer}"
)


@dataclass(frozen=True, slots=True)
class Part:
    """Something further of a card, folded in a notebook.

    Attributes:
        title: in a few words.
        headers: of the table's columns; empty for none.
        rows: each of as many texts as there are headers.
    """

    title: str
    rows: Sequence[Sequence[str]]
    headers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """A summary of an object, to show it.

    Attributes:
        title: in a few words.
        facts: name and text; empty texts are left out.
        parts: further tables.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    parts: Sequence[Part] = field(default=())


def plainly(value: Any) -> str:
    """Return any value as text: a text as it is, data as JSON, else its repr."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(to_jsonable_python(value), ensure_ascii=False, indent=2)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        pass
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a user's object may fail in its repr
        return f"<{type(value).__name__}>"


def conversation(messages: Sequence[Any]) -> Part:
    """Return the messages of a conversation as a table."""
    rows = [(str(message.get("role", "")), _content(message)) for message in messages if isinstance(message, Mapping)]
    return Part(counted(len(messages), "message"), rows, ("who", "what"))


def listed(rows: Sequence[Sequence[str]], noun: str, headers: Sequence[str] = (), plural: str = "") -> Part:
    """Return rows as a part that is titled with their number."""
    return Part(counted(len(rows), noun, plural), rows, headers)


def in_dollars(cost: float | None) -> str:
    """Return a cost as text; empty for an unknown one."""
    return "" if cost is None else f"{cost:.6f} USD"


def in_tokens(usage: Any) -> str:
    """Return the tokens of a `Usage`, or of a stored run, as text."""
    return f"{usage.input_tokens} read, {usage.output_tokens} written"


def fact_lines(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the facts of a card with a text."""
    return ((name, text) for name, text in card.facts if text)


def as_text(card: Card) -> str:
    """Return the whole of a card as plain text: a line for each fact, and below them the rows of its parts."""
    lines = [card.title, *(f"{name:<9} {text}" for name, text in fact_lines(card))]
    for part in card.parts:
        if part.rows:
            lines += ["", f"{part.title}: {', '.join(part.headers)}", *("  ".join(row) for row in part.rows)]
    return "\n".join(_visible(line, None) for line in lines)


def as_html(card: Card, *, whole: bool = False) -> str:
    """Return a card as HTML without scripts, links and pictures; shortened for a notebook unless `whole`."""
    longest, most = (None, None) if whole else (_LONGEST, _MOST)
    facts = "".join(
        f"<tr><th>{_inline(name)}</th><td>{_block(text, longest)}</td></tr>" for name, text in fact_lines(card)
    )
    parts = "".join(_part_html(part, longest, most) for part in card.parts if part.rows)
    return f'<div class="slf"><style>{_STYLE}</style><b>{_inline(card.title)}</b><table>{facts}</table>{parts}</div>'


def as_rich(card: Card) -> RenderableType:
    """Return a card for `rich`, which the caller has imported."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    # As Text, since brackets in a model's text are not markup.
    facts = Table(show_header=False, box=None, title=Text(_visible(card.title), style="bold"), title_justify="left")
    for name, text in fact_lines(card):
        facts.add_row(Text(_visible(name), style="bold"), Text(_visible(text), overflow="fold"))
    tables: list[RenderableType] = [facts]
    for part in card.parts:
        if not part.rows:
            continue
        table = Table(*part.headers, show_header=bool(part.headers), title=Text(_visible(part.title)))
        for row in part.rows[:_MOST]:
            table.add_row(*(Text(_visible(cut(cell, 500)), overflow="fold") for cell in row))
        tables.append(table)
    return Group(*tables)


def _part_html(part: Part, longest: int | None, most: int | None) -> str:
    head = "".join(f"<th>{_inline(header)}</th>" for header in part.headers)
    shown = part.rows[:most]
    rows = "".join(f"<tr>{''.join(f'<td>{_block(cell, longest)}</td>' for cell in row)}</tr>" for row in shown)
    more = len(part.rows) - len(shown)
    rest = f"<tr><td>and {more} more</td></tr>" if more else ""
    return (
        f"<details><summary>{_inline(part.title)}</summary><table>"
        f"{f'<tr>{head}</tr>' if head else ''}{rows}{rest}</table></details>"
    )


def _inline(text: str) -> str:
    return html.escape(_visible(cut(text, 200)).replace("\n", " "))


def _block(text: str, longest: int | None) -> str:
    return f"<pre>{html.escape(_visible(text, longest))}</pre>"


def _visible(text: str, longest: int | None = _LONGEST) -> str:
    """Return text without secrets, cut, with control characters and direction marks made visible."""
    # The name of a key's variable stays: masked, the command would not run.
    key = KEY_VARIABLE.search(text)
    pieces = [text] if key is None else [text[: key.start()], text[key.end() :]]
    shown = (key[0] if key else "").join(redact_head(piece, longest or len(piece)) for piece in pieces)
    lines = shown.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(escape_control(piece) for piece in line.split("\t")) for line in lines)


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    lines = [content] if isinstance(content, str) else [_piece(piece) for piece in content or ()]
    for call in message.get("tool_calls") or ():
        function = call.get("function", {}) if isinstance(call, Mapping) else {}
        lines.append(f"calls {function.get('name')}({function.get('arguments')})")
    return "\n".join(lines)


def _piece(piece: Any) -> str:
    text = piece.get("text") if isinstance(piece, Mapping) else None
    return text if isinstance(text, str) else cut(plainly(piece), 200)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool = False, rule: bool = True) -> str:
    """Return a table with aligned columns; wide characters such as Chinese count twice."""
    lines = [list(head), *map(list, rows)]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(head))]
    padded = [[cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)] for line in lines]
    if markdown:
        line = "|".join("-" * (width + 2) for width in widths)
        written = ["| " + " | ".join(line) + " |" for line in padded]
        return "\n".join([written[0], f"|{line}|", *written[1:]])
    written = ["  ".join(line).rstrip() for line in padded]
    ruled = ["  ".join("-" * width for width in widths)] * rule
    return "\n".join([written[0], *ruled, *written[1:]])


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in {"F", "W"} else 1 for char in text)
