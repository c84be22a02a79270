"""JSON Schemas for a small local model: bounded, so that it cannot repeat itself for ever; pure.

llama.cpp turns the schema into a grammar. What it cannot turn into one it reports on stderr and then lets pass, so
patterns it does not know are taken out here; the value is checked against the type afterwards in any case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MOST_CHARACTERS = 1001
MOST_ITEMS = 33
"""What a string and a list may have at most where their schema sets no limit.

The numbers are odd on purpose: a string or list that is exactly so long was ended by its bound, not by the model.
"""

_LARGEST = 10**15
"""Of a number without limits: its digits have to end."""

_ONE_SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LIST_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAP_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
_OPEN = {"patternProperties", "$ref", *_LIST_OF_SCHEMAS}
"""Next to these, an object may have more than its `properties`."""

_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": " \\t\\n\\r"}
_ESCAPE_OR_CLASS = re.compile(r"\\(.)|([\[\]])", re.DOTALL)


def compact_grammar(schema: Mapping[str, Any]) -> str:
    """Return the grammar of a bounded schema whose JSON stands on one line, as `json.dumps` writes it; "" without one.

    Where it may, a small model indents and breaks lines: of the tokens of a short answer, and its time, half is white
    space then. Not where it writes texts: one that would end a line after a text goes on with the text.

    Source: llguidance, docs/json_schema.md.
    """
    style = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
    text = json.dumps({**schema, "x-guidance": style})
    # A grammar that cannot be built is passed over without a word; of a schema that has such a reference llama.cpp tells.
    is_closed = text.count('"$ref": "') == text.count('"$ref": "#')
    return f"%llguidance {{}}\nstart: %json {text}" if is_closed and not _has_text(schema) else ""


def _has_text(schema: Any) -> bool:
    """Whether the answer may hold free text (a key counts) or any JSON."""
    if isinstance(schema, Mapping):
        is_any = not schema.keys() - {"title", "description", "default"}
        is_free = not schema.keys() & {"enum", "const", "format", "pattern"} and "string" in schema.get("type", ())
        if is_any or is_free or schema.get("additionalProperties", False) is not False:
            return True
    inner = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ()
    return any(_has_text(each) for each in inner)


def is_ended_by_bound(text: str) -> bool:
    """Whether a string or list in a JSON text is as long as its bound: the model had not come to its end."""
    try:
        return _holds_longest(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _holds_longest(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) == MOST_CHARACTERS
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, list) and len(value) == MOST_ITEMS) or any(map(_holds_longest, inner))


def bounded(schema: Any) -> Any:
    """Return a copy of `schema` in which every string, list and number has bounds, and an object no further fields."""
    if not isinstance(schema, Mapping):
        return schema
    copy = {name: _bounded_part(name, value) for name, value in schema.items()}
    if isinstance(copy.get("properties"), Mapping) and not _OPEN & copy.keys():
        copy.setdefault("additionalProperties", False)  # else a small model invents more fields
    for part, given in zip(copy.get("allOf", ()), schema.get("allOf", ()), strict=True):
        if isinstance(part, dict) and "additionalProperties" not in given:
            part.pop("additionalProperties", None)  # a part is not the whole
    _bound(copy)
    return copy


def _bounded_part(name: str, value: Any) -> Any:
    """Return what a keyword holds with bounds in each schema of it."""
    if name in _LIST_OF_SCHEMAS and isinstance(value, list):
        return [bounded(each) for each in value]
    if name in _MAP_OF_SCHEMAS and isinstance(value, Mapping):
        return {key: bounded(each) for key, each in value.items()}
    return bounded(value) if name in _ONE_SCHEMA else value


def _bound(schema: dict[str, Any]) -> None:
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds or ()
    pattern = schema.pop("pattern", None)
    if isinstance(pattern, str) and (simple := grammar_pattern(pattern)) is not None:
        schema["pattern"] = simple
    if "string" in kinds and not any(name in schema for name in ("enum", "const", "format", "pattern")):
        schema.setdefault("maxLength", max(MOST_CHARACTERS, _least(schema, "minLength")))
    if {"integer", "number"} & {*kinds} and not {"enum", "const"} & schema.keys():
        least, most = (schema.get(f"exclusive{name}", schema.get(name.lower())) for name in ("Minimum", "Maximum"))
        if least is None:
            schema["minimum"] = min(-_LARGEST, most or 0)
        if most is None:
            schema["maximum"] = max(_LARGEST, least or 0)
    if "array" in kinds and "prefixItems" not in schema:
        schema.setdefault("maxItems", max(MOST_ITEMS, _least(schema, "minItems")))


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
