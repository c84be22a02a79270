"""Types that are a choice between a few labels: `bool`, `Literal`, `Enum`; and how a label is asked for and read."""

from __future__ import annotations

import types
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum, Flag
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_MANY = 6
"""Labels up to which they are named in one line."""


def labels_of(return_type: Any) -> dict[str, Any]:
    """Return the values of a type by label, in the order of the type; empty where it is no choice between labels.

    A label is ``true`` or ``false``, the text of a literal, the value of an Enum's member where all of them are texts
    and else its name, or ``null``. What would not be one plain line is written as JSON text is.
    """
    members = _members(return_type)
    if members is None:
        return {}
    labels = {_line(name): value for name, value in members}
    with suppress(TypeError):  # a value that cannot be hashed cannot be counted
        if len(labels) == len(members) == len(set(labels.values())) and set(labels.values()) != {None}:
            return labels
    return {}


def _members(hint: Any) -> list[tuple[str, Any]] | None:
    origin = get_origin(hint)
    if origin is Annotated:
        return _members(hint.__origin__)
    if origin in {Union, types.UnionType}:
        parts = [_members(part) for part in get_args(hint)]
        return None if None in parts else [member for part in parts if part for member in part]
    if origin is Literal:
        return [_literal(value) for value in get_args(hint)]
    if hint is bool:
        return [("true", True), ("false", False)]
    if hint in {None, type(None)}:
        return [("null", None)]
    if isinstance(hint, type):
        return _enum(hint) if issubclass(hint, Enum) and not issubclass(hint, Flag) and len(hint) else None
    alias = getattr(hint, "__value__", None)  # type Mood = Literal[...]
    return None if alias is None else _members(alias)


def _enum(kind: type[Enum]) -> list[tuple[str, Any]]:
    has_texts = all(isinstance(member.value, str) for member in kind)
    return [(str(member.value) if has_texts else member.name, member) for member in kind]


def _literal(value: Any) -> tuple[str, Any]:
    if isinstance(value, Enum):
        return next(each for each in _enum(type(value)) if each[1] is value)
    return ("null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)), value


def _line(label: str) -> str:
    is_plain = bool(label) and label == " ".join(label.split()) and label.isprintable() and label[0] not in "\"'`{["
    return label if is_plain else _escaped(label)


def _escaped(text: str) -> str:
    """Return a text in quotes, with what does not print or would end it as JSON and GBNF both write it."""
    told = (char if char.isprintable() and char not in '"\\' else _code(char) for char in text)
    return f'"{"".join(told)}"'


def _code(char: str) -> str:
    return f"\\{char}" if char in '"\\' else f"\\u{ord(char):04x}" if ord(char) < 0x10000 else char


def labels_text(labels: Mapping[str, Any]) -> str:
    """Return the sentence that names the labels to a model."""
    if len(labels) > _MANY:
        return "Answer with one of these labels alone:\n" + "\n".join(f"- {label}" for label in labels)
    return f"Answer with one of: {', '.join(labels)}."


def grammar_of(labels: Mapping[str, Any]) -> str:
    """Return the grammar that allows one of the labels and nothing else.

    Source: GBNF, https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
    """
    return "root ::= " + " | ".join(map(_escaped, labels))
