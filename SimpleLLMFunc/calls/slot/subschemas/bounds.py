"""Schemas without end, or that grow without measure, refused before anything is checked against them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from SimpleLLMFunc.calls.slot.subschemas.members import Schema, subschemas
from SimpleLLMFunc.calls.slot.subschemas.walk import Places
from SimpleLLMFunc.errors import SchemaError, cut

__all__ = ["check_growth"]

MAX_IN_PLACE: Final = 10_000
"""Subschemas that may look at one value: through references, branches and conditions."""


def check_growth(root: Any) -> None:
    """Count, without following them one by one, the subschemas that would look at one value.

    Raises:
        SchemaError: a reference comes back to itself while it looks at the same value, or there are too many.
    """
    places = Places(root)
    counts: dict[int, int] = {}
    for start in subschemas(root):
        open_: set[int] = set()
        waiting: list[tuple[Schema, bool]] = [(start, False)]
        while waiting:
            schema, is_done = waiting.pop()
            key = id(schema)
            if isinstance(schema, bool) or (key in counts and not is_done):
                continue
            if is_done:
                open_.discard(key)
                counts[key] = 1 + sum(counts.get(id(inner), 1) for inner in _in_place(schema, places))
                if counts[key] > MAX_IN_PLACE:
                    raise SchemaError(f"one value would be looked at by more than {MAX_IN_PLACE} of its parts")
                continue
            if key in open_:
                where = cut(str(schema.get("$ref", "a part of it")), 100)
                raise SchemaError(f"it refers to itself without end: {where!r} leads back to itself")
            open_.add(key)
            waiting.append((schema, True))
            waiting += [(inner, False) for inner in _in_place(schema, places)]


def _in_place(schema: dict[str, Any], places: Places) -> Iterator[Schema]:
    """Yield the subschemas that look at the same value as the schema does."""
    if isinstance(schema.get("$ref"), str):
        yield places.target(schema["$ref"])
        return
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(keyword, ())
    for keyword in ("not", "if", "then", "else"):
        if keyword in schema:
            yield schema[keyword]
    yield from (part for part in schema.get("dependencies", {}).values() if isinstance(part, dict))
