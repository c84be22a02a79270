"""What 1.0 called a type: the words whose hashes are in versions and lock files, so they stay as they are.

What a model reads is said by `type_words.py`, which takes from here how a type becomes JSON data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from SimpleLLMFunc.tools.schemas import EnumSchema

CUT = "…"
"""Stands where a type contains itself."""

Schema: TypeAlias = dict[str, Any]

_FORMATS = {
    "date": "date (YYYY-MM-DD)", "date-time": "date and time (ISO 8601, such as 2024-05-31T09:30:00Z)",
    "time": "time (HH:MM:SS)", "duration": "duration (ISO 8601, such as PT1H30M)",
    "uuid": "UUID", "email": "e-mail address", "uri": "URL", "binary": "bytes",
}  # fmt: skip
_BOUNDS = {
    "minimum": "at least {}", "exclusiveMinimum": "greater than {}",
    "maximum": "at most {}", "exclusiveMaximum": "less than {}", "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters", "maxLength": "at most {} characters", "pattern": "matching {}",
    "minItems": "at least {} items", "maxItems": "at most {} items",
    "minProperties": "at least {} keys", "maxProperties": "at most {} keys",
}  # fmt: skip


class Describer:
    """Describes one schema; `inside` is the chain of definitions around the description."""

    def __init__(self, root: Schema) -> None:
        self._defs: dict[str, Schema] = root.get("$defs", {})

    def in_words(self, schema: Schema, inside: tuple[str, ...] = ()) -> str:
        """Return the type as a sentence."""
        schema, inside, is_cut = self._resolved(schema, inside)
        if is_cut:
            return self._cut(schema)
        if "properties" in schema:
            fields, about = self._fields_in_words(schema, inside), own_description(schema)
            title = f"{schema.get('title', 'object')} object"
            return f"{title}{f' ({about})' if about else ''} with {fields or 'no fields'}"
        return self._plain(schema, inside)

    def _fields_in_words(self, schema: Schema, inside: tuple[str, ...]) -> str:
        fields = schema["properties"].items()
        return "; ".join(self._field_in_words(schema, name, field, inside) for name, field in fields)

    def _cut(self, schema: Schema) -> str:
        return f"{schema.get('title', 'object')} {CUT}"

    def _field_in_words(self, schema: Schema, name: str, field: Schema, inside: tuple[str, ...]) -> str:
        kind = self.in_words(without_description(field), inside)
        kind = f"[{kind}]" if "; " in kind else kind
        notes = [*field_notes(schema, name, field)]
        return f"{name}: {', '.join([kind, *notes])}" + (f" ({field['description']})" if "description" in field else "")

    def as_json(self, schema: Schema, inside: tuple[str, ...] = ()) -> Any:
        """Return the type as JSON data."""
        described = schema.get("description")
        if "enum" in schema:
            described = str(described or "").partition(EnumSchema.NAMED)[0].strip()  # the names are younger than 1.0
        schema, inside, is_cut = self._resolved(schema, inside)
        if is_cut:
            return self._cut(schema)
        if "properties" in schema:
            properties = schema["properties"].items()
            fields = {name: self._field_as_json(schema, name, field, inside) for name, field in properties}
            about = described or own_description(schema)
            title = f"object {schema.get('title', '')}".strip()
            return {"type": title, **not_empty(description=about), "fields": fields}
        return _described(self._structure(schema, inside), described or "")

    def _field_as_json(self, schema: Schema, name: str, field: Schema, inside: tuple[str, ...]) -> Any:
        notes = list(field_notes(schema, name, field))
        return _described(self.as_json(without_description(field), inside), field.get("description", ""), notes)

    def _structure(self, schema: Schema, inside: tuple[str, ...]) -> Any:
        """Describe a list, a mapping or a choice; as a text where nothing in it has fields."""
        words = self._plain(schema, inside)
        parts = _parts_of(schema)
        if not any(self._has_fields(part, inside) for part in parts):
            return words
        bounds = self._bounds(schema)
        if "items" in schema:
            return {"type": ", ".join(["list", *bounds]), "items": self.as_json(schema["items"], inside)}
        if "prefixItems" in schema:
            return {"type": "list, in this order", "items": [self.as_json(part, inside) for part in parts]}
        if "additionalProperties" in schema:
            values = self.as_json(schema["additionalProperties"], inside)
            return {"type": ", ".join(["object with any keys", *bounds]), "values": values}
        return {"type": "one of", "choices": [self.as_json(part, inside) for part in parts]}

    def _has_fields(self, schema: Schema, inside: tuple[str, ...]) -> bool:
        schema, inside, is_cut = self._resolved(schema, inside)
        return not is_cut and (
            "properties" in schema or any(self._has_fields(part, inside) for part in _parts_of(schema))
        )

    def _resolved(self, schema: Schema, inside: tuple[str, ...]) -> tuple[Schema, tuple[str, ...], bool]:
        """Follow references; the last item tells that the definition is being described already."""
        while "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            target = self._defs.get(name, {})
            if name in inside:
                return target, inside, True
            rest = {key: value for key, value in schema.items() if key not in {"$ref", "default", "description"}}
            schema, inside = {**target, **rest}, (*inside, name)
        return schema, inside, False

    def _plain(self, schema: Schema, inside: tuple[str, ...]) -> str:
        """Describe a schema without fields."""
        if "const" in schema:
            return literal(schema["const"])
        if "enum" in schema:
            return "one of " + ", ".join(literal(value) for value in schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return _joined([self.in_words(part, inside) for part in schema[key]])
        bounds = self._bounds(schema)
        kind = schema.get("type")
        if isinstance(kind, list):
            return _joined([self._plain({**schema, "type": one}, inside) for one in kind])
        if kind == "array":
            return ", ".join([self._list_words(schema, inside), *bounds])
        if kind == "object":
            values = schema.get("additionalProperties")
            shown = self.in_words(values, inside) if isinstance(values, dict) and values else "any value"
            return ", ".join([f"object with any keys, each value: {shown}", *bounds])
        if kind == "string":
            return ", ".join([_FORMATS.get(schema.get("format", ""), "string"), *bounds])
        names = {"integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}
        return ", ".join([names.get(kind or "", "any JSON value"), *bounds])

    def _list_words(self, schema: Schema, inside: tuple[str, ...]) -> str:
        if "prefixItems" in schema:
            return "list of exactly: " + ", then ".join(self.in_words(part, inside) for part in schema["prefixItems"])
        unique = "list without duplicates" if schema.get("uniqueItems") else "list"
        items = schema.get("items")
        return f"{unique} of: {self.in_words(items, inside)}" if isinstance(items, dict) and items else unique

    def _bounds(self, schema: Schema) -> list[str]:
        if "prefixItems" in schema:
            return []
        return [text.format(literal(schema[key])) for key, text in _BOUNDS.items() if key in schema]


def _described(kind: Any, description: str, notes: Sequence[str] = ()) -> Any:
    """Return the words for a type, or its JSON, with what is said of the place where it stands."""
    if isinstance(kind, str):
        return ", ".join([kind, *notes]) + (f": {description}" if description else "")
    return {**kind, **not_empty(description=description, note=", ".join(notes))}


def own_description(schema: Schema) -> str:
    """Return what a class says of itself; empty where it has no docstring."""
    text = str(schema.get("description", ""))
    # dataclasses write their signature where no docstring stands
    return "" if text.startswith(f"{schema.get('title', '')}(") else text


def not_empty(**parts: str) -> dict[str, str]:
    """Return the parts that are not empty."""
    return {key: part for key, part in parts.items() if part}


def without_description(schema: Schema) -> Schema:
    """Return the schema of a field without what is said of the field."""
    return {key: value for key, value in schema.items() if key not in {"description", "default", "title"}}


def field_notes(schema: Schema, name: str, field: Schema) -> Iterable[str]:
    """Yield that a field may be left out, where it may."""
    if name not in schema.get("required", ()):
        default = field.get("default")
        yield f"may be left out (then {literal(default)})" if default is not None else "may be left out"


def _parts_of(schema: Schema) -> list[Schema]:
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("prefixItems", ())]
    parts.extend(schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict))
    return parts


def _joined(words: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def literal(value: Any) -> str:
    """Return a value as JSON writes it."""
    return json.dumps(value, ensure_ascii=False)
