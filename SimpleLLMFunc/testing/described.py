"""From the description of a type in a prompt back to a schema: what a model reads in prompt mode, `SchemaLLM` reads.

The descriptions are those of `base/type_resolve`. Their words name no end of a part ("list of: integer or null"), so a
sentence may have two meanings; what is read here fits both of them, or comes from the example beside the description.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["described_schema"]

_DESCRIPTION: Final = "Type Description (JSON):\n"
_EXAMPLE: Final = "Example JSON:\n"
_SENTENCE: Final = re.compile(r"^Return value:\n(?P<words>.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
_LINE: Final = re.compile(r"^(?P<words>(?:integer|number|true or false|null|string)(?:, .*)?)$", re.MULTILINE)

_SCALARS: Final[dict[str, dict[str, Any]]] = {
    "date and time (ISO 8601, such as 2024-05-31T09:30:00Z)": {"type": "string", "format": "date-time"},
    "date (YYYY-MM-DD)": {"type": "string", "format": "date"},
    "time (HH:MM:SS)": {"type": "string", "format": "time"},
    "duration (ISO 8601, such as PT1H30M)": {"type": "string", "format": "duration"},
    "UUID": {"type": "string", "format": "uuid"},
    "e-mail address": {"type": "string", "format": "email"},
    "URL": {"type": "string", "format": "uri"},
    "bytes": {"type": "string"},
    "true or false": {"type": "boolean"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "string": {"type": "string"},
    "null": {"type": "null"},
    "any JSON value": {},
}
_OWN_BOUNDS: Final = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_UNITS: Final = {" characters": "Length", " items": "Items", " keys": "Properties", "": ""}
_STARTS: Final = (
    ("at least ", "min"), ("at most ", "max"), ("greater than ", "exclusiveMinimum"), ("less than ", "exclusiveMaximum"),
    ("a multiple of ", "multipleOf"), ("matching ", "pattern"),
)  # fmt: skip
_PLAIN_EXAMPLE: Final = re.compile(r"text[\d tex]*x*|t|te|tex")
_decode: Final = json.JSONDecoder().raw_decode


def described_schema(texts: Sequence[str]) -> dict[str, Any] | None:
    """Return a schema of the type described in the last of the texts that describes one; None for plain text.

    Whatever fits the schema fits the type; not the other way round.
    """
    for text in reversed(texts):
        at = text.rfind(_DESCRIPTION)
        if at >= 0:
            return _from_json(text[at + len(_DESCRIPTION) :])
        sentence = _SENTENCE.search(text) or _LINE.search(text)
        if sentence is not None:
            return _from_words(sentence["words"])
    return None


def _from_words(words: str) -> dict[str, Any] | None:
    try:
        schema = _Reader({}).words(words, _NOTHING)
    except _Unclear:
        return None
    return None if schema == _SCALARS["string"] else schema  # a text is given as it stands


def _from_json(text: str) -> dict[str, Any] | None:
    try:
        described, end = _decode(text)
    except ValueError:
        return None
    example: Any = _NOTHING
    at = text.find(_EXAMPLE, end)
    if at >= 0:
        try:
            example, _ = _decode(text[at + len(_EXAMPLE) :])
        except ValueError:
            example = _NOTHING
    definitions: dict[str, Any] = {}
    try:
        schema = _Reader(definitions).node(described, example)
    except _Unclear:
        return None
    return {**schema, "$defs": definitions}


class _Unclear(Exception):
    """The words have more than one meaning, or are not ours."""


_NOTHING: Final = object()
"""Stands where there is no example."""


class _Reader:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._defs = definitions
        self._inside: list[tuple[str, str]] = []  # title and definition of the objects around
        self._text = ""

    # --- what has fields ---------------------------------------------------------------------------------

    def node(self, described: Any, example: Any) -> dict[str, Any]:
        """Read one node of a description; where that is unclear, the example is the one value."""
        try:
            if isinstance(described, str):
                return self.words(described, example)
            if isinstance(described, Mapping):
                return self._structure(described, example)
        except _Unclear:
            if example is not _NOTHING:
                return {"enum": [example]}
        raise _Unclear

    def _structure(self, described: Mapping[str, Any], example: Any) -> dict[str, Any]:
        kind = str(described.get("type", ""))
        if "fields" in described:
            return self._object(kind.removeprefix("object").strip() or "object", described["fields"], example)
        if "choices" in described:
            return {"anyOf": self._some(described["choices"], example)}
        if kind.startswith("list, in this order"):
            parts = described["items"]
            shown = example if isinstance(example, list) and len(example) == len(parts) else [_NOTHING] * len(parts)
            return {"type": "array", "prefixItems": [self.node(*pair) for pair in zip(parts, shown, strict=True)]}
        bounds = self._trailing_bounds(kind.removeprefix("list").removeprefix("object with any keys"))
        if "items" in described:
            first = example[0] if isinstance(example, list) and example else _NOTHING
            # Of a set of objects nothing says that it is one.
            return {"type": "array", "items": self.node(described["items"], first), "uniqueItems": True, **bounds}
        if "values" in described:
            first = next(iter(example.values())) if isinstance(example, dict) and example else _NOTHING
            values = self.node(described["values"], first)
            return {"type": "object", "additionalProperties": values, **_keys(example), **bounds}
        raise _Unclear

    def _some(self, choices: Sequence[Any], example: Any) -> list[dict[str, Any]]:
        """Read the choices of a union; its example is one of the first of them that is not null."""
        found = []
        is_first = True
        for choice in choices:
            shown = example if is_first and choice != "null" and _may_be(choice, example) else _NOTHING
            is_first = is_first and choice == "null"
            if shown is _NOTHING and isinstance(choice, Mapping) and "values" in choice and len(choices) > 1:
                continue  # nothing tells what its keys may be
            found.append(self.node(choice, shown))
        return found or [{"enum": [example]}]

    def _object(self, title: str, fields: Mapping[str, Any], example: Any) -> dict[str, Any]:
        name = f"{len(self._defs)}"
        self._defs[name] = {}
        self._inside.append((title, name))
        shown = example if isinstance(example, dict) else {}
        properties, required = {}, []
        try:
            for field, described in fields.items():
                properties[field] = self.node(described, shown.get(field, _NOTHING))
                note = described.get("note", "") if isinstance(described, Mapping) else described
                # The tag of a union may have a default, and is needed all the same.
                if len(properties[field].get("enum", ())) == 1 or not self._may_be_left_out(
                    note, shown.get(field, _NOTHING)
                ):
                    required.append(field)
        finally:
            self._inside.pop()
        self._defs[name] = {"type": "object", "properties": properties, "required": required}
        return {"$ref": f"#/$defs/{name}"}

    def _may_be_left_out(self, words: str, example: Any) -> bool:
        if words.startswith("may be left out"):
            return True
        self._text = words
        try:
            self._choices(example, is_inner=False)
        except _Unclear:
            return ", may be left out" in words
        return self._text.startswith(", may be left out")

    def _trailing_bounds(self, text: str) -> dict[str, Any]:
        self._text = text
        found: dict[str, Any] = {}
        while self._bound(found, (*_OWN_BOUNDS["array"], *_OWN_BOUNDS["object"])) is not None:
            pass
        return found

    # --- words -------------------------------------------------------------------------------------------

    def words(self, text: str, example: Any) -> dict[str, Any]:
        """Read a type in words; notes and a description may follow it.

        Raises:
            _Unclear: it is none, or could be several.
        """
        self._text = text
        schema = self._choices(example, is_inner=False)
        if self._text and not self._text.startswith((": ", ", may be left out", "\n")):
            raise _Unclear
        return _like(schema, example)

    def _choices(self, example: Any, *, is_inner: bool) -> dict[str, Any]:
        """Read ``A or B``; inside a list only A, for B may be another kind of list altogether."""
        found = [self._kind(example)]
        while self._took(" or "):
            # The example is one of the first choice that is not null.
            found.append(self._kind(example if found == [{"type": "null"}] else _NOTHING))
        return found[0] if is_inner or len(found) == 1 else {"anyOf": found}

    def _kind(self, example: Any) -> dict[str, Any]:
        if self._took("one of "):
            return {"enum": self._literals()}
        if self._took("list of exactly: "):
            return self._tuple(example)
        for start, more in (("list without duplicates", {"uniqueItems": True}), ("list", {})):
            if self._took(f"{start} of: "):
                first = example[0] if isinstance(example, list) and example else _NOTHING
                return self._container({"type": "array", "items": self._choices(first, is_inner=True), **more})
            if self._took(start):
                return self._bounded({"type": "array", **more})
        if self._took("object with any keys, each value: "):
            first = next(iter(example.values())) if isinstance(example, dict) and example else _NOTHING
            return self._container({"type": "object", "additionalProperties": self._choices(first, is_inner=True)})
        for title, name in reversed(self._inside):
            if self._took(f"{title} …"):
                return {"$ref": f"#/$defs/{name}"}
        for words, schema in _SCALARS.items():
            if self._took(words):
                return self._bounded(dict(schema))
        return {"enum": [self._literal()]}

    def _took(self, start: str) -> bool:
        if not self._text.startswith(start):
            return False
        self._text = self._text[len(start) :]
        return True

    def _literal(self) -> Any:
        try:
            value, end = _decode(self._text)
        except ValueError:
            raise _Unclear from None
        self._text = self._text[end:]
        return value

    def _literals(self) -> list[Any]:
        found = [self._literal()]
        while re.match(r', (?:["\[{\d-]|true|false|null)', self._text):
            self._text = self._text[2:]
            found.append(self._literal())
        return found

    def _tuple(self, example: Any) -> dict[str, Any]:
        """Read the parts of a tuple; where one that stands inside another ends, only the example tells."""
        shown: list[Any] = list(example) if isinstance(example, list) else []
        parts: list[dict[str, Any]] = []
        while True:
            if not shown and self._text.startswith("list of exactly: "):
                raise _Unclear
            parts.append(self._choices(shown[len(parts)] if shown else _NOTHING, is_inner=True))
            if len(parts) == len(shown) or not self._took(", then "):
                if len(parts) < len(shown):
                    raise _Unclear
                return {"type": "array", "prefixItems": parts}

    def _bounded(self, schema: dict[str, Any]) -> dict[str, Any]:
        allowed = _OWN_BOUNDS.get(str(schema.get("type")), ())
        while (taken := self._bound(schema, allowed)) is not None:
            # In this order, each once: what comes again is of the list around.
            allowed = allowed[allowed.index(taken) + 1 :]
        return schema

    def _container(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Read the bounds of what holds others; those that the inner one took may have been meant for it."""
        own = self._bounded({"type": schema["type"]})
        inner: Any = schema.get("items") or schema.get("additionalProperties") or {}
        if len(own) == 1:
            own = {key: inner[key] for key in _OWN_BOUNDS[schema["type"]] if key in inner}
        return {**schema, **own}

    def _bound(self, found: dict[str, Any], allowed: Sequence[str]) -> str | None:
        """Read one bound if the next one is of those allowed; return its name."""
        for start, name in _STARTS:
            if not self._text.startswith(f", {start}"):
                continue
            before, self._text = self._text, self._text[2 + len(start) :]
            try:
                value = self._literal()
            except _Unclear:
                self._text = before
                return None
            if name in {"min", "max"}:
                unit = next(unit for unit in _UNITS if self._took(unit))
                name = f"{name}{_UNITS[unit] or 'imum'}"  # noqa: PLW2901 - the name in full
            if name in allowed:
                found[name] = value
                return name
            self._text = before
            return None
        return None


def _may_be(described: Any, example: Any) -> bool:
    """Say whether an example may be one of what is described."""
    if isinstance(described, Mapping) and "fields" in described:
        return isinstance(example, dict) and example.keys() <= described["fields"].keys()
    if isinstance(described, Mapping):
        return isinstance(example, dict if "values" in described else list)
    return True


def _keys(example: Any) -> dict[str, Any]:
    """Return what an example tells of the keys of a mapping, which a description does not mention."""
    if not isinstance(example, dict) or not example or "key" in example:
        return {}
    return {"propertyNames": {"enum": list(example)}, "maxProperties": len(example)}


def _like(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    """Return the schema, narrowed by an example that shows more than the words told: a format, or the author's own."""
    if example is _NOTHING:
        return schema
    if "anyOf" in schema:
        first, others = schema["anyOf"][0], schema["anyOf"][1:]
        if first == {"type": "null"}:
            first, others = others[0], [first, *others[1:]]
        # Nothing tells what the keys of the other ones may be.
        others = [other for other in others if "additionalProperties" not in other]
        return {"anyOf": [_like(first, example), *others]}
    match schema.get("type"):
        case "string" if isinstance(example, str) and not {"format", "pattern"} & schema.keys():
            return schema if _PLAIN_EXAMPLE.fullmatch(example) else {"enum": [example]}
        case "array" if isinstance(example, list) and example:
            if "prefixItems" in schema and len(example) == len(schema["prefixItems"]):
                pairs = zip(schema["prefixItems"], example, strict=True)
                return {**schema, "prefixItems": [_like(*pair) for pair in pairs]}
            if "items" in schema:
                return {**schema, "items": _like_some(schema["items"], example)}
        case "object" if isinstance(example, dict) and "additionalProperties" in schema:
            values = _like_some(schema["additionalProperties"], list(example.values()))
            return {**schema, "additionalProperties": values, **_keys(example)}
        case _:
            pass
    return schema


def _like_some(schema: dict[str, Any], examples: Sequence[Any]) -> dict[str, Any]:
    narrowed = [_like(schema, example) for example in examples]
    if all(set(each) == {"enum"} for each in narrowed) and narrowed:
        return {"enum": [value for each in narrowed for value in each["enum"]]}
    return narrowed[0] if narrowed else schema
