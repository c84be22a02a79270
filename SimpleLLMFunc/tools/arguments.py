"""The arguments of a tool call: the text a model wrote, read as a JSON object.

A call may have side effects, so it is read as it stands; `base/parsing` mends what is not quite JSON.
"""

from __future__ import annotations

import json
from typing import Any

from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.tools.schemas import ArgumentsError
from SimpleLLMFunc.type import without_surrogates


def read_arguments(text: str) -> dict[str, Any]:
    """Return the object that the text is; no text at all and ``null`` are the empty one.

    Raises:
        ArgumentsError: no JSON, or no object.
    """
    if not text.strip():
        return {}
    try:
        value = _DECODER.decode(text)
        if value is None:
            return {}
        if isinstance(value, dict):
            # Characters beyond ASCII come as they are or behind a backslash.
            cleaned: dict[str, Any] = value if "\\u" not in text and text.isascii() else _cleaned(value)
            return cleaned
        problem = ""
    except RecursionError:
        problem = " (nested too deeply)"
    except ValueError as error:
        problem = f" ({cut(str(error), 100)})"
    raise ArgumentsError([("", "a JSON object", cut(text, 80) + problem)])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        for key, item in pairs:
            if value[key] != item:
                raise ValueError(f"key {key!r} is given twice, with different values")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object)


def _cleaned(value: Any) -> Any:
    """Replace lone surrogates in all strings: they pass for text, and break every file they are written to."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {without_surrogates(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value
