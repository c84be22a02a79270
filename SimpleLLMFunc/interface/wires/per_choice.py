"""Something for each choice of a reply, by its number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["PerChoice"]

T = TypeVar("T")


class PerChoice(Generic[T]):
    """A small mapping from the numbers of choices.

    Nearly every reply has only the choice 0, for which a dictionary would take four times the memory; and there is one
    of these for each stream in flight.
    """

    __slots__ = ("_others", "_zero")

    def __init__(self) -> None:
        self._zero: T | None = None
        self._others: dict[int, T] | None = None

    def get(self, index: int) -> T | None:
        """Return what there is for a choice, None for nothing."""
        if index == 0:
            return self._zero
        return None if self._others is None else self._others.get(index)

    def put(self, index: int, value: T) -> T:
        """Note `value` for a choice, and return it."""
        if index == 0:
            self._zero = value
        elif self._others is None:
            self._others = {index: value}
        else:
            self._others[index] = value
        return value

    def items(self) -> Iterator[tuple[int, T]]:
        """Yield numbers and values, by number."""
        if self._others is None:
            if self._zero is not None:
                yield 0, self._zero
            return
        known = self._others if self._zero is None else {0: self._zero, **self._others}
        yield from sorted(known.items(), key=lambda item: item[0])

    def __bool__(self) -> bool:
        return self._zero is not None or bool(self._others)

    def clear(self) -> None:
        """Forget everything."""
        self._zero = self._others = None
