"""JSON as it goes over the wire: one encoder, one decoder, neither of which stumbles over what models write."""

from __future__ import annotations

import json
import marshal
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json, to_json

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.runtime import Workers
from SimpleLLMFunc.type import without_surrogates

__all__ = ["decode", "decode_large", "encode", "is_large", "is_long", "is_long_body", "mend", "off_loop", "plain_size"]

T = TypeVar("T")

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SCALARS = frozenset({str, int, bool, type(None)})
_LARGE = 256 * 1024
"""Bytes or characters; a longer text is read and written in a worker thread."""

_NOT_PLAIN = -1
_REPEATED = frozenset({"tools", "response_format"})
"""Fields of a body that are the same from one request to the next."""

_MOST_KNOWN = 64
_LONGEST_KNOWN = 64 * 1024

_known: dict[bytes, int] = {}
"""The sizes of such fields, by what `marshal` makes of them: that is the same only for the same values of the same types."""

_workers = Workers(2)


def encode(body: Any, size: int | None = None) -> bytes:
    """Return `body` as JSON in UTF-8; lone surrogates become U+FFFD.

    Args:
        body: JSON data.
        size: what `plain_size` says of it, where that is known.

    Raises:
        UsageError: it holds something JSON cannot say.
    """
    if (plain_size(body) if size is None else size) != _NOT_PLAIN:
        try:
            return to_json(body)
        except (ValueError, RecursionError):
            pass  # lone surrogates, a nesting too deep: the slow writer replaces the ones and tells of the other
    try:
        text = _ENCODER.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the request cannot be written as JSON: {error}. Give plain data.") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


class _NotPlainError(Exception):
    """A value is not JSON data and nothing else."""


def plain_size(value: Any) -> int:
    """Return how many characters the texts in JSON data hold, -1 where a value is not JSON data and nothing else.

    The fast writer, eight times as fast, would take much more than JSON data.
    """
    try:
        if type(value) is not dict or _REPEATED.isdisjoint(value):
            return _size_of(value)
        size = 0
        for name, item in value.items():
            if type(name) is not str:
                return _NOT_PLAIN
            if type(item) is str:
                size += len(item)
            else:
                size += _size_of_known(item) if name in _REPEATED else _size_of(item)
        return size
    except (_NotPlainError, RecursionError):
        return _NOT_PLAIN


def _size_of(value: Any) -> int:
    kind, size = type(value), 0
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise _NotPlainError
            size += len(item) if type(item) is str else _size_of(item)
        return size
    if kind is list:
        for item in value:
            if type(item) is dict:  # as above, without a call for each message
                for key, held in item.items():
                    if type(key) is not str:
                        raise _NotPlainError
                    size += len(held) if type(held) is str else _size_of(held)
            else:
                size += len(item) if type(item) is str else _size_of(item)
        return size
    if kind is str:
        return len(value)
    if kind in _SCALARS or (kind is float and math.isfinite(value)):
        return 0
    raise _NotPlainError


def _size_of_known(value: Any) -> int:
    """Return what `_size_of` does; that of a tool's schema is looked up, which takes half as long as to walk it."""
    try:
        key = marshal.dumps(value)
    except ValueError:  # it is not of the built-in types alone, or nested too deep
        return _size_of(value)
    size = _known.get(key)
    if size is None:
        size = _size_of(value)
        if len(key) <= _LONGEST_KNOWN:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = size
    return size


def decode(data: bytes, *, mended: bool = True) -> Any:
    """Return the value that `data` holds.

    What is not UTF-8 is replaced, lone surrogates become U+FFFD (not `mended`, they stay: the other half may come with
    the next chunk); a nesting too deep is an error like any other.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return from_json(data)
    except ValueError:
        pass
    # The strict, fast reader refuses lone surrogates, and bytes that are not UTF-8. Slower, but it reads them.
    text = data.decode("utf-8-sig", "replace")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos}"
    except (RecursionError, ValueError):  # a number of 5,000 digits is the other ValueError
        problem = "nested too deep, or a number too long"
    else:
        return mend(value) if mended and "\\u" in text else value
    # Outside of the except block: the foreign error holds the whole text, and whatever secret stands in it.
    raise ValueError(problem)


async def decode_large(data: bytes) -> Any:
    """Return what `decode` does; long data are read in a worker thread, so that other calls go on.

    Raises:
        ValueError: it is not JSON.
    """
    return await _workers.run(decode, data) if is_large(data) else decode(data)


def is_large(data: bytes) -> bool:
    """Whether `decode_large` reads it in a worker thread."""
    return len(data) > _LARGE


def is_long(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the messages hold so much that writing them would hold up the event loop."""
    size = 0
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            size += len(content)
        elif isinstance(content, list):
            size += sum(_text_size(part) for part in content if isinstance(part, dict))
        if size > _LARGE:
            return True
    return False


def is_long_body(body: Mapping[str, Any], size: int) -> bool:
    """Whether a body holds so much that writing it would hold up the event loop; `size` is what `plain_size` says of it."""
    return is_long(body["messages"]) if size == _NOT_PLAIN else size > _LARGE


def _text_size(part: dict[str, Any]) -> int:
    """Return the characters of a part of a message: of its text, or of what an image or a file holds."""
    inner = (value for held in part.values() if isinstance(held, dict) for value in held.values())
    return sum(len(value) for value in (*part.values(), *inner) if isinstance(value, str))


async def off_loop(function: Callable[..., T], *args: Any) -> T:
    """Run `function`, which reads or writes something long, in a worker thread and return its result."""
    return await _workers.run(function, *args)


def mend(value: Any) -> Any:
    """Return JSON data with `without_surrogates` applied to every text."""
    # No deeper than the JSON reader itself could go.
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [mend(item) for item in value]
    if isinstance(value, dict):
        return {mend(name): mend(item) for name, item in value.items()}
    return value
