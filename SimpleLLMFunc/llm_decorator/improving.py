"""`f.improve` as a view of a function: its options, its outcome, and that as a patch. The search is in `SimpleLLMFunc.improve`."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from os import PathLike
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypedDict, TypeVar

from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.interface.spending import Spent
from SimpleLLMFunc.runtime import import_module

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import Budget, Progress

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)

_ARGUMENTS = ("examples", "max_examples", "output_mode", "system_prompt_template", "think_first")
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Change:
    """One changed part of a function.

    Attributes:
        what: "examples", "calibration", "output mode", "think first", "prompt", "docstring" or "descriptions".
        was: before, in words.
        now: in words.
    """

    what: str
    was: str
    now: str

    def __str__(self) -> str:
        was, now = (cut(" ".join(text.split()), 200) for text in (self.was, self.now))
        return f"{self.what}: {was} -> {now}"


@dataclass(frozen=True)
class Improved(Generic[F_co]):
    """The outcome of `f.improve`.

    Attributes:
        function: the better function where `accepted`, else the function as it was.
        accepted: on the held-out cases it is better, and that is no chance (p < 0.05).
        before, after: mean score on the held-out cases, of the function as it was and as the search found it; nan where no
            held-out case was answered.
        interval: of the difference, 95 %.
        p_value: of the paired test, two-sided.
        changes: what is different now; empty where nothing was accepted.
        spent: requests, tokens and money of the whole search, an interrupted part of it included.
        why: one sentence that says why it was accepted, or not.
        report: the content of the file as JSON data, with all attempts.
    """

    function: F_co
    accepted: bool
    before: float
    after: float
    interval: tuple[float, float]
    p_value: float
    changes: tuple[Change, ...]
    spent: Spent
    why: str
    report: Mapping[str, Any] = field(repr=False)

    def diff(self) -> str:
        """Return the change of docstring, examples and output mode as a patch of the source file, for `git apply`.

        It is empty where nothing was accepted. What has no place in the source of the function (descriptions of fields,
        a calibration) is left out; the file of the improvement has it.

        Raises:
            UsageError: the source cannot be found or changed; says why.
        """
        function: Any = self.function
        return source_patch(function.__wrapped__, self.report["options"]) if self.accepted else ""

    def __str__(self) -> str:
        held, choice = self.report["held_out"], self.report["choice"]
        low, high = self.interval
        lines = [
            f"{self.report['function']}: {self.why}",
            *(
                f"  {name:8}  {part['cases']:4} cases  {_score(part['before'])} -> {_score(part['after'])}"
                for name, part in {"held out": held, "choice": choice}.items()
            ),
            f"  difference on the held-out part {_points(held['difference'])} ({low:+.3f} .. {high:+.3f}), p = {self.p_value:.3g}",
            "  the search chose by the choice part: that score flatters what was found",
            *(f"  {change}" for change in self.changes),
            f"  {len(self.report['tried'])} forms tried, {self.spent.requests} requests",
        ]
        return "\n".join(lines)


def _score(score: Mapping[str, Any] | None) -> str:
    return "-" if score is None else f"{score['mean']:.3f} ({score['low']:.3f} .. {score['high']:.3f})"


def _points(difference: float | None) -> str:
    return "-" if difference is None else f"{difference:+.3f}"


class ImproveOptions(TypedDict, total=False):
    """The options of `f.improve`.

    Attributes:
        scorer: one, as for `evaluate`; the search makes its mean larger. "exact" is the default.
        budget: a number of requests, or a `budget(...)`; None, the default, is three requests for each case.
        proposer: a model that proposes other wordings of the docstring and of field descriptions, or a `Proposer`.
        seed: of the split and of random choices; 0 is the default.
        path: of the JSON file to write, for ``with_options(improvement=path)``. A search that was interrupted goes on
            from ``path + ".sqlite"``.
        concurrency: how many cases are asked at a time; "auto" is the default.
        progress: as for `map`.
    """

    scorer: Any
    budget: int | Budget | None
    proposer: Any
    seed: int
    path: str | PathLike[str] | None
    concurrency: int | Literal["auto"]
    progress: Progress


async def improved(function: F, cases: Any, options: ImproveOptions) -> Improved[F]:
    """Return what a search for a better form of the function found; see `AsyncFunctionViews.improve`."""
    await import_module("SimpleLLMFunc.improve")  # a room above this one, loaded when it is needed
    found: Improved[F] = await resolve_name("SimpleLLMFunc.improve:improved")(function, cases, **options)
    return found


# --- a changed function, as a patch of its source file ---------------------------------------------------------


def source_patch(func: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Return the unified diff that puts options of an improvement into the source of a function.

    Raises:
        UsageError: there is no source, or it is not written in a way that can be changed.
    """
    arguments = {key: _literal(key, options[key]) for key in _ARGUMENTS if key in options}
    return patched_source(func, options.get("docstring"), arguments)


def patched_source(
    func: Callable[..., Any], docstring: str | None, arguments: Mapping[str, str], imported: str = ""
) -> str:
    """Return the unified diff that gives a function a docstring, and its decorator keyword arguments.

    Args:
        func: as it was written, without its decorator.
        docstring: None leaves the one it has.
        arguments: as source, by name.
        imported: a name of ours that the arguments need.

    Raises:
        UsageError: there is no source, or it is not written in a way that can be changed.
    """
    name = getattr(func, "__qualname__", repr(func))
    try:
        path = Path(inspect.getsourcefile(func) or "")
        source = path.read_bytes()
        source.decode()  # other encodings cannot be changed
        tree = ast.parse(source)
        node = _node_of(tree, func.__code__.co_firstlineno)
    except (OSError, TypeError, ValueError, AttributeError, SyntaxError) as error:
        raise UsageError(f"the source of {name} cannot be read ({error}). Change it by hand.") from error
    if node is None:
        raise UsageError(f"{name} is not where it was when it was imported. Import its module again.")
    edit = _Edit(source)
    if imported and imported not in func.__globals__:
        edit.add_import(tree, imported)
    if arguments:
        edit.set_arguments(_decorator_of(node, name), arguments)
    if docstring is not None:
        edit.set_docstring(node, docstring)
    changed = edit.result()
    try:
        ast.parse(changed)
    except SyntaxError as error:
        raise UsageError(f"the source of {name} cannot be changed ({error}). Change it by hand.") from error
    shown = path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name
    # Bytes: of a text a form feed ends a line too, and no patch counts so.
    before, after = ([*map(bytes.decode, text.splitlines(keepends=True))] for text in (source, changed))
    lines = difflib.unified_diff(before, after, f"a/{shown}", f"b/{shown}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _node_of(tree: ast.AST, line: int) -> _Function | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == line:
                return node
    return None


def _decorator_of(node: _Function, name: str) -> ast.expr:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if str(getattr(called, "attr", None) or getattr(called, "id", "")).endswith("llm_function"):
            return decorator
    raise UsageError(f"{name} has no decorator @llm_function in its source. Change it by hand.")


def _literal(key: str, value: Any) -> str:
    """Return a value as source; lines after the first as in a decorator that begins at the margin."""
    if key != "examples" or not value:
        return repr(value)
    pairs = [f"        ({_python(line['args'])}, {_python(line['value'])}),\n" for line in value]
    return f"[\n{''.join(pairs)}    ]"


def _python(data: Any) -> str:
    """Return JSON data as Python writes it."""
    return repr(json.loads(json.dumps(data)))


class _Edit:
    """Gathers what is replaced in a source; positions are those of `ast`: lines from 1, columns in bytes."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = list(accumulate(map(len, source.splitlines(keepends=True)), initial=0))
        self._edits: list[tuple[int, int, str]] = []

    def result(self) -> bytes:
        """Return the changed source."""
        changed = self._source
        for start, end, new in sorted(self._edits, reverse=True):
            changed = changed[:start] + new.encode() + changed[end:]
        return changed

    def add_import(self, tree: ast.Module, name: str) -> None:
        """Import a name of ours after the last import."""
        lines = [node.end_lineno or 0 for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        at = self._starts[max(lines, default=0)]
        self._edits.append((at, at, f"from SimpleLLMFunc import {name}\n"))

    def set_arguments(self, decorator: ast.expr, arguments: Mapping[str, str]) -> None:
        """Give the decorator these keyword arguments."""
        margin = " " * max(decorator.col_offset - 1, 0)
        written = {name: text.replace("\n", f"\n{margin}") for name, text in arguments.items()}
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        values = {each.arg: each.value for each in keywords}
        for name in written.keys() & values.keys():
            self._edits.append((*self._span(values[name]), written[name]))
        new = ", ".join(f"{name}={text}" for name, text in written.items() if name not in values)
        _, end = self._span(decorator)
        if not isinstance(decorator, ast.Call):
            self._edits.append((end, end, f"({new})"))
        elif new and keywords:
            # Before the first one: the span of a value does not hold the parentheses around it.
            first, _ = self._span(keywords[0])
            self._edits.append((first, first, f"{new}, "))
        elif new and decorator.args:
            _, last = self._span(decorator.args[-1])
            self._edits.append((last, last, f", {new}"))
        elif new:
            self._edits.append((end - 1, end - 1, new))

    def set_docstring(self, node: _Function, text: str) -> None:
        """Give the function this docstring."""
        first = node.body[0]
        margin = " " * first.col_offset
        escaped = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        if escaped.endswith('"'):
            escaped = escaped[:-1] + '\\"'
        body = textwrap.indent(escaped, margin).lstrip()
        written = f'"""{body}\n{margin}"""' if "\n" in escaped else f'"""{body}"""'
        start, end = self._span(first)
        if ast.get_docstring(node) is None:
            end, written = start, f"{written}\n{margin}"
        self._edits.append((start, end, written))

    def _span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        last, column = node.end_lineno or 0, node.end_col_offset or 0  # what was parsed has them
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[last - 1] + column
