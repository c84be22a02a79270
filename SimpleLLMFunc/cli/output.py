"""Output to the terminal: values as text or JSON, without terminal escapes."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

import click
from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.logger import escape_control, redact


def printable(text: str) -> str:
    """Return text for a terminal: its lines stay, other control characters become visible escapes."""
    return "\n".join(
        "\t".join(escape_control(part) for part in line.split("\t")) for line in text.replace("\r\n", "\n").split("\n")
    )


def echo_safely(text: str, *, err: bool = False) -> None:
    """Print a text that may quote a service or a model: keys masked, no terminal escapes."""
    click.echo(printable(redact(text)), err=err)


def jsonable(value: Any) -> Any:
    """Return a value as JSON data; a part without a JSON form by its repr."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    try:
        return to_jsonable_python(value, fallback=repr)
    except (PydanticSerializationError, ValueError):
        return repr(value)


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON text for any file or pipe."""
    text = json.dumps(jsonable(value), ensure_ascii=False, indent=indent)
    # JSON allows these characters in a text, and a terminal obeys some of them.
    text = "\n".join(escape_control(line) for line in text.split("\n"))
    return text.encode("utf-8", "backslashreplace").decode()


def echo_json(value: Any) -> None:
    """Print JSON: on several lines for a terminal, on one line for a pipe."""
    click.echo(as_json(value, indent=2 if sys.stdout.isatty() else None))


def echo_text(text: str) -> None:
    """Print a text without a line end: unchanged to a file or a pipe, without terminal escapes to a terminal."""
    shown = printable(text) if sys.stdout.isatty() else text
    click.echo(shown.encode("utf-8", "replace").decode(), nl=False, color=True)


def echo_value(value: Any) -> None:
    """Print a function's value: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        echo_text(f"{value}\n")
    else:
        echo_json(value)
