"""How well a value fits: the value and what it took, or why it does not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import ValidationError

from SimpleLLMFunc.base.json_node import Node, Path, path_text, shown
from SimpleLLMFunc.base.result import Repair
from SimpleLLMFunc.errors import Violation
from SimpleLLMFunc.logger.known import end_before_secret

__all__ = ["Alignment", "Fit", "Misfit", "violations_of"]


@dataclass(slots=True)
class Fit:
    """The value, ready for pydantic, and what it took.

    Attributes:
        value: of Python's own types: dates, decimals and enum members are there already.
        cost: 0 where the text said exactly this; compares the branches of a union.
        unread: keys that no field took, and fields that were left out, weighed; a second look at unions.
    """

    value: Any
    cost: float = 0
    repairs: list[Repair] = field(default_factory=list)
    unread: float = 0

    @property
    def rank(self) -> float:
        """What decides between two fits: the lower the better."""
        return self.cost + self.unread


@dataclass(slots=True)
class Misfit:
    """Why the value does not fit."""

    violations: list[Violation]

    @classmethod
    def at(cls, path: Path, expected: str, node: Node) -> Misfit:
        """Return the misfit of one node."""
        return cls([(path_text(path), expected, shown(node))])


Alignment: TypeAlias = Fit | Misfit


def violations_of(error: ValidationError, root: Path = ()) -> list[Violation]:
    """Return pydantic's errors as violations, without the values of Python objects in them."""
    violations: list[Violation] = []
    for part in error.errors(include_url=False, include_context=False):
        path = tuple(step for step in part["loc"] if isinstance(step, int) or not re.search(r"[\[(]", step))
        expected = part["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        got = "nothing" if part["type"] == "missing" else _input_shown(part["input"])
        violations.append((path_text((*root, *path)), expected, got))
    return violations


def _input_shown(value: Any) -> str:
    if isinstance(value, str | dict | list | bool | None):
        return shown(value)
    text = repr(value)
    return text[: end_before_secret(text, 60)]
