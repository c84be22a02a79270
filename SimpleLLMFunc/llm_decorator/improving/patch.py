"""What a search found, as a patch of the file in which the function is written."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import os
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from SimpleLLMFunc.errors import UsageError

_ARGUMENTS = ("examples", "max_examples", "output_mode", "system_prompt_template", "think_first")


def source_patch(func: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Return the unified diff that puts options of an improvement into the source of a function.

    Raises:
        UsageError: there is no source, or it is not written in a way that can be changed.
    """
    name = getattr(func, "__qualname__", repr(func))
    try:
        file = inspect.getsourcefile(func)
        old = Path(file or "").read_text(encoding="utf-8")
        node = _node_of(ast.parse(old), func.__code__.co_firstlineno)
    except (OSError, TypeError, SyntaxError, AttributeError) as error:
        raise UsageError(f"the source of {name} cannot be read ({error}). The improvement is in its file.") from error
    if node is None:
        raise UsageError(f"{name} is not where it was when it was imported. Import its module again.")
    lines = old.splitlines(keepends=True)
    # From the end to the start, so that places above stay what they are.
    if "docstring" in options:
        _put_docstring(lines, node, options["docstring"])
    arguments = {key: options[key] for key in _ARGUMENTS if key in options}
    if arguments:
        _put_arguments(lines, node, arguments, name)
    shown = os.path.relpath(file or "").replace(os.sep, "/")
    new = "".join(lines).splitlines(keepends=True)
    return "".join(difflib.unified_diff(old.splitlines(keepends=True), new, f"a/{shown}", f"b/{shown}"))


def _node_of(tree: ast.AST, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == line:
                return node
    return None


def _put_docstring(lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> None:
    first = node.body[0]
    is_there = ast.get_docstring(node) is not None
    margin = " " * first.col_offset
    escaped = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if escaped.endswith('"'):
        escaped = escaped[:-1] + '\\"'
    body = textwrap.indent(escaped, margin).lstrip()
    written = f'"""{body}\n{margin}"""' if "\n" in escaped else f'"""{body}"""'
    if is_there:
        _splice(lines, (first.lineno, first.col_offset), (first.end_lineno, first.end_col_offset), written)
    else:
        _splice(lines, (first.lineno, first.col_offset), (first.lineno, first.col_offset), f"{written}\n{margin}")


def _put_arguments(
    lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef, arguments: Mapping[str, Any], name: str
) -> None:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if str(getattr(called, "attr", None) or getattr(called, "id", "")).endswith("llm_function"):
            break
    else:
        raise UsageError(f"{name} has no decorator @llm_function in its source. The improvement is in its file.")
    margin = " " * (decorator.col_offset - 1 if decorator.col_offset else 0)
    written = {key: f"{key}={_literal(key, value, margin)}" for key, value in arguments.items()}
    if not isinstance(decorator, ast.Call):
        end = (decorator.end_lineno, decorator.end_col_offset)
        _splice(lines, end, end, f"({', '.join(written.values())})")
        return
    there = {each.arg for each in decorator.keywords}
    added = [text for key, text in written.items() if key not in there]
    last = [
        (each.end_lineno, each.end_col_offset) for each in (*decorator.args, *(k.value for k in decorator.keywords))
    ]
    if added:
        # After the last argument; without one, before the closing bracket.
        at = max(last) if last else (decorator.end_lineno, (decorator.end_col_offset or 1) - 1)
        _splice(lines, at, at, f"{', ' if last else ''}{', '.join(added)}")
    for keyword in sorted(decorator.keywords, key=lambda each: (each.lineno, each.col_offset), reverse=True):
        if keyword.arg in written:
            end = (keyword.value.end_lineno, keyword.value.end_col_offset)
            _splice(lines, (keyword.lineno, keyword.col_offset), end, written[keyword.arg])


def _literal(key: str, value: Any, margin: str) -> str:
    if key != "examples" or not value:
        return repr(value)
    pairs = [f"{margin}        ({_python(line['args'])}, {_python(line['value'])}),\n" for line in value]
    return f"[\n{''.join(pairs)}{margin}    ]"


def _python(data: Any) -> str:
    """Return JSON data as Python writes it."""
    return repr(json.loads(json.dumps(data)))


def _splice(lines: list[str], start: tuple[Any, Any], end: tuple[Any, Any], text: str) -> None:
    """Put `text` in place of what stands between two places (line from 1, column in bytes of UTF-8)."""
    first, last = lines[start[0] - 1].encode(), lines[end[0] - 1].encode()
    lines[start[0] - 1 : end[0]] = [first[: start[1]].decode() + text + last[end[1] :].decode()]
