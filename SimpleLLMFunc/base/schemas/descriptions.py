"""What a schema says of its fields, by path, and the same schema with other words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.schemas.output_mode import OutputSpec


def field_descriptions(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the description of every field by its path, such as ``lines[].price``; empty where a field has none.

    A type that is used in several places is told of at the first.
    """
    fields = _fields(schema, schema.get("$defs", {}), "", set())
    return {path: str(field.get("description", "")) for path, field in fields}


def with_descriptions(output: OutputSpec, descriptions: Mapping[str, str]) -> OutputSpec:
    """Return the return type with these descriptions, by path; a path that it does not have is left out."""
    made = copied([output.schema])[0]
    for path, field in _fields(made, made.get("$defs", {}), "", set()):
        if path in descriptions:
            field["description"] = descriptions[path]
    return OutputSpec(output.return_type, output.adapter, made, output.quotes)


def _fields(schema: Any, defs: Mapping[str, Any], path: str, seen: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name not in seen:
            seen.add(name)
            yield from _fields(defs.get(name), defs, path, seen)
    for name, part in schema.get("properties", {}).items():
        inner = f"{path}.{name}".removeprefix(".")
        if isinstance(part, dict):
            yield inner, part
            yield from _fields(part, defs, inner, seen)
    for key in ("items", "additionalProperties"):
        yield from _fields(schema.get(key), defs, f"{path}[]", seen)
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, ()):
            yield from _fields(part, defs, path, seen)
