"""The OpenAPI document of the offered functions, made from their signatures.

Source: OpenAPI Specification 3.1, whose schemas are JSON Schema 2020-12.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.serve.http_problem import MEDIA_TYPE, PROBLEM_SCHEMA, STATUSES
from SimpleLLMFunc.serve.offer import Offer

_USAGE: Final = {
    "type": "object",
    "properties": {
        name: {"type": "integer", "minimum": 0}
        for name in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
    },
}
_EVENT: Final = {
    "description": "One event; its data is JSON.",
    "type": "object",
    "properties": {
        "event": {"enum": ["text", "value", "item", "result", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
_FACTS: Final = {
    "trace_id": {"type": "string"},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "cost": {"type": ["number", "null"], "description": "USD, null where it is not known."},
    "seconds": {"type": "number"},
    "agreement": {
        "type": "object",
        "additionalProperties": {"type": "number"},
        "description": "Of a function that votes: the share of answers that agree, by field.",
    },
    "abstained": {"type": "boolean", "description": "Of a function that votes: do not rely on the value."},
}


def openapi_document(offers: Mapping[str, Offer], *, title: str, needs_key: bool) -> dict[str, Any]:
    """Return the document.

    Args:
        offers: by name.
        title: of the service.
        needs_key: callers have keys.
    """
    schemas: dict[str, Any] = {"Problem": PROBLEM_SCHEMA, "Usage": _USAGE}
    paths: dict[str, Any] = {
        "/health": {
            "get": {
                "operationId": "health",
                "summary": "Say that the server runs.",
                "security": [],
                "responses": {
                    "200": _content({"type": "object", "properties": {"status": {"const": "ok"}}}, "It runs.")
                },
            }
        }
    }
    for name, offer in offers.items():
        arguments = _moved(offer.tool.parameters, f"{name}_arguments", schemas)
        schemas[f"{name}_arguments"] = arguments
        value = _moved(offer.value_schema, f"{name}_value", schemas)
        schemas[f"{name}_result"] = {"type": "object", "properties": {"value": value, **_FACTS}, "required": ["value"]}
        summary, _, description = offer.tool.description.strip().partition("\n")
        body = {"required": True, "content": {"application/json": {"schema": _ref(f"{name}_arguments")}}}
        told = {"summary": summary, "description": description.strip(), "requestBody": body}
        whole = _content(_ref(f"{name}_result"), "What the function returned.")
        stream = {
            "description": (
                "Server-sent events: `text` with a piece of text, `value` with a growing value or `item` with the next "
                "one, then `result` with the complete answer, or `error` with a problem."
            ),
            "content": {"text/event-stream": {"schema": _EVENT}},
        }
        for path, operation, answer in ((name, name, whole), (f"{name}/stream", f"{name}_stream", stream)):
            responses = {"200": answer, **_problems()}
            paths[f"/functions/{path}"] = {"post": {"operationId": operation, **told, "responses": responses}}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if needs_key:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _problems() -> dict[str, Any]:
    return {
        str(status): {"description": told, "content": {MEDIA_TYPE: {"schema": _ref("Problem")}}}
        for status, told in STATUSES.items()
    }


def _content(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": dict(schema)}}}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _moved(schema: Mapping[str, Any], prefix: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its definitions moved into `schemas`, since references start at the document's root."""
    definitions = schema.get("$defs", {})
    text = json.dumps({**schema, "$defs": definitions})
    names = {name: f"{prefix}_{number}" for number, name in enumerate(definitions)}
    for name, own in names.items():
        reference = "#/$defs/" + name.replace("~", "~0").replace("/", "~1")
        text = text.replace(json.dumps(reference), json.dumps(f"#/components/schemas/{own}"))
    whole: dict[str, Any] = json.loads(text)
    schemas.update({names[name]: definition for name, definition in whole.pop("$defs").items()})
    return whole
