"""What a template may call and use: methods, filters and tests, each with its price. Imported with Jinja2 only."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import BuiltinMethodType, MethodType
from typing import Any, Final

from jinja2 import Undefined
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import LoopContext
from jinja2.tests import TESTS

from SimpleLLMFunc.base.templates.jinja_work import (
    MAX_BITS,
    MAX_OUTPUT,
    TooMuch,
    charge,
    checked,
    items_of,
    settled,
    too_long,
    weigh,
)

__all__ = ["METERS", "METHODS", "check_method", "check_operator", "filters", "number_range", "tests", "written"]

MAX_RANGE: Final = 1000
"""Numbers that `range` gives at most."""

_STR = """
    capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric isspace
    istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip
    split splitlines startswith strip swapcase title upper
"""
_LOOP = "changed cycle depth depth0 first index index0 last length nextitem previtem revindex revindex0"

METHODS: Final[Mapping[type, frozenset[str]]] = {
    str: frozenset(_STR.split()),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"get", "items", "keys", "values"}),
    LoopContext: frozenset(_LOOP.split()),
}
"""What a template may reach of a value, by its exact type: a subclass may have given a name another meaning."""

# `map`, `attr` and `format` reach further than data, `center`, `indent` and `wordwrap` fill up to any width, the
# others are about HTML or show Python's own notation.
_NO_FILTERS = frozenset(
    {"attr", "center", "format", "indent", "map", "pprint", "striptags", "urlize", "wordwrap", "xmlattr"}
)
_NO_TESTS = frozenset({"callable", "escaped"})
# These look at a value and not through it.
_CHEAP_FILTERS = frozenset({"count", "d", "default", "first", "last", "length"})
_CHEAP_TESTS = frozenset(
    {"boolean", "defined", "false", "float", "integer", "iterable", "mapping", "none", "number", "sameas", "sequence"}
    | {"string", "true", "undefined"}
)


def check_operator(operator: str, left: Any, right: Any) -> None:
    """Refuse what fills up memory or formats by a text: the arguments of ``+ * ** %``."""
    if operator == "**":
        raise SecurityError("** is not offered")
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if operator in {"*", "%"} and not numbers:
        raise SecurityError(f"{operator} is only for numbers, not for {type(left).__name__} and {type(right).__name__}")
    bits = left.bit_length() + right.bit_length() if isinstance(left, int) and isinstance(right, int) else 0
    if operator == "*" and bits > MAX_BITS:
        raise TooMuch(f"it computes a number of more than {MAX_BITS} bits")
    if operator == "+" and isinstance(left, str) and isinstance(right, str) and len(left) + len(right) > MAX_OUTPUT:
        raise too_long()


def check_method(method: BuiltinMethodType | MethodType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Charge for the call of a method of a text, list, dict or loop, and refuse one that makes too long a text."""
    for value in (method.__self__, *args, *kwargs.values()):
        weigh(value)
    if method.__name__ == "replace":
        _check_replace(method.__self__, *args, **kwargs)
    elif method.__name__ == "join" and args:
        _check_join(args[0], method.__self__)


def _check_replace(text: Any, old: Any, new: Any, count: int | None = -1) -> None:
    text, old, new = str(text), str(old), str(new)
    found = text.count(old)
    times = found if count is None or count < 0 else min(found, count)
    if len(text) + times * (len(new) - len(old)) > MAX_OUTPUT:
        raise too_long()


def _check_join(items: Any, between: Any = "", attribute: Any = None) -> None:  # noqa: ARG001 - as `join` has it
    if isinstance(items, (list, tuple, dict, str)):
        texts = sum(len(item) for item in items if isinstance(item, str))
        if len(items) * len(str(between)) + texts > MAX_OUTPUT:
            raise too_long()


def _check_round(value: Any, precision: int = 0, method: str = "common") -> None:  # noqa: ARG001 - as `round` has it
    if abs(precision) > 100:
        raise TooMuch("round takes at most 100 digits")


def _check_batch(items: Any, linecount: int, fill_with: Any = None) -> None:  # noqa: ARG001 - as `batch` has it
    if linecount > MAX_RANGE:
        raise TooMuch(f"batch takes at most {MAX_RANGE} items a line")


def _check_sum(items: Any, attribute: Any = None, start: Any = 0) -> None:  # noqa: ARG001 - as `sum` has it
    if not isinstance(start, (int, float)):
        raise SecurityError("sum is only for numbers")


def _check_tojson(value: Any, indent: int | None = None) -> None:  # noqa: ARG001 - as `tojson` has it
    if indent is not None and not 0 <= indent <= 8:
        raise TooMuch("tojson indents by at most 8")


_CHECKS: Mapping[str, Callable[..., None]] = {
    "replace": _check_replace,
    "join": _check_join,
    "round": _check_round,
    "batch": _check_batch,
    "sum": _check_sum,
    "tojson": _check_tojson,
}


def _refused(value: Any) -> str:
    if isinstance(value, Undefined):
        return str(value)  # names what is missing
    raise SecurityError(f"a {type(value).__name__} cannot be written down. Are the parentheses of a call missing?")


def _tojson(value: Any, indent: int | None = None) -> str:
    """Return JSON as it is: for a prompt, not for a web page, so nothing in it is escaped."""
    encoder = json.JSONEncoder(ensure_ascii=False, indent=indent, default=_refused)
    if indent is None:
        return encoder.encode(value)
    # Deep data is mostly indentation: it is counted as it is written.
    pieces: list[str] = []
    left = MAX_OUTPUT
    for piece in encoder.iterencode(value):
        left -= len(piece)
        if left < 0:
            raise too_long()
        pieces.append(piece)
    return "".join(pieces)


def _escape(value: Any) -> str:
    return html.escape(str(value))


def _counted(name: str, function: Callable[..., Any], *, cheap: bool) -> Callable[..., Any]:
    """Return a filter or test that charges for what it reads and makes, and gives lists instead of generators."""
    passed = 1 if hasattr(function, "jinja_pass_arg") else 0
    check = _CHECKS.get(name)

    @wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        charge(1 + len(args) + len(kwargs))
        if not cheap:
            for value in (*args[passed:], *kwargs.values()):
                weigh(value)
        if check:
            check(*args[passed:], **kwargs)
        return checked(settled(function(*args, **kwargs)))

    return counted


def _step(units: int) -> str:
    charge(units)
    return ""


def _weighed(value: Any) -> Any:
    weigh(value)
    return value


def _concat(parts: Sequence[Any]) -> str:
    weigh(parts)
    return str(checked("".join([written(part) for part in parts])))


def number_range(*args: int) -> list[int]:
    """Return the numbers of a range, at most `MAX_RANGE` of them."""
    numbers = range(*args)
    if numbers[MAX_RANGE : MAX_RANGE + 1]:
        raise TooMuch(f"range gives at most {MAX_RANGE} numbers")
    return list(numbers)


def written(value: Any) -> str:
    """Return what ``{{ value }}`` writes: a text as it is, lists and dicts as JSON."""
    if isinstance(value, (str, Undefined)) or value is None or isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple, dict)):
        weigh(value)
        return _tojson(value)
    return _refused(value)


METERS: Final[Mapping[str, Callable[..., Any]]] = {
    " items": items_of,
    " step": _step,
    " concat": _concat,
    " weighed": _weighed,
}
"""Filters that the compiler puts in, under names that no template can write."""


def filters() -> dict[str, Callable[..., Any]]:
    """Return the filters by name."""
    own = {"tojson": _tojson, "e": _escape, "escape": _escape, "forceescape": _escape, "safe": str}
    offered: dict[str, Any] = {name: call for name, call in FILTERS.items() if name not in _NO_FILTERS} | own
    return {name: _counted(name, call, cheap=name in _CHEAP_FILTERS) for name, call in offered.items()} | dict(METERS)


def tests() -> dict[str, Callable[..., Any]]:
    """Return the tests by name."""
    offered: dict[str, Any] = {name: call for name, call in TESTS.items() if name not in _NO_TESTS}
    return {name: _counted(name, call, cheap=name in _CHEAP_TESTS) for name, call in offered.items()}
