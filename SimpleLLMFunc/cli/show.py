"""Rows on the terminal: a table with `rich` where it is installed, columns without it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal, TypeAlias

import click

__all__ = ["Row", "show_rows"]

State: TypeAlias = Literal["ok", "no", "bad"]
"""Fine; not there, which need not be; wrong."""

Row: TypeAlias = tuple[State, str, str]
"""State, what it is about, what there is to say."""

_COLOURS = {"ok": "green", "no": "yellow", "bad": "red"}


def show_rows(rows: Sequence[Row]) -> None:
    """Print `rows` to stdout."""
    if sys.stdout.isatty() and _show_table(rows):
        return
    width = max(len(name) for _, name, _ in rows)
    for state, name, text in rows:
        click.echo(f"{click.style(f'{state:<3}', fg=_COLOURS[state])}  {name:<{width}}  {text}")


def _show_table(rows: Sequence[Row]) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(show_header=False, box=None)
    for state, name, text in rows:
        # As Text, for brackets in a path are no markup.
        table.add_row(Text(state, style=_COLOURS[state]), Text(name, style="bold"), Text(text, overflow="fold"))
    Console().print(table)
    return True
