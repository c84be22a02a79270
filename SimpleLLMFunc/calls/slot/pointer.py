"""JSON Pointers (RFC 6901): text to path and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from SimpleLLMFunc.errors import CallError, cut

DataPath: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root to a value."""

ABSENT: Final = object()
"""What `value_at` returns where there is no value."""
MAX_STEPS: Final = 64
"""Steps of the longest pointer."""

_WRONG_ESCAPE: Final = re.compile(r"~(?![01])")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")


def pointer_text(path: Iterable[str | int]) -> str:
    """Return the pointer to a path; the root's is the empty text."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def pointer_path(pointer: str) -> tuple[str, ...]:
    """Return the steps of a pointer, unescaped; whether one is an index depends on what it points into.

    Raises:
        CallError: it does not begin with ``/``, holds a ``~`` that escapes nothing, or has too many steps.
    """
    if not pointer:
        return ()
    shown = cut(repr(pointer), 100)
    if not pointer.startswith("/"):
        raise CallError(f"{shown} is not a JSON Pointer: it must begin with '/'", {"pointer": pointer})
    if _WRONG_ESCAPE.search(pointer):
        raise CallError(f"{shown} is not a JSON Pointer: '~' must be written '~0', and '/' '~1'", {"pointer": pointer})
    steps = pointer[1:].split("/")
    if len(steps) > MAX_STEPS:
        raise CallError(f"{shown} has more than {MAX_STEPS} steps", {"pointer": cut(pointer)})
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def index_of(step: str) -> int | None:
    """Return the index that a step is; None for any other step (leading zeros and signs make no index)."""
    return int(step) if _INDEX.fullmatch(step) else None


def in_order(path: Iterable[str]) -> list[tuple[bool, int, str]]:
    """Return the key by which pointers are sorted: an item comes after the one before it, a value before those below it."""
    return [(index_of(step) is None, index_of(step) or 0, step) for step in path]


def value_at(data: Any, steps: Iterable[str]) -> Any:
    """Return the value to which the steps of a pointer lead, `ABSENT` where they lead to none."""
    for step in steps:
        if isinstance(data, dict):
            data = data.get(step, ABSENT)
        elif isinstance(data, list):
            index = index_of(step)
            data = data[index] if index is not None and index < len(data) else ABSENT
        else:
            return ABSENT
    return data
