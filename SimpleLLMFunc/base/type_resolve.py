"""What a type is called in a prompt: in words, as JSON, and by example; and which types are pictures, sounds, files.

Everything is derived from the JSON schema of the type, so description, example and schema cannot disagree: an
alias is used in all three. The texts are English and always the same for the same type.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from SimpleLLMFunc.base.schemas import compile_output
from SimpleLLMFunc.base.schemas.type_description import Describer, Schema
from SimpleLLMFunc.base.schemas.type_example import example_of
from SimpleLLMFunc.base.schemas.type_words import Phrase, PlainWords, either, list_of
from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.type import MULTIMODAL, Audio, File, ImgPath, ImgUrl, Text, holds_multimodal

_MEDIA: dict[Any, tuple[str, str]] = {
    Text: ("text", "texts"), ImgUrl: ("image", "images"), ImgPath: ("image", "images"),
    Audio: ("sound", "sounds"), File: ("file", "files"),
}  # fmt: skip

# --- in words --------------------------------------------------------------------------------------------


def get_detailed_type_description(type_hint: Any) -> str:
    """Return the type in plain English: constraints, the fields of a model with their descriptions.

    A class that no schema can be made of is described by its name, pictures and the like by what they are.
    """
    return str(_phrase_of(type_hint))


def build_type_description_json(type_hint: Any) -> Any:
    """Return the type as JSON data: a text for a scalar, ``{"type", "description", "fields"}`` for an object.

    Fields of one model are described in full each time, also when two share a type; only a type inside itself
    is cut: "(as above)". A field that may be left out says so.
    """
    schema = _schema_of(type_hint)
    return str(_phrase_of(type_hint)) if schema is None else PlainWords(schema).as_json(schema)


def generate_example_object(type_hint: Any) -> Any:
    """Return JSON data that is a value of the type, constraints and aliases respected as far as an example can.

    A pattern is not solved: give the field `examples=[…]`. None for a type that no schema can be made of.
    """
    schema = _schema_of(type_hint)
    return None if schema is None else example_of(schema)


def type_identity(type_hint: Any, *, as_json: bool = False) -> Any:
    """Return the type as 1.0 described it, in words or as JSON data: what versions and lock files hold hashes of."""
    schema = _schema_of(type_hint)
    if schema is None:
        return _name_of(type_hint)
    return Describer(schema).as_json(schema) if as_json else Describer(schema).in_words(schema)


def _schema_of(type_hint: Any) -> Schema | None:
    if type_hint is inspect.Parameter.empty:
        return {}
    try:
        return compile_output(type_hint).schema
    except SignatureError:
        return None


def _phrase_of(type_hint: Any) -> Phrase:
    schema = None if is_multimodal_type(type_hint) else _schema_of(type_hint)
    if schema is not None:
        return PlainWords(schema).phrase(schema)
    origin, parts = get_origin(type_hint), get_args(type_hint)
    if origin is Annotated:
        return _phrase_of(parts[0])
    if origin in {Union, types.UnionType}:
        return either([_phrase_of(part) for part in parts])
    if origin in {list, tuple, set, frozenset, collections.abc.Sequence}:
        return list_of(either([_phrase_of(part) for part in parts if part is not ...]))
    if isinstance(type_hint, type) and type_hint in _MEDIA:
        return Phrase(*_MEDIA[type_hint])
    return Phrase(_name_of(type_hint))


def _name_of(type_hint: Any) -> str:
    return getattr(type_hint, "__name__", None) or str(type_hint).replace("typing.", "")


# --- pictures, sounds, files -----------------------------------------------------------------------------


def is_multimodal_type(value_or_type: Any, annotation: Any = None) -> bool:
    """Tell whether a type, or the type of a value, is `Text`, `ImgUrl`, `ImgPath`, `Audio`, `File`, or holds one.

    Args:
        value_or_type: ``ImgUrl``, ``list[ImgPath] | None`` and so on, or a value.
        annotation: of the parameter that the value was given for.
    """
    return any(map(_mentions_multimodal, (value_or_type, annotation))) or holds_multimodal(value_or_type)


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
        is_given = value is not None and not (isinstance(value, list | tuple) and not value)
        if name in excluded or not is_given:
            continue
        if holds_multimodal(value) or _mentions_multimodal(type_hints.get(name)):
            return True
    return False


def _mentions_multimodal(type_hint: Any) -> bool:
    if isinstance(type_hint, type) and get_origin(type_hint) is None:
        return issubclass(type_hint, MULTIMODAL)
    origin = get_origin(type_hint)
    if origin is Annotated:
        return _mentions_multimodal(get_args(type_hint)[0])
    holds_others = origin in {Union, types.UnionType, list, tuple, collections.abc.Sequence}
    return holds_others and any(map(_mentions_multimodal, get_args(type_hint)))
