"""A schema in which every basic value may also be null, so that a model can say that it does not know."""

from __future__ import annotations

from typing import Any, Final

from SimpleLLMFunc.calls.slot.subschemas.members import rebuilt

__all__ = ["with_null"]

_BASIC: Final = frozenset({"string", "number", "integer", "boolean", "date", "timestamp"})
_NOT_ASKED: Final = frozenset({"not", "if", "propertyNames", "contains"})
"""What stands here tells values apart, and would tell others apart with null in it."""
_FIXED: Final = frozenset({"const", "title", "description"})


def with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with null among the types of every basic value, and among the values of an `enum` of such.

    A `const` stays what it is: it leaves nothing to know. What was `oneOf` becomes `anyOf`: null may now be in more
    than one branch. So whatever fitted the schema fits the copy.
    """
    made: dict[str, Any] = rebuilt(schema, _nullable, skip=_NOT_ASKED)
    return made


def _nullable(part: dict[str, Any]) -> dict[str, Any]:
    branches = part.get("oneOf")
    if branches and not all(isinstance(branch, dict) and branch.keys() <= _FIXED for branch in branches):
        del part["oneOf"]
        if "anyOf" in part:
            part["allOf"] = [*part.get("allOf", ()), {"anyOf": branches}]
        else:
            part["anyOf"] = branches
    if "type" in part:
        types = part["type"] if isinstance(part["type"], list) else [part["type"]]
        if _BASIC.isdisjoint(types):
            return part
        if "null" not in types:
            part["type"] = [*types, "null"]
    values = part.get("enum")
    if values and None not in values and not any(isinstance(value, dict | list) for value in values):
        part["enum"] = [*values, None]
    return part
