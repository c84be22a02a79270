"""JSON schemas within what ``/v1/messages`` enforces; constraints that it cannot enforce go into the description.

Source: design notes on the wires, section 9, from Anthropic's page on structured outputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TOLD = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems", "uniqueItems",
    "minLength", "maxLength", "pattern", "minProperties", "maxProperties",
)  # fmt: skip
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})


def schema_for_messages(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without what the service refuses: objects are closed, `oneOf` is `anyOf`, constraints are told."""
    made: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for name, value in schema.items():
        is_unknown_format = name == "format" and value not in _FORMATS
        if name in _TOLD or is_unknown_format or (name == "minItems" and value not in {0, 1}):
            told[name] = value
        elif name in {"default", "title", "examples", "discriminator"}:
            continue
        elif name in {"oneOf", "anyOf", "allOf", "prefixItems"}:
            made["anyOf" if name == "oneOf" else name] = [schema_for_messages(part) for part in value]
        elif name in {"properties", "$defs", "definitions"}:
            made[name] = {key: schema_for_messages(part) for key, part in value.items()}
        elif name == "items" and isinstance(value, Mapping):
            made[name] = schema_for_messages(value)
        else:
            made[name] = value
    if made.get("type") == "object":
        made["additionalProperties"] = False
    if told:
        said = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in told.items())
        made["description"] = f"{made['description']} {{{said}}}" if made.get("description") else f"{{{said}}}"
    return {"$ref": made["$ref"]} if "$ref" in made else made
