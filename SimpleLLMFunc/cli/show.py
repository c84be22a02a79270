"""Rows on the terminal: a table with `rich` where it is installed, columns without it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal, TypeAlias

import click

from SimpleLLMFunc.display.tables import text_table

State: TypeAlias = Literal["ok", "no", "bad"]
"""Fine; missing, which is allowed; wrong."""

Row: TypeAlias = tuple[State, str, str]
"""State, name, text."""

_COLOURS = {"ok": "green", "no": "yellow", "bad": "red", "error": "red", "lost": "red", "running": "cyan"}


def show_rows(rows: Sequence[Row]) -> None:
    """Print `rows` to stdout."""
    if sys.stdout.isatty() and _rich_table((), rows):
        return
    width = max(len(name) for _, name, _ in rows)
    for state, name, text in rows:
        click.echo(f"{click.style(f'{state:<3}', fg=_COLOURS[state])}  {name:<{width}}  {text}")


def show_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to stdout; cells are text, without markup of `rich`."""
    if sys.stdout.isatty() and _rich_table(headers, rows):
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
