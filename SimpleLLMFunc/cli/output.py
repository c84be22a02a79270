"""Output to the terminal: texts, values, JSON and tables, without terminal escapes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import click
from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.display.cards import text_table
from SimpleLLMFunc.logger import escape_control, redact


def printable(text: str) -> str:
    """Return text for a terminal: its lines stay, other control characters become visible escapes."""
    return "\n".join(
        "\t".join(escape_control(part) for part in line.split("\t")) for line in text.replace("\r\n", "\n").split("\n")
    )


def echo_safely(text: str, *, err: bool = False) -> None:
    """Print a text that may quote a service or a model: keys masked, no terminal escapes."""
    click.echo(printable(redact(text)), err=err)


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON text for stdout, which may be any file or pipe; a part without a JSON form is its repr."""
    try:
        data = to_jsonable_python(value, fallback=repr)
    except (PydanticSerializationError, ValueError):  # bytes that are no UTF-8, a serializer of the user's that fails
        data = repr(value)
    # JSON can escape every character: an encoding such as cp1252 has few.
    text = json.dumps(data, ensure_ascii=not output_encoding().startswith("utf"), indent=indent)
    # JSON allows these characters in a text, and a terminal obeys some of them.
    text = "\n".join(escape_control(line) for line in text.split("\n"))
    return text.encode("utf-8", "backslashreplace").decode()


def output_encoding() -> str:
    """Return the encoding of stdout, UTF-8 where it was closed."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower()


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()  # None: it was closed when the program started


def echo_json(value: Any) -> None:
    """Print JSON: on several lines for a terminal, on one line for a pipe."""
    click.echo(as_json(value, indent=2 if _is_terminal() else None))


def echo_text(text: str) -> None:
    """Print a text without a line end: unchanged to a file or a pipe, without terminal escapes to a terminal."""
    shown = printable(text) if _is_terminal() else text
    click.echo(shown.encode("utf-8", "replace").decode(), nl=False, color=True)


def echo_value(value: Any) -> None:
    """Print a function's value: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        echo_text(f"{value}\n")
    else:
        echo_json(value)


# --- tables: with `rich` where it is installed, columns without it ---


State: TypeAlias = Literal["ok", "no", "bad"]
"""Fine; missing, which is allowed; wrong."""

Row: TypeAlias = tuple[State, str, str]
"""State, name, text."""

_COLOURS = {"ok": "green", "no": "yellow", "bad": "red", "error": "red", "lost": "red", "running": "cyan"}


def show_rows(rows: Sequence[Row]) -> None:
    """Print `rows` to stdout."""
    if _is_terminal() and _rich_table((), rows):
        return
    width = max(len(name) for _, name, _ in rows)
    for state, name, text in rows:
        click.echo(f"{click.style(f'{state:<3}', fg=_COLOURS[state])}  {name:<{width}}  {text}")


def show_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to stdout; cells are text, without markup of `rich`."""
    if _is_terminal() and _rich_table(headers, rows):
        return
    click.echo(text_table(headers, rows, rule=False))


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(*headers, show_header=bool(headers), box=None)
    for row in rows:
        # As Text, since brackets in a path are not markup.
        cells = [Text(cell, style=_COLOURS.get(cell, ""), overflow="fold") for cell in row]
        if not headers:
            cells[1].stylize("bold")
        table.add_row(*cells)
    Console().print(table)
    return True
