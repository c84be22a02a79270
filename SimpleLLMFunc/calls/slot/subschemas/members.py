"""The subschemas of a Draft 7 schema: where they stand, and a copy with each of them changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["DEFINITIONS", "Schema", "copied", "rebuilt", "subschemas"]

Schema: TypeAlias = dict[str, Any] | bool

DEFINITIONS: Final = ("definitions", "$defs")

_NAMED: Final = frozenset({"properties", "patternProperties", "dependencies", *DEFINITIONS})
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf"})
_SINGLE: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "not",
        "propertyNames",
        "then",
    }
)


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
        if isinstance(value, list) and (keyword in _LISTED or keyword == "items"):
            return [rebuilt(part, change, skip=skip) for part in value]
        if keyword in _SINGLE or keyword == "items":
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
            elif isinstance(value, list) and (keyword in _LISTED or keyword == "items"):
                waiting += value
            elif keyword in _SINGLE or keyword == "items":
                waiting.append(value)


def copied(value: Any) -> Any:
    """Return a structural copy of JSON data."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value
