"""JSON Schemas for a small local model: bounded, so that it cannot repeat itself for ever; pure.

llama.cpp turns the schema into a grammar. What it cannot turn into one it reports on stderr and then lets pass, so
patterns it does not know are taken out here; the value is checked against the type afterwards in any case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["MAX_ITEMS", "MAX_STRING", "bounded", "bounded_response_format"]

MAX_STRING = 1000
"""Characters of a string whose schema sets no limit."""

MAX_ITEMS = 32
"""Items of a list whose schema sets no limit."""

_ONE_SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LIST_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAP_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": " \\t\\n\\r"}
_ESCAPE_OR_CLASS = re.compile(r"\\(.)|([\[\]])", re.DOTALL)


def bounded_response_format(response_format: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a copy of `response_format` whose schema is bounded; other kinds come back as they are."""
    if response_format is None:
        return None
    wrapper = response_format.get("json_schema")
    if not isinstance(wrapper, Mapping) or not isinstance(wrapper.get("schema"), Mapping):
        return dict(response_format)
    return {**response_format, "json_schema": {**wrapper, "schema": bounded(wrapper["schema"])}}


def bounded(schema: Any) -> Any:
    """Return a copy of `schema` in which every string and list has a largest length."""
    if not isinstance(schema, Mapping):
        return schema
    copy = dict(schema)
    for name in _ONE_SCHEMA:
        if name in copy:
            copy[name] = bounded(copy[name])
    for name in _LIST_OF_SCHEMAS:
        if isinstance(copy.get(name), list):
            copy[name] = [bounded(each) for each in copy[name]]
    for name in _MAP_OF_SCHEMAS:
        if isinstance(copy.get(name), Mapping):
            copy[name] = {key: bounded(each) for key, each in copy[name].items()}
    _bound(copy)
    return copy


def _bound(schema: dict[str, Any]) -> None:
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds or ()
    pattern = schema.pop("pattern", None)
    if isinstance(pattern, str) and (simple := grammar_pattern(pattern)) is not None:
        schema["pattern"] = simple
    is_free = not any(name in schema for name in ("enum", "const", "format", "pattern"))
    if "string" in kinds and is_free:
        schema.setdefault("maxLength", max(MAX_STRING, _least(schema, "minLength")))
    if "array" in kinds and "prefixItems" not in schema:
        schema.setdefault("maxItems", max(MAX_ITEMS, _least(schema, "minItems")))


def _least(schema: Mapping[str, Any], name: str) -> int:
    least = schema.get(name)
    return least if isinstance(least, int) else 0


def grammar_pattern(pattern: str) -> str | None:
    r"""Return `pattern` in the little language of patterns that llama.cpp knows, None if it cannot be said in it.

    It wants both anchors and knows groups, classes and repetition, but no look-around and no ``\d``.
    """
    is_anchored = pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$")
    if not is_anchored or not pattern.isascii() or re.search(r"\(\?(?!:)|\[\[", pattern):
        return None
    in_class = False
    parts: list[str] = []
    end = 0
    for match in _ESCAPE_OR_CLASS.finditer(pattern):
        parts.append(pattern[end : match.start()])
        end = match.end()
        escaped, bracket = match.groups()
        if bracket:
            in_class = bracket == "["
            parts.append(bracket)
        elif escaped in _CLASSES:
            parts.append(_CLASSES[escaped] if in_class else f"[{_CLASSES[escaped]}]")
        elif escaped.isalnum():
            return None
        else:
            parts.append(match.group())
    return "".join([*parts, pattern[end:]])
