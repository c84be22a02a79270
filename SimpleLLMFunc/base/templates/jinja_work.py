"""How much a template may do: one budget for a rendering, and what each thing costs. Knows nothing of Jinja2.

The sandbox of Jinja2 says *what* a template may touch. It sets no limit to *how much*: two nested loops, a text
doubled forty times, a list that holds itself twice over. Here every step and every text has a price, so a rendering
ends whatever its template says, after the same work on every machine.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sized, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

__all__ = [
    "MAX_BITS",
    "MAX_OUTPUT",
    "MAX_WORK",
    "TooMuch",
    "charge",
    "checked",
    "counting",
    "items_of",
    "settled",
    "too_long",
    "weigh",
]

MAX_OUTPUT: Final = 1 << 20
"""Bytes of what is rendered, and characters of any text on the way there."""

MAX_WORK: Final = 1_000_000
"""Units of work for one rendering; about a second of it. A loop over 10,000 items with ten statements takes 100,000."""

MAX_BITS: Final = 10_000
"""Of an integer that a template computes."""

_CHARS_PER_UNIT: Final = 16
_MAX_DEPTH: Final = 100
_CONTAINERS = (list, tuple, dict)
_LAZY = (Iterator, KeysView, ItemsView, ValuesView, range)


class TooMuch(Exception):
    """The template asks for more than a template may."""


class _Budget:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_WORK


_budget: ContextVar[_Budget] = ContextVar("SimpleLLMFunc_template_budget")


@contextmanager
def counting() -> Iterator[None]:
    """Open a budget for what is done inside."""
    token = _budget.set(_Budget())
    try:
        yield
    finally:
        _budget.reset(token)


def charge(units: int) -> None:
    """Take `units` from the budget.

    Raises:
        TooMuch: it is used up.
        LookupError: there is none; so nothing is computed ahead of time, when a template is compiled.
    """
    budget = _budget.get()
    budget.left -= units
    if budget.left < 0:
        raise TooMuch(f"it takes more work than a template may ({MAX_WORK} steps). Use shorter lists or fewer loops")


def weigh(value: Any) -> None:
    """Charge for reading all of `value`, as comparing it or writing it down does.

    A list that holds the same list several times is paid for as often: reading it takes that long too.
    """
    if isinstance(value, str):
        charge(1 + len(value) // _CHARS_PER_UNIT)
        return
    if not isinstance(value, _CONTAINERS):
        charge(1)
        return
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        container, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise TooMuch(f"it nests lists deeper than {_MAX_DEPTH} levels")
        charge(1 + len(container))
        if isinstance(container, dict):
            container = [*container, *container.values()]
        for item in container:
            if isinstance(item, str):
                if len(item) >= _CHARS_PER_UNIT:
                    charge(len(item) // _CHARS_PER_UNIT)
            elif isinstance(item, _CONTAINERS):
                waiting.append((item, depth + 1))


def checked(value: Any) -> Any:
    """Return a value that was just made, after charging for it.

    Raises:
        TooMuch: a text or a number larger than any that a template may make.
    """
    if isinstance(value, str):
        if len(value) > MAX_OUTPUT:
            raise too_long()
        charge(1 + len(value) // _CHARS_PER_UNIT)
    elif isinstance(value, _CONTAINERS):
        charge(1 + len(value))
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise TooMuch(f"it computes a number of more than {MAX_BITS} bits")
    return value


def too_long() -> TooMuch:
    """Return the error for a text that is longer than any a template may make."""
    return TooMuch(f"it makes a text of more than {MAX_OUTPUT} characters. Pass less data, or shorten it")


def settled(value: Any) -> Any:
    """Return `value`, and what would be computed only while it is read (generators, views of dicts) as a list."""
    return list(_counted(value)) if isinstance(value, _LAZY) else value


def items_of(value: Any) -> Any:
    """Return what a loop goes through, charged for; what cannot be gone through as it is."""
    value = settled(value)
    if isinstance(value, Sized):
        charge(1 + len(value))
    return value


def _counted(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        charge(1)
        yield item
