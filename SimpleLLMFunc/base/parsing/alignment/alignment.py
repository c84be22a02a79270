"""How well a value fits: the value and what it took, or why it does not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from SimpleLLMFunc.base.parsing.json_node import Node, Path, shown
from SimpleLLMFunc.base.parsing.parsed import Repair
from SimpleLLMFunc.errors import SimpleLLMFuncError, Violation, cut
from SimpleLLMFunc.utils import path_text

# How pydantic begins: "Input should be a valid integer", "String should have at least 3 characters".
_WANTED: Final = re.compile(r"\A\w+(?: \w+)? should (?:be|have) ")
_OWN_CHECKS: Final = frozenset({"value_error", "assertion_error"})


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


def gathered(parts: list[Alignment]) -> Alignment:
    """Return what the parts are together: the list of their values, or all that is wrong with them."""
    violations = [violation for part in parts if isinstance(part, Misfit) for violation in part.violations]
    if violations:
        return Misfit(violations)
    fits = [part for part in parts if isinstance(part, Fit)]
    cost, unread = sum(part.cost for part in fits), sum(part.unread for part in fits)
    return Fit([part.value for part in fits], cost, [repair for part in fits for repair in part.repairs], unread)


def violations_of(error: Exception, root: Path = ()) -> list[Violation]:
    """Return what validating raised as violations, without the values of Python objects in them.

    Raises:
        SimpleLLMFuncError: a validator that asks a model got it.
        RecursionError: the value is nested too deep.
    """
    if isinstance(error, SimpleLLMFuncError | RecursionError):
        raise error
    if not isinstance(error, ValidationError):
        return [
            (path_text(root), "a value that the type's own check reads", cut(f"{type(error).__name__}: {error}", 300))
        ]
    violations: list[Violation] = []
    for part in error.errors():
        path = tuple(step for step in part["loc"] if isinstance(step, int) or not re.search(r"[\[(]", step))
        got = "nothing" if part["type"] == "missing" else _input_shown(part["input"])
        expected = _WANTED.sub("", part["msg"].replace("String should match pattern", "text of the pattern", 1))
        if part["type"] in _OWN_CHECKS:
            # A sentence of the type's own validator: what is wrong, and not what is wanted.
            problem = part["msg"].partition(", ")[2] or "no reason given"
            expected, got = "a value that passes the type's own check", f"{got}: {cut(problem, 300)}"
        violations.append((path_text((*root, *path)), expected, got))
    return violations


def is_refusal(error: Exception) -> bool:
    """Tell whether code of the user's refused a value that pydantic had read."""
    return isinstance(error, ValidationError) and any(part["type"] in _OWN_CHECKS for part in error.errors())


def _input_shown(value: Any) -> str:
    return shown(value) if isinstance(value, str | dict | list | bool | None) else cut(repr(value), 61)
