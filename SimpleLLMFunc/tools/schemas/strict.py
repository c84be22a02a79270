"""The strict form of a tool's parameters, which some providers enforce while the model writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_KEPT: Final = frozenset({
    "$ref", "type", "enum", "const", "description", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
})  # fmt: skip
# Hints, and limits that are checked again when the arguments have come.
_DROPPED: Final = frozenset({
    "title", "default", "examples", "discriminator", "minLength", "maxLength", "uniqueItems", "format", "deprecated",
    "readOnly", "writeOnly", "$schema", "$id", "$comment", "contentEncoding", "contentMediaType", "minProperties",
    "maxProperties",
})  # fmt: skip
STRICT_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
"""The formats of strings that the services know."""


class _NotStrictError(Exception):
    """There is no strict form that means the same."""


def strict_parameters(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a tool's parameters in the strict subset; None where that would change its meaning.

    In the strict subset every key is required and no other is allowed. A parameter with a default may be null
    instead: for tools whose schema came from a signature, null then means that it was left out.
    """
    try:
        strict = _object(schema, is_root=True)
        definitions = schema.get("$defs")
        if definitions:
            strict["$defs"] = {name: _strict(part) for name, part in definitions.items()}
    except (_NotStrictError, RecursionError):
        return None
    return strict


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or not schema:
        raise _NotStrictError
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}  # a reference may have no other keyword
    if schema.get("type") == "object" or "properties" in schema:
        return _object(schema)
    strict: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _KEPT or (keyword == "format" and value in STRICT_FORMATS):
            strict[keyword] = value
        elif keyword == "items":
            strict[keyword] = _strict(value)
        elif keyword in {"anyOf", "oneOf"}:
            strict["anyOf"] = [_strict(part) for part in value]
        elif keyword not in _DROPPED:
            raise _NotStrictError
    is_any_list = strict.get("type") == "array" and "items" not in strict
    if is_any_list or not strict.keys() & {"type", "enum", "const", "anyOf"}:
        raise _NotStrictError
    return strict


def _object(schema: Mapping[str, Any], *, is_root: bool = False) -> dict[str, Any]:
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") or (not properties and schema.get("additionalProperties") is not False):
        raise _NotStrictError
    if schema.keys() - _KEPT - _DROPPED - {"properties", "required", "additionalProperties", "$defs"}:
        raise _NotStrictError
    required = schema.get("required", ())
    strict: dict[str, Any] = {"type": "object"}
    if "description" in schema:
        strict["description"] = schema["description"]
    strict["properties"] = {}
    for name, part in properties.items():
        made = _strict(part)
        if name not in required and not takes_null(made):
            if not is_root:
                raise _NotStrictError  # only for parameters does null stand for the default
            made = _or_null(made)
        elif name not in required and part.get("default", "") is not None:
            raise _NotStrictError  # null is a value here, so it cannot stand for the default
        strict["properties"][name] = made
    return strict | {"required": list(properties), "additionalProperties": False}


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Whether null fits a schema that pydantic made, as far as it tells without its references."""
    if not schema.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}:
        return True
    kind = schema.get("type")
    is_listed = "null" in (kind if isinstance(kind, list) else [kind]) or None in schema.get("enum", ())
    return is_listed or any(map(takes_null, schema.get("anyOf", ())))


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    description = {"description": schema.pop("description")} if "description" in schema else {}
    choices = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    return {"anyOf": [*choices, {"type": "null"}], **description}
