"""A function changed for one try on the page, and the change as a patch of its source."""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.interface.current import named_model
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.viewer.offered import OfferedFunction
from SimpleLLMFunc.viewer.responses import Refusal, reason

_FIELDS: Final = ("docstring", "model", "temperature", "output_mode", "examples")
_MODES: Final = ("auto", "native", "tool", "prompt")
_MODEL: Final = re.compile(r"local|(openai|anthropic|gemini):[\w./:@-]{1,200}")
"""No file: the page names none."""
_DECORATORS: Final = ("llm_function", "async_llm_function")
_CLASSES: Final = {"openai": "OpenAICompatible", "anthropic": "Anthropic", "gemini": "Gemini"}


def varied(function: OfferedFunction, change: Any, models: Mapping[str, LLM_Interface]) -> OfferedFunction:
    """Return a function with another docstring, model, temperature, mode or other examples.

    Args:
        function: as it is.
        change: what is other: ``{"docstring", "model", "temperature", "output_mode", "examples"}``, any of them.
        models: by the names that they have in the modules that may be run.

    Raises:
        Refusal: the function cannot be changed so.
    """
    if change is None or change == {}:
        return function
    if not isinstance(change, dict) or set(change) - set(_FIELDS):
        raise Refusal(400, f"A function is changed in {', '.join(_FIELDS)}.")
    _check(change, models)
    options = {name: change[name] for name in ("temperature", "output_mode") if change.get(name) is not None}
    if change.get("examples") is not None:
        options["examples"] = _examples(change["examples"])
    model = change.get("model")
    try:
        if model is not None:
            options["llm_interface"] = models[model] if model in models else named_model(model, named_by="The model")
        pipeline = function.pipeline.with_options(options)
        if (docstring := change.get("docstring")) is not None:
            pipeline = pipeline.documented(inspect.cleandoc(str(docstring)))
        _ = pipeline.parts  # what does not fit is said now
    except SimpleLLMFuncError as error:
        raise Refusal(422, reason(error)) from None
    return replace(function, pipeline=pipeline)


def _check(change: Mapping[str, Any], models: Mapping[str, LLM_Interface]) -> None:
    model, temperature = change.get("model"), change.get("temperature", 0)
    if not (model is None or model in models or (isinstance(model, str) and _MODEL.fullmatch(model))):
        known = ", ".join(models) or "none"
        raise Refusal(422, f"Name a model as openai:NAME, or by its name in the module (there: {known}).")
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not (temperature is None or (is_number and math.isfinite(temperature))):
        raise Refusal(422, "The temperature is a number.")
    if change.get("output_mode", "auto") not in {None, *_MODES}:
        raise Refusal(422, f"The mode is one of {', '.join(_MODES)}.")


def _examples(given: Any) -> list[tuple[Any, Any]]:
    if not isinstance(given, list):
        raise Refusal(422, 'Examples are a list: [{"args": …, "value": …}].')
    found = []
    for each in given:
        if not isinstance(each, dict) or "args" not in each or not {"value", "expected"} & set(each):
            raise Refusal(422, 'An example is {"args": …, "value": …}.')
        found.append((each["args"], each.get("value", each.get("expected"))))
    return found


# --- the same as a patch ----------------------------------------------------------------------------------


def patch_of(function: OfferedFunction, change: Mapping[str, Any], models: Mapping[str, LLM_Interface]) -> str:
    """Return what `varied` changes as a patch of the source file, as ``git apply`` takes it.

    Raises:
        Refusal: the function cannot be changed so, or its source does not show what is changed.
    """
    varied(function, change, models)
    func = function.pipeline.definition.func
    try:
        path = Path(inspect.getsourcefile(func) or "")
        source = path.read_bytes()
        tree = ast.parse(source)
        found = _written(tree, func.__name__, func.__code__.co_firstlineno)
    except (OSError, TypeError, ValueError, AttributeError, SyntaxError):
        raise Refusal(409, "The source of the function cannot be read.") from None
    if found is None:
        raise Refusal(409, "No @llm_function stands above the function in its source.")
    edit = _Edit(source, tree)
    options, imported = _options(change, models)
    if imported and imported not in func.__globals__:
        edit.add_import(imported)
    edit.set_options(found[1], options)
    if change.get("docstring") is not None:
        edit.set_docstring(found[0], inspect.cleandoc(str(change["docstring"])))
    here = Path.cwd()
    name = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
    before, after = (text.decode().splitlines(keepends=True) for text in (source, edit.result()))
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _written(tree: ast.Module, name: str, line: int) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.expr] | None:
    """Return the function of that name at that line, which is that of its first decorator, and our decorator."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != name:
            continue
        if min([node.lineno, *(each.lineno for each in node.decorator_list)]) == line:
            for each in node.decorator_list:
                called = each.func if isinstance(each, ast.Call) else each
                if getattr(called, "id", getattr(called, "attr", "")) in _DECORATORS:
                    return node, each
    return None


def _options(change: Mapping[str, Any], models: Mapping[str, LLM_Interface]) -> tuple[dict[str, str], str]:
    """Return the options of the decorator as source, and the class that has to be imported for them."""
    options: dict[str, str] = {}
    imported = ""
    if (model := change.get("model")) is not None:
        maker, _, name = model.partition(":")
        imported = "" if model in models else _CLASSES.get(maker, "LocalModel")
        options["llm_interface"] = f"{imported}({name!r})" if name else f"{imported}()" if imported else model
    for name in ("temperature", "output_mode"):
        if change.get(name) is not None:
            options[name] = repr(change[name])
    if change.get("examples") is not None:
        options["examples"] = repr(_examples(change["examples"]))
    return options, imported


class _Edit:
    """Gathers what is replaced in a source; positions are those of `ast`: lines from 1, columns in bytes."""

    def __init__(self, source: bytes, tree: ast.Module) -> None:
        self._source = source
        self._tree = tree
        self._starts = list(accumulate(map(len, source.splitlines(keepends=True)), initial=0))
        self._edits: list[tuple[int, int, str]] = []

    def result(self) -> bytes:
        """Return the changed source."""
        changed = self._source
        for start, end, new in sorted(self._edits, reverse=True):
            changed = changed[:start] + new.encode() + changed[end:]
        return changed

    def add_import(self, name: str) -> None:
        """Import a name of ours after the last import."""
        lines = [node.end_lineno or 0 for node in self._tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        at = self._starts[max(lines, default=0)]
        self._edits.append((at, at, f"from SimpleLLMFunc import {name}\n"))

    def set_options(self, decorator: ast.expr, options: Mapping[str, str]) -> None:
        """Give the decorator these keywords."""
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        values = {each.arg: each.value for each in keywords}
        new = ", ".join(f"{name}={value}" for name, value in options.items() if name not in values)
        for name in options.keys() & values.keys():
            self._edits.append((*self._span(values[name]), options[name]))
        if not new:
            return
        _, end = self._span(decorator)
        if not isinstance(decorator, ast.Call):
            self._edits.append((end, end, f"({new})"))
        elif given := [*decorator.args, *values.values()]:
            _, last = max(map(self._span, given))
            self._edits.append((last, last, f", {new}"))
        else:
            self._edits.append((end - 1, end - 1, new))

    def set_docstring(self, node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> None:
        """Give the function this docstring."""
        first = node.body[0]
        indent = " " * first.col_offset
        escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        lines = [line and indent + line for line in escaped.split("\n")]
        closing = f"\n{indent}" if len(lines) > 1 or text.endswith('"') else ""
        written = '"""' + "\n".join(lines).lstrip() + closing + '"""'
        start, end = self._span(first)
        if not (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        ):
            end, written = start, f"{written}\n{indent}"
        self._edits.append((start, end, written))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None, "it was parsed"
        assert node.end_col_offset is not None, "the same"
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset
