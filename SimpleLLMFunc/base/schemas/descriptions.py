"""What a schema says of its fields, by path, and the same schema with other words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.schemas.output_mode import OutputSpec
from SimpleLLMFunc.base.schemas.strict_schema import places


def field_descriptions(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the description of every field by its path, such as ``lines[].price``; empty where a field has none.

    A type that is used in several places is told of at the first.
    """
    return {path: str(field.get("description", "")) for path, field in _fields(schema).items()}


def with_descriptions(output: OutputSpec, descriptions: Mapping[str, str]) -> OutputSpec:
    """Return the return type with these descriptions, by path; a path that it does not have is left out."""
    made = copied([output.schema])[0]
    for path, field in _fields(made).items():
        if path in descriptions:
            field["description"] = descriptions[path]
    return OutputSpec(output.return_type, output.adapter, made, output.quotes)


def _fields(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for path, part in places(dict(schema), schema.get("$defs", {})):
        if path and not path.endswith("[]") and id(part) not in seen:
            seen.add(id(part))
            fields.setdefault(path, part)
    return fields
