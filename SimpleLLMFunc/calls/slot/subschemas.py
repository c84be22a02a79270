"""The subschemas of a Draft 7 schema: walk them, and copy a schema with changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any] | bool

DEFINITIONS: Final = ("definitions", "$defs")

_NAMED: Final = frozenset({"properties", "patternProperties", "dependencies", *DEFINITIONS})
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "items"})
_SINGLE: Final = frozenset({
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
})  # fmt: skip

_BASIC: Final = frozenset({"string", "number", "integer", "boolean", "date", "timestamp"})
_NOT_ASKED: Final = frozenset({"not", "if", "propertyNames", "contains"})
"""Their subschemas tell values apart, and would tell others apart with null in them."""
_FIXED: Final = frozenset({"const", "title", "description"})


def rebuilt(
    schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]], *, skip: frozenset[str] = frozenset()
) -> Any:
    """Return a copy of the schema in which every subschema is what `change` makes of its copy, the inner ones first.

    Args:
        schema: sound and within bounds; it is not changed.
        change: takes a copied subschema, which it may alter, and returns it or another.
        skip: keywords whose subschemas are copied as they are.
    """
    if not isinstance(schema, Mapping):
        return copied(schema)

    def inside(keyword: str, value: Any) -> Any:
        if keyword in skip:
            return copied(value)
        if keyword in _NAMED and isinstance(value, Mapping):
            return {name: rebuilt(part, change, skip=skip) for name, part in value.items()}
        if isinstance(value, list) and keyword in _LISTED:
            return [rebuilt(part, change, skip=skip) for part in value]
        if keyword in _SINGLE:
            return rebuilt(value, change, skip=skip)
        return copied(value)

    return change({keyword: inside(keyword, value) for keyword, value in schema.items()})


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schema and every subschema in it that is an object."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield part
        for keyword, value in part.items():
            if keyword in _NAMED and isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list) and keyword in _LISTED:
                waiting += value
            elif keyword in _SINGLE:
                waiting.append(value)


def copied(value: Any) -> Any:
    """Return a structural copy of JSON data."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with null among the types of every basic value, and among the values of an `enum` of such.

    A `const` stays what it is: it leaves nothing to know. What was `oneOf` becomes `anyOf`: null may now be in more
    than one branch. So every value that fitted the schema fits the copy.
    """
    return dict(rebuilt(schema, _nullable, skip=_NOT_ASKED))


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
