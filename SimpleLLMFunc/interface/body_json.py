"""JSON as it goes over the wire: one encoder, one decoder, neither of which stumbles over what models write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.runtime import LARGE
from SimpleLLMFunc.type import mend, without_surrogates

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_PUNCTUATION = 8  # a value and its name take about as much as their text, too
MAX_DEPTH = 200
"""Levels of nesting that are read: what the fast reader takes, and far more than any service sends."""


def encode(body: Any) -> bytes:
    """Return `body` as JSON in UTF-8; lone surrogates become U+FFFD.

    Raises:
        UsageError: it holds something JSON cannot say.
    """
    try:
        text = _ENCODER.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the request cannot be written as JSON: {error}. Give plain data.") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


def decode(data: bytes, *, mended: bool = True, charset: str = "") -> Any:
    """Return the value that `data` holds.

    What is not UTF-8 is read in the `charset` that it was declared to be in, or replaced; lone surrogates become U+FFFD (not `mended`, they stay: the other half may come with
    the next chunk). Data nested deeper than `MAX_DEPTH` levels is refused:
    code that reads it recursively would exhaust Python's stack.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return from_json(data)
    except ValueError:
        pass
    # The strict, fast reader refuses lone surrogates, and bytes that are not UTF-8. Slower, but it reads them.
    text = data.decode("utf-8-sig", "replace")
    if charset and "\ufffd" in text:
        with suppress(LookupError, ValueError):  # an unknown charset, or a wrong one
            text = data.decode(charset)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos}"
    except (RecursionError, ValueError):  # a number of 5,000 digits is the other ValueError
        problem = "nested too deep, or a number too long"
    else:
        if not _is_deep(value):
            return mend(value) if mended and "\\u" in text else value
        problem = "nested too deep"
    # Outside of the except block: the foreign error holds the whole text, secrets included.
    raise ValueError(problem)


def decoded(data: bytes, otherwise: Any) -> Any:
    """Return the value that `data` holds, or `otherwise` where that is not JSON."""
    try:
        return decode(data)
    except ValueError:
        return otherwise


def text_size(value: Any) -> int:
    """Return about how many characters JSON data takes when it is written, counted until they are more than `LARGE`."""
    size, rest = 0, [value]
    while rest and size <= LARGE:
        item = rest.pop()
        if isinstance(item, str):
            size += len(item)
            continue
        size += _PUNCTUATION
        if isinstance(item, list):
            rest.extend(item)
        elif isinstance(item, Mapping):
            rest.extend(item.values())
    return size


def _is_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        lists = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [inner for items in lists for inner in items]
    return bool(level)


def head_of(body: bytes, charset: str = "") -> str:
    """Return how a body begins: more of it than is kept, so that no secret is cut in two."""
    text = body[:8000].decode("utf-8", "replace")
    if charset and "\ufffd" in text:
        with suppress(LookupError, ValueError):  # a charset that Python does not know
            text = body[:8000].decode(charset, "replace")
    return text.strip()
