"""Keys of rows and journal steps: a hash of the arguments as canonical text and of the function's definition."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.type import MULTIMODAL, Audio, File, ImgPath, fields_or_items, holds_multimodal

KEY_BYTES = 16

_FORMAT = 1
"""Changes when the key of the same row changes."""

_SCALARS = (dt.date, dt.time, dt.timedelta, Decimal, UUID, PurePath)


def version_of(definition: Mapping[str, Any]) -> bytes:
    """Return the version of a function: another one for other functions, and after a change."""
    return hashlib.blake2b(canonical({"format": _FORMAT, **definition}), digest_size=KEY_BYTES).digest()


def key_of(version: bytes, arguments: Any) -> bytes:
    """Return the key of a row: the same for the same arguments of the same function.

    Raises:
        UsageError: an argument that cannot be recognised when it comes again.
    """
    return hashlib.blake2b(canonical(arguments), key=version, digest_size=KEY_BYTES).digest()


def checksum_of(key: bytes, content: bytes) -> bytes:
    """Return the checksum that is kept with `content` under `key`."""
    return hashlib.blake2b(content, key=key, digest_size=8).digest()


def canonical(value: Any) -> bytes:
    """Return `value` as text that is the same whenever the value is; ASCII, so that any text can be said.

    Raises:
        UsageError: it holds something that has no such text.
    """
    return _written(value, _TOLD).encode()


def plain_text(value: Any) -> str:
    """Return `value` as JSON to look at: pictures and files by their path, what cannot be said as its `str`."""
    return _written(value, _SHOWN_PLAINLY)


def _written(value: Any, encoder: json.JSONEncoder) -> str:
    try:
        try:
            return encoder.encode(value)
        except TypeError:  # a key of a dict that JSON does not have
            return encoder.encode(_paired(value, encoder.default))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"an argument cannot be recognised when it comes again ({error}). Give plain data, models or dataclasses."
            if isinstance(value, dict)
            else f"{type(value).__name__} cannot be written down ({error})."
        ) from error


def _paired(value: Any, default: Callable[[Any], Any]) -> Any:
    """Return `value` with every dict whose keys are no texts as a list of pairs."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _paired(item, default) for key, item in value.items()}
        return [type(value).__name__, [[_paired(key, default), _paired(item, default)] for key, item in value.items()]]
    if isinstance(value, (list, tuple)):
        return [_paired(item, default) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return _paired(default(value), default)


def _told(value: Any) -> Any:
    """Return a value that JSON does not have as data that does not forget what it was.

    Raises:
        UsageError: nothing says what it is but its place in memory.
    """
    name = type(value).__qualname__
    if isinstance(value, MULTIMODAL):
        # What the model is shown counts, not where it lay.
        return [name, hashlib.blake2b(canonical(value.to_part()), digest_size=KEY_BYTES).hexdigest()]
    if (data := _data_of(value)) is not None:
        return [name, data[0]]
    text = str(value)
    if " at 0x" in text:
        raise UsageError(
            f"an argument of type {name} cannot be recognised when it comes again: its text is only its address in "
            "memory. Give plain data, or the type a __str__ that shows its content."
        )
    return [name, text]


def _shown(value: Any) -> Any:
    if isinstance(value, (ImgPath, Audio, File)):
        return {"path": str(value.path)}
    data = _data_of(value)
    return str(value) if data is None else data[0]


def _data_of(value: Any) -> tuple[Any] | None:
    """Return the data of a value that is nothing but data, in a tuple; None for anything else."""
    if isinstance(value, Enum):
        return (value.value,)
    if isinstance(value, BaseModel) and not holds_multimodal(value):
        try:
            return (value.model_dump(mode="json", warnings=False),)
        except (ValueError, TypeError, RecursionError):
            return None
    if isinstance(inside := fields_or_items(value), dict) and inside is not value:
        return (inside,)
    if isinstance(value, _SCALARS):
        return (str(value),)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return (bytes(value).hex(),)
    if isinstance(value, AbstractSet):
        return (sorted(_written(item, _TOLD) for item in value),)
    if isinstance(value, Mapping):
        return (dict(value),)
    if isinstance(value, Sequence):
        return (list(value),)
    for method in ("tolist", "item"):  # arrays and numbers of numpy and its like
        convert = getattr(value, method, None)
        if callable(convert):
            return (convert(),)
    return None


# Made once: making one takes as long as a short text does.
_TOLD = json.JSONEncoder(separators=(",", ":"), default=_told)
_SHOWN_PLAINLY = json.JSONEncoder(separators=(",", ":"), default=_shown)
