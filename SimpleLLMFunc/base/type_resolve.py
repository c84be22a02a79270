"""What a type is called in a prompt: in words, as JSON, and by example; and which types are pictures, sounds, files.

Everything is derived from the JSON schema of the type, so description, example and schema cannot disagree: an
alias is used in all three. The texts are English and always the same for the same type.
"""

from __future__ import annotations

import collections.abc
import inspect
import json
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from SimpleLLMFunc.base.schemas import compile_output, example_of
from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.type import MULTIMODAL, Audio, File, ImgPath, ImgUrl, Text

__all__ = [
    "build_type_description_json",
    "generate_example_object",
    "get_detailed_type_description",
    "has_multimodal_content",
    "is_multimodal_type",
]

CUT = "…"
"""Stands where a type contains itself."""

Schema: TypeAlias = dict[str, Any]

_FORMATS = {
    "date": "date (YYYY-MM-DD)",
    "date-time": "date and time (ISO 8601, such as 2024-05-31T09:30:00Z)",
    "time": "time (HH:MM:SS)",
    "duration": "duration (ISO 8601, such as PT1H30M)",
    "uuid": "UUID",
    "email": "e-mail address",
    "uri": "URL",
    "binary": "bytes",
}

_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "greater than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("pattern", "matching {}"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("minProperties", "at least {} keys"),
    ("maxProperties", "at most {} keys"),
)


# --- in words --------------------------------------------------------------------------------------------


def get_detailed_type_description(type_hint: Any) -> str:
    """Return the type in English: constraints, the fields of a model with their descriptions, a recursion as ``…``.

    A type that no schema can be made of is described by its name.
    """
    schema = _schema_of(type_hint)
    if schema is None:
        return _name_of(type_hint)
    return _Describer(schema).in_words(schema, ())


def build_type_description_json(type_hint: Any) -> Any:
    """Return the type as JSON data: a text for a scalar, ``{"type", "description", "fields"}`` for an object.

    Fields of one model are described in full each time, also when two share a type; only a type inside itself
    is cut with ``…``. A field that may be left out says so.
    """
    schema = _schema_of(type_hint)
    if schema is None:
        return _name_of(type_hint)
    return _Describer(schema).as_json(schema, ())


def generate_example_object(type_hint: Any) -> Any:
    """Return JSON data that is a value of the type, constraints and aliases respected as far as an example can.

    A pattern is not solved: give the field `examples=[…]`. None for a type that no schema can be made of.
    """
    schema = _schema_of(type_hint)
    return None if schema is None else example_of(schema)


def _schema_of(type_hint: Any) -> Schema | None:
    if type_hint is inspect.Parameter.empty:
        return {}
    try:
        return compile_output(type_hint).schema
    except SignatureError:
        return None


def _name_of(type_hint: Any) -> str:
    if is_multimodal_type(type_hint) and isinstance(type_hint, type):
        return {Text: "text", ImgUrl: "image", ImgPath: "image", Audio: "audio", File: "file"}.get(
            type_hint, type_hint.__name__
        )
    return getattr(type_hint, "__name__", None) or str(type_hint).replace("typing.", "")


class _Describer:
    """Describes one schema; `inside` is the chain of definitions that the description stands in."""

    def __init__(self, root: Schema) -> None:
        self._defs: dict[str, Schema] = root.get("$defs", {})

    def in_words(self, schema: Schema, inside: tuple[str, ...]) -> str:
        schema, inside, is_cut = self._resolved(schema, inside)
        if is_cut:
            return f"{schema.get('title', 'object')} {CUT}"
        if "properties" in schema:
            fields = "; ".join(
                self._field_in_words(schema, name, field, inside) for name, field in schema["properties"].items()
            )
            about = _own_description(schema)
            return (
                f"{schema.get('title', 'object')} object{f' ({about})' if about else ''} with {fields or 'no fields'}"
            )
        return self._plain(schema, inside, self.in_words)

    def _field_in_words(self, schema: Schema, name: str, field: Schema, inside: tuple[str, ...]) -> str:
        kind = self.in_words(_without_description(field), inside)
        kind = f"[{kind}]" if "; " in kind else kind
        notes = [*_field_notes(schema, name, field)]
        return f"{name}: {', '.join([kind, *notes])}" + (f" ({field['description']})" if "description" in field else "")

    def as_json(self, schema: Schema, inside: tuple[str, ...]) -> Any:
        described = schema.get("description")
        schema, inside, is_cut = self._resolved(schema, inside)
        if is_cut:
            return f"{schema.get('title', 'object')} {CUT}"
        if "properties" in schema:
            fields = {
                name: self._field_as_json(schema, name, field, inside) for name, field in schema["properties"].items()
            }
            about = described or _own_description(schema)
            return {
                "type": f"object {schema.get('title', '')}".strip(),
                **({"description": about} if about else {}),
                "fields": fields,
            }
        return self._structure(schema, inside)

    def _field_as_json(self, schema: Schema, name: str, field: Schema, inside: tuple[str, ...]) -> Any:
        notes = list(_field_notes(schema, name, field))
        kind = self.as_json(_without_description(field), inside)
        described = field.get("description", "")
        if isinstance(kind, str):
            return ", ".join([kind, *notes]) + (f": {described}" if described else "")
        return {
            **kind,
            **({"description": described} if described else {}),
            **({"note": ", ".join(notes)} if notes else {}),
        }

    def _structure(self, schema: Schema, inside: tuple[str, ...]) -> Any:
        """Describe a list, a mapping or a choice; as a text where nothing in it has fields."""
        words = self._plain(schema, inside, self.in_words)
        parts = _parts_of(schema)
        if not any(self._has_fields(part, inside) for part in parts):
            return words
        bounds = _bounds(schema)
        if "items" in schema:
            return {"type": ", ".join(["list", *bounds]), "items": self.as_json(schema["items"], inside)}
        if "prefixItems" in schema:
            return {"type": "list, in this order", "items": [self.as_json(part, inside) for part in parts]}
        if "additionalProperties" in schema:
            return {
                "type": ", ".join(["object with any keys", *bounds]),
                "values": self.as_json(schema["additionalProperties"], inside),
            }
        return {"type": "one of", "choices": [self.as_json(part, inside) for part in parts]}

    def _has_fields(self, schema: Schema, inside: tuple[str, ...]) -> bool:
        schema, inside, is_cut = self._resolved(schema, inside)
        return not is_cut and (
            "properties" in schema or any(self._has_fields(part, inside) for part in _parts_of(schema))
        )

    def _resolved(self, schema: Schema, inside: tuple[str, ...]) -> tuple[Schema, tuple[str, ...], bool]:
        """Follow references; the last item tells that the definition is one we stand in."""
        while "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            target = self._defs.get(name, {})
            if name in inside:
                return target, inside, True
            rest = {key: value for key, value in schema.items() if key not in {"$ref", "default", "description"}}
            schema, inside = {**target, **rest}, (*inside, name)
        return schema, inside, False

    def _plain(self, schema: Schema, inside: tuple[str, ...], describe: Any) -> str:
        """Describe a schema without fields of its own."""
        if "const" in schema:
            return _literal(schema["const"])
        if "enum" in schema:
            return "one of " + ", ".join(_literal(value) for value in schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return _joined([describe(part, inside) for part in schema[key]])
        bounds = _bounds(schema)
        kind = schema.get("type")
        if isinstance(kind, list):
            return _joined([self._plain({**schema, "type": one}, inside, describe) for one in kind])
        if kind == "array":
            return ", ".join([self._list_words(schema, inside, describe), *bounds])
        if kind == "object":
            values = schema.get("additionalProperties")
            shown = describe(values, inside) if isinstance(values, dict) and values else "any value"
            return ", ".join([f"object with any keys, each value: {shown}", *bounds])
        if kind == "string":
            words = _FORMATS.get(schema.get("format", ""), "string")
            return ", ".join([words, *bounds])
        names = {"integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}
        return ", ".join([names.get(kind or "", "any JSON value"), *bounds])

    def _list_words(self, schema: Schema, inside: tuple[str, ...], describe: Any) -> str:
        if "prefixItems" in schema:
            return "list of exactly: " + ", then ".join(describe(part, inside) for part in schema["prefixItems"])
        unique = "list without duplicates" if schema.get("uniqueItems") else "list"
        items = schema.get("items")
        return f"{unique} of: {describe(items, inside)}" if isinstance(items, dict) and items else unique


def _own_description(schema: Schema) -> str:
    text = str(schema.get("description", ""))
    # dataclasses write their signature where no docstring stands
    return "" if text.startswith(f"{schema.get('title', '')}(") else text


def _without_description(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in {"description", "default", "title"}}


def _field_notes(schema: Schema, name: str, field: Schema) -> Iterable[str]:
    if name not in schema.get("required", ()):
        default = field.get("default")
        yield f"may be left out (then {_literal(default)})" if default is not None else "may be left out"


def _parts_of(schema: Schema) -> list[Schema]:
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("prefixItems", ())]
    parts.extend(schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict))
    return parts


def _bounds(schema: Schema) -> list[str]:
    if "prefixItems" in schema:
        return []
    return [text.format(json.dumps(schema[key], ensure_ascii=False)) for key, text in _BOUNDS if key in schema]


def _joined(words: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- pictures, sounds, files -----------------------------------------------------------------------------


def is_multimodal_type(value_or_type: Any, annotation: Any = None) -> bool:
    """Tell whether a type, or the type of a value, is `Text`, `ImgUrl`, `ImgPath`, `Audio`, `File`, or holds one.

    Args:
        value_or_type: ``ImgUrl``, ``list[ImgPath] | None`` and so on, or a value.
        annotation: of the parameter that the value was given for.
    """
    if _mentions_multimodal(value_or_type) or _mentions_multimodal(annotation):
        return True
    return _holds_multimodal(value_or_type)


def has_multimodal_content(
    arguments: Mapping[str, Any], type_hints: Mapping[str, Any], exclude_params: Iterable[str] | None = None
) -> bool:
    """Tell whether any argument is more than text: by its value, or by its annotation where a value was given.

    Args:
        arguments: name to value; None counts as not given.
        type_hints: name to annotation; names may be missing.
        exclude_params: names not looked at.
    """
    excluded = frozenset(exclude_params or ())
    for name, value in arguments.items():
        if (
            name in excluded
            or value is None
            or type_hints.get(name) is type(value) is str
            or (isinstance(value, list | tuple) and not value)
        ):
            continue
        if _holds_multimodal(value) or _mentions_multimodal(type_hints.get(name)):
            return True
    return False


def _holds_multimodal(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_multimodal, value))
    return isinstance(value, MULTIMODAL)


def _mentions_multimodal(type_hint: Any) -> bool:
    if isinstance(type_hint, type) and get_origin(type_hint) is None:
        return issubclass(type_hint, MULTIMODAL)
    origin = get_origin(type_hint)
    if origin is Annotated:
        return _mentions_multimodal(get_args(type_hint)[0])
    if origin in {Union, types.UnionType, list, tuple, collections.abc.Sequence}:
        return any(_mentions_multimodal(part) for part in get_args(type_hint))
    return False
