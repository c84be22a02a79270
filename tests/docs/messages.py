"""All messages of the package in one table, for reading: ``python -m tests.docs.messages [WORD …]``.

A row is a place, the error's class (or how the message is told), and its text; ``{…}`` is what is filled in. Words leave
only the rows that hold one of them. Left out: what is no literal at its place (a constant of a module, a word file of the
assistant or the pages), and built-in errors of other kinds than the two in ``TOLD``.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from SimpleLLMFunc import errors
from tests.docs.pages import ROOT

OURS = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, BaseException)}
TOLD = {"push_warning", "push_error", "warn", "fail", "echo", "secho", "BadParameter", "UsageError", "ClickException"}
TOLD |= {"ModelRetry", "Problem", "Refusal", "ValueError", "FileNotFoundError"}
HELP = {"help", "short_help", "epilog"}


@dataclass(frozen=True)
class Told:
    """One message: where it is, what tells it, its text."""

    place: str
    kind: str
    text: str


def text_of(node: ast.expr) -> str:
    """Return the texts inside an expression as a reader sees them, with ``{…}`` for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(text_of(each) for each in values)
        case ast.FormattedValue(value=value):
            return "{" + ast.unparse(value) + "}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.IfExp(body=body, orelse=orelse):
            return f"{text_of(body)} | {text_of(orelse)}"
    return "{" + ast.unparse(node) + "}"


def messages(folder: Path = ROOT / "SimpleLLMFunc") -> Iterator[Told]:
    """Yield each message of the modules in `folder`, in their order."""
    for path in sorted(folder.rglob("*.py")):
        # An error's own module puts its text together; a command's docstring is its --help.
        parts = {"__init__"} if path.parent.name == "errors" else set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name, said = "", list[ast.expr]()
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                said = node.args if name in OURS | TOLD | parts else []
                said = [*said, *(each.value for each in node.keywords if each.arg in HELP)]
            elif isinstance(node, ast.Assign) and parts:
                name, said = "text", [node.value]
            elif isinstance(node, ast.FunctionDef) and re.search(r"\.(command|group)\b", _decorators(node)):
                name, said = "--help", [each.value for each in node.body[:1] if isinstance(each, ast.Expr)]
            for each in filter(_holds_text, said):
                yield Told(f"{path.relative_to(folder.parent)}:{each.lineno}", name, " ".join(text_of(each).split()))


def _decorators(node: ast.FunctionDef) -> str:
    return " ".join(map(ast.unparse, node.decorator_list))


def _holds_text(node: ast.expr) -> bool:
    """True for a text in which something is said, not only a name."""
    return " " in "".join(
        each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and str(each.value) == each.value
    )


if __name__ == "__main__":
    for told in messages():
        if len(sys.argv) == 1 or any(word in told.text for word in sys.argv[1:]):
            print(f"{told.place} | {told.kind} | {told.text}")
