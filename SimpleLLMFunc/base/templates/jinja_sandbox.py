"""The one Jinja2 environment of the library: Jinja2's own sandbox, over plain data. Imported with the first template.

A template is the programmer's text. The sandbox keeps a mistake in it from reaching objects or filling the memory with
one expression; what goes round for long is not counted, and only the length of the result is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, Undefined, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

__all__ = ["Compiled", "SecurityError", "TemplateSyntaxError", "UndefinedError", "compiled"]

MAX_RANGE: Final = 1000
"""Numbers that `range` gives at most."""

_READABLE: Final = (str, list, tuple, dict, LoopContext)
_REFUSED_METHODS: Final = frozenset({"center", "expandtabs", "format", "format_map", "ljust", "rjust", "zfill"})
# These reach further than data, or fill up to any width.
_REFUSED_FILTERS: Final = ("attr", "center", "format", "indent", "map", "wordwrap", "xmlattr")


class _MissingName(UndefinedError):
    """A name, or a part of a value, that is not there."""

    def __init__(self, message: str | None = None, *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class _Missing(StrictUndefined):
    """What is not there: its error knows the name."""

    __slots__ = ()

    def __init__(
        self, hint: str | None = None, obj: Any = missing, name: str | None = None, exc: Any = UndefinedError
    ) -> None:
        known: Any = partial(_MissingName, name=str(name)) if exc is UndefinedError else exc
        super().__init__(hint, obj, name, known)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        is_readable = isinstance(obj, _READABLE) and attr not in _REFUSED_METHODS
        return is_readable and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:  # noqa: ARG002 - it is refused, not wrapped: it fills up to any width
        return None

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute, or an item of a dict: ``d.update`` is the item, as no template may call the method."""
        if isinstance(obj, Undefined):
            str(obj)  # names what is missing
        if type(obj) is dict and attribute in obj and not self.is_safe_attribute(obj, attribute, None):
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        are_numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        if operator == "**" or not (are_numbers or isinstance(left, Undefined) or isinstance(right, Undefined)):
            raise SecurityError(f"{operator} of {type(left).__name__} and {type(right).__name__} is not offered")
        return super().call_binop(context, operator, left, right)


def _range(*args: int) -> list[int]:
    numbers = range(*args)
    if numbers[MAX_RANGE:]:
        raise ValueError(f"range gives at most {MAX_RANGE} numbers")
    return list(numbers)


def _written(value: Any) -> str:
    """Return what ``{{ value }}`` writes: a text as it is, lists and dicts as JSON."""
    return str(value) if value is None or isinstance(value, (str, int, float, Undefined)) else _tojson(value)


def _tojson(value: Any, indent: int | None = None) -> str:
    """Return JSON as it is: for a prompt, not for a web page, so nothing in it is escaped."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_items)


def _items(value: Any) -> list[Any]:
    if isinstance(value, Iterable) and not isinstance(value, LoopContext):  # what a filter gives, the keys of a dict
        return list(value)
    raise SecurityError(f"a {type(value).__name__} cannot be written down. Are the parentheses of a call missing?")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A template ready to be rendered.

    Attributes:
        names: every name in it, its own variables too.
        free: the names that have to be given.
    """

    template: Template
    names: frozenset[str]
    free: frozenset[str]


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    environment = _Environment(undefined=_Missing, finalize=_written, autoescape=False, cache_size=0)
    environment.globals = {"range": _range}
    for name in _REFUSED_FILTERS:
        del environment.filters[name]
    environment.filters |= {"tojson": _tojson, "safe": str}
    return environment


@lru_cache(maxsize=128)
def compiled(source: str) -> Compiled:
    """Return the compiled template; the last 128 are kept.

    Raises:
        TemplateSyntaxError: it does not parse.
    """
    environment = _environment()
    tree = environment.parse(source)
    names = frozenset(node.name for node in tree.find_all(nodes.Name))
    free = find_undeclared_variables(tree) - set(environment.globals)
    return Compiled(environment.from_string(tree), names, frozenset(free))
