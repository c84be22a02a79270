"""An example value of a JSON schema, for the prompt."""

from __future__ import annotations

import itertools
import math
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

_TEXTS = {
    "date": "2024-05-31", "date-time": "2024-05-31T09:30:00Z", "time": "09:30:00", "duration": "PT1H30M",
    "uuid": "123e4567-e89b-12d3-a456-426614174000", "email": "someone@example.com", "uri": "https://example.com/",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "json-string": "{}",
    "integer": "1", "number": "1.5", "boolean": "true",
}  # fmt: skip


def example_of(schema: Schema) -> Any:
    """Return JSON data that fits the schema; where it contains itself, the shortest way out is taken."""
    return _Example(schema).of(schema, ())


class _Dead(Exception):
    """There is no finite example this way."""


class _Example:
    def __init__(self, root: Schema) -> None:
        self._defs: dict[str, Schema] = root.get("$defs", {})

    def of(self, schema: Schema, inside: tuple[str, ...]) -> Any:
        try:
            return self._of(schema, inside)
        except _Dead:
            return None

    def _of(self, schema: Schema, inside: tuple[str, ...]) -> Any:
        if schema.get("examples"):
            return schema["examples"][0]
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            if name in inside:
                raise _Dead
            return self._of(self._defs.get(name, {}), (*inside, name))
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return self._first_of(choices, inside)
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            return self._object(schema, inside)
        if kind == "array":
            return self._array(schema, inside)
        if kind in {"integer", "number"}:
            return _number(schema, is_integer=kind == "integer")
        return {"string": _text(schema), "boolean": True, "null": None}.get(kind or "", "text")

    def _first_of(self, choices: list[Schema], inside: tuple[str, ...]) -> Any:
        for choice in sorted(choices, key=lambda choice: choice.get("type") == "null"):
            try:
                return self._of(choice, inside)
            except _Dead:
                continue
        raise _Dead

    def _object(self, schema: Schema, inside: tuple[str, ...]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            try:
                made[name] = self._of(field, inside)
            except _Dead:
                if name in required:
                    raise
                if "default" in field:
                    made[name] = field["default"]
        values = schema.get("additionalProperties")
        if not schema.get("properties") and isinstance(values, dict):
            keys = {"type": "string", **schema["propertyNames"]} if "propertyNames" in schema else {}
            for number in range(max(1, schema.get("minProperties", 0))):
                key = self.of(keys, inside) if keys else "key"
                made[str(key) if number == 0 else f"{key}{number + 1}"] = self._of(values, inside)
        return made

    def _array(self, schema: Schema, inside: tuple[str, ...]) -> list[Any]:
        if "prefixItems" in schema:
            return [self._of(part, inside) for part in schema["prefixItems"]]
        items: Schema = schema.get("items") or {}
        least = schema.get("minItems", 0)
        if schema.get("maxItems") == 0:
            return []
        try:
            made = [self._of(items, inside) for _ in range(max(1, least))]
        except _Dead:
            if least:
                raise
            return []
        items = self._defs.get(items.get("$ref", "").removeprefix("#/$defs/"), items)
        return _distinct(made, items) if schema.get("uniqueItems") and len(made) > 1 else made


def _distinct(made: list[Any], items: Schema) -> list[Any]:
    """Return items that differ; only one where it is not known how they could."""
    first, known = made[0], items.get("enum") or ([True, False] if items.get("type") == "boolean" else None)
    if known:
        return list(itertools.islice(known, len(made)))
    if isinstance(first, str) and not items.keys() & {"format", "maxLength", "pattern"}:
        return [f"{item}{number}" for number, item in enumerate(made, 1)]
    if isinstance(first, int | float):
        return [item + number for number, item in enumerate(made)]
    return made[:1]


def _number(schema: Schema, *, is_integer: bool) -> Any:
    """Return the first of a few plain numbers that keeps the bounds."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    step = schema.get("multipleOf")
    bounds = [bound for bound in (low, high) if bound is not None]
    unit = step or 1
    tries: list[float] = [step or (1 if is_integer else 1.5), *bounds]
    tries += [near for bound in bounds for near in (math.ceil(bound / unit) * unit, math.floor(bound / unit) * unit)]
    tries += [near for bound in bounds for near in (bound + unit, bound - unit)]
    tries += [sum(bounds) / len(bounds)] if bounds else []
    tries += [near + unit for near in tries] + [near - unit for near in tries]
    fitting = (number for number in tries if _keeps_bounds(schema, int(number) if is_integer else number))
    number = next(fitting, tries[0])
    return int(number) if is_integer else number


def _keeps_bounds(schema: Schema, number: float) -> bool:
    step = schema.get("multipleOf")
    is_multiple = step is None or math.isclose(number / step, round(number / step))
    is_within = schema.get("minimum", -math.inf) <= number <= schema.get("maximum", math.inf)
    is_between = schema.get("exclusiveMinimum", -math.inf) < number < schema.get("exclusiveMaximum", math.inf)
    return is_multiple and is_within and is_between


def _text(schema: Schema) -> str:
    text = _TEXTS.get(schema.get("format", ""), "text")
    if "format" in schema:
        return text
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if len(text) < least:
        text = (text + " ") * least
        text = text[:least].rstrip().ljust(least, "x")
    return text if most is None else text[:most]
