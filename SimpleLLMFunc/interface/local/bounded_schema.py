"""JSON Schemas for a small local model: bounded, so that it cannot repeat itself for ever; pure.

llama.cpp turns the schema into a grammar. What it cannot turn into one it reports on stderr and then lets pass, so
patterns it does not know are taken out here; the value is checked against the type afterwards in any case.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple


class Bounds(NamedTuple):
    """What a string and a list may have at most where their schema sets no limit.

    The numbers are odd on purpose: a string or list that is exactly so long was ended by its bound, not by the model.
    """

    string: int
    items: int


_BOUNDS = (Bounds(1001, 33), Bounds(501, 33), Bounds(251, 33), Bounds(251, 17), Bounds(121, 17), Bounds(61, 17))
"""From wide to narrow."""

_MOST_OF_A_TYPE = {"integer": 20, "number": 40, "boolean": 5, "null": 4}
_OF_A_PATTERN = 256
_OF_A_FORMAT = 64
_LARGEST = 10**15
"""Of a number without limits: its digits have to end."""

_OVERHEAD = 4
"""Tokens of quotes, commas and white space around a value or a key."""

_ONE_SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LIST_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAP_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
_OPEN = {"patternProperties", "$ref", *_LIST_OF_SCHEMAS}
"""Next to these, an object may have more than its `properties`."""

_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": " \\t\\n\\r"}
_ESCAPE_OR_CLASS = re.compile(r"\\(.)|([\[\]])", re.DOTALL)


class BoundedFormat(NamedTuple):
    """A response format whose schema is bounded.

    Attributes:
        format: what is sent.
        bounds: of its strings and lists; None where there is no schema.
        longest: tokens of its longest answer; None where it has no end.
    """

    format: dict[str, Any]
    bounds: Bounds | None
    longest: int | None


def bounded_format(response_format: Mapping[str, Any], room: int) -> BoundedFormat:
    """Return `response_format` with the widest bounds under which the longest answer has at most `room` tokens."""
    found = BoundedFormat(dict(response_format), None, None)
    wrapper = response_format.get("json_schema")
    if not isinstance(wrapper, Mapping) or not isinstance(wrapper.get("schema"), Mapping):
        return found
    for bounds in _BOUNDS:
        schema = bounded(wrapper["schema"], bounds)
        longest = most_tokens(schema)
        found = BoundedFormat({**response_format, "json_schema": {**wrapper, "schema": schema}}, bounds, longest)
        if longest is None or longest <= room:
            break
    return found


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


def most_tokens(schema: Any) -> int | None:
    """Estimate the tokens of the longest sensible JSON text that fits a bounded schema; None where it has no end.

    A character is taken for a token, which is enough for any language.
    """
    longest = _Estimate(schema).of(schema, frozenset())
    return None if math.isinf(longest) else int(longest) + _OVERHEAD


class _Estimate:
    def __init__(self, root: Any) -> None:
        self._root = root

    def of(self, schema: Any, inside: frozenset[str]) -> float:
        """Return the most tokens of a value; `inside` are the references on the way to it."""
        if not isinstance(schema, Mapping):
            return math.inf  # any JSON
        if "$ref" in schema:
            ref = str(schema["$ref"])
            return math.inf if ref in inside else self.of(self._target(ref), inside | {ref})
        for name in ("anyOf", "oneOf"):
            if name in schema:
                return max((self.of(each, inside) for each in schema[name]), default=0)
        if "allOf" in schema:
            return sum(self.of(each, inside) for each in schema["allOf"])
        if "enum" in schema or "const" in schema:
            values = schema["enum"] if "enum" in schema else [schema["const"]]
            return max((len(json.dumps(each)) for each in values), default=0) + _OVERHEAD
        kinds = schema.get("type", ())
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        return max((self._of_type(kind, schema, inside) for kind in kinds), default=math.inf)

    def _of_type(self, kind: str, schema: Mapping[str, Any], inside: frozenset[str]) -> float:
        if kind == "string":
            return int(schema.get("maxLength", _OF_A_PATTERN if "pattern" in schema else _OF_A_FORMAT)) + _OVERHEAD
        if kind == "array":
            first = [self.of(each, inside) for each in schema.get("prefixItems", ())]
            rest = int(schema.get("maxItems", len(first))) - len(first)
            last = self.of(schema.get("items"), inside) if rest > 0 else 0
            return sum(first) + rest * last + _OVERHEAD
        if kind == "object":
            named = schema.get("properties", {})
            if schema.get("additionalProperties", not named) is not False:
                return math.inf  # a grammar cannot count keys
            return sum(len(json.dumps(name)) + self.of(each, inside) for name, each in named.items()) + _OVERHEAD
        return _MOST_OF_A_TYPE.get(kind, math.inf) + _OVERHEAD

    def _target(self, ref: str) -> Any:
        found = self._root
        for name in ref.removeprefix("#").split("/")[1:]:
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        return found


def is_ended_by(text: str, bounds: Bounds) -> bool:
    """Whether a string or list in a JSON text is as long as its bound: the model had not come to its end."""
    try:
        left = [json.loads(text)]
    except ValueError:
        return False
    while left:
        value = left.pop()
        if isinstance(value, str):
            if len(value) == bounds.string:
                return True
        elif isinstance(value, list):
            if len(value) == bounds.items:
                return True
            left.extend(value)
        elif isinstance(value, dict):
            left.extend(value.values())
    return False


def bounded(schema: Any, bounds: Bounds) -> Any:
    """Return a copy of `schema` in which every string, list and number has bounds, and an object no further fields."""
    if not isinstance(schema, Mapping):
        return schema
    copy = dict(schema)
    for name in _ONE_SCHEMA:
        if name in copy:
            copy[name] = bounded(copy[name], bounds)
    for name in _LIST_OF_SCHEMAS:
        if isinstance(copy.get(name), list):
            copy[name] = [bounded(each, bounds) for each in copy[name]]
    for name in _MAP_OF_SCHEMAS:
        if isinstance(copy.get(name), Mapping):
            copy[name] = {key: bounded(each, bounds) for key, each in copy[name].items()}
    if isinstance(copy.get("properties"), Mapping) and not _OPEN & copy.keys():
        copy.setdefault("additionalProperties", False)  # else a small model invents more fields
    for part, given in zip(copy.get("allOf", ()), schema.get("allOf", ()), strict=True):
        if isinstance(part, dict) and "additionalProperties" not in given:
            part.pop("additionalProperties", None)  # a part is not the whole
    _bound(copy, bounds)
    return copy


def _bound(schema: dict[str, Any], bounds: Bounds) -> None:
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds or ()
    pattern = schema.pop("pattern", None)
    if isinstance(pattern, str) and (simple := grammar_pattern(pattern)) is not None:
        schema["pattern"] = simple
    is_free = not any(name in schema for name in ("enum", "const", "format", "pattern"))
    if "string" in kinds and is_free:
        schema.setdefault("maxLength", max(bounds.string, _least(schema, "minLength")))
    if {"integer", "number"} & {*kinds} and not {"enum", "const"} & schema.keys():
        least, most = (schema.get(f"exclusive{name}", schema.get(name.lower())) for name in ("Minimum", "Maximum"))
        if least is None:
            schema["minimum"] = min(-_LARGEST, most or 0)
        if most is None:
            schema["maximum"] = max(_LARGEST, least or 0)
    if "array" in kinds and "prefixItems" not in schema:
        schema.setdefault("maxItems", max(bounds.items, _least(schema, "minItems")))


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
