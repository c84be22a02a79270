"""The part of a value that a trace store keeps: JSON data without secrets, long texts cut; or only size and hash."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import sys
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from SimpleLLMFunc.logger import PlainData, data_url_by_size, named_by_size, pairs_of, redact_head, render_arguments

_DEEPEST = 64
_MOST_ITEMS = 100_000
# Holds letters in both cases and digits: a hash and a DNA sequence do not match.
_BASE64 = re.compile(r"(?=.{0,200}[A-Z])(?=.{0,200}[a-z])(?=.{0,200}[0-9])[A-Za-z0-9+/_-]{2048}")
_COMPRESSED_FROM = 2048
"""Bytes; compressing shorter texts costs more time than it saves space."""


class Content:
    """Decides which part of a value is kept.

    Args:
        keep: False keeps sizes and hashes only.
        max_text: kept characters of one text.
    """

    def __init__(self, *, keep: bool, max_text: int) -> None:
        self.keep = keep
        self.max_text = max_text

    def kept(self, value: Any) -> Any:
        """Return the kept part of a value as JSON data; None stays None."""
        if value is None:
            return None
        return _Kept(self._text).of(value, 0) if self.keep else _omitted(value)

    def kept_fields(self, fields: Mapping[str, Any], *, always: Collection[str] = ()) -> dict[str, Any]:
        """Return the kept part of each field; names are kept, and the values of those in `always`."""
        if self.keep:
            return cast("dict[str, Any]", self.kept(fields))
        return {
            self.text(str(name)): self.data(value) if name in always else self.kept(value)
            for name, value in fields.items()
        }

    def packed(self, value: Any) -> str | bytes | None:
        """Return `kept(value)` in the form that the file has."""
        return None if value is None else pack(self.kept(value))

    def head(self, value: Any, limit: int) -> str:
        """Return the beginning of a text, redacted; empty where no content is kept."""
        if not self.keep or value is None:
            return ""
        return storable(redact_head(value if isinstance(value, str) else str(value), limit))

    def text(self, text: str) -> str:
        """Return a text that is always kept, such as code or a name: redacted and cut."""
        return storable(self._text(text))

    def data(self, value: Any) -> Any:
        """Return JSON data that is always kept, such as a schema or tools: redacted and cut."""
        return _Kept(self._text).of(value, 0)

    def snapshot(self, value: Any) -> Any:
        """Return a copy of a value, since a caller may change the original; texts are not copied.

        Cheap enough for an event loop: beyond some thousand items it holds the original itself.
        """
        return _Snapshot().of(value, 0)

    def _text(self, text: str) -> str:
        if (file := data_url_by_size(text)) is not None:
            return file
        if len(text) > 2048 and _BASE64.match(text):
            return named_by_size("base64", len(text) * 3 // 4)
        return redact_head(text, self.max_text)


class _Kept(PlainData):
    """All of a value as JSON data, each text as `Content` keeps it."""

    most_pairs = _MOST_ITEMS

    def __init__(self, text: Callable[[str], str]) -> None:
        super().__init__(sys.maxsize, _DEEPEST)
        self._text = text

    def of_text(self, text: str) -> str:
        """Return the kept part of a text."""
        return self._text(text)


class _Snapshot:
    """Copies containers until enough of them are copied."""

    def __init__(self) -> None:
        self.room = 5_000

    def of(self, value: Any, depth: int) -> Any:
        if not isinstance(value, Mapping | list | tuple) and (pairs := pairs_of(value)) is not None:
            value = dict(pairs)
        if not isinstance(value, dict | list | tuple) or depth >= _DEEPEST:
            return value
        self.room -= len(value)
        if self.room <= 0:
            return value
        if isinstance(value, dict):
            return {key: self.of(item, depth + 1) for key, item in value.items()}
        return [self.of(item, depth + 1) for item in value]


def pack(value: Any) -> str | bytes:
    """Return JSON data in the form that the file has: text, compressed where that helps."""
    text = storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    raw = text.encode()
    return zlib.compress(raw, 1) if len(raw) >= _COMPRESSED_FROM else text


def unpack(stored: str | bytes | None) -> Any:
    """Return the JSON data that `pack` was given.

    Raises:
        sqlite3.DatabaseError: it is damaged, where SQLite does not notice it.
    """
    try:
        return None if stored is None else json.loads(zlib.decompress(stored) if isinstance(stored, bytes) else stored)
    except (ValueError, TypeError, zlib.error) as error:
        raise sqlite3.DatabaseError(f"what a cell holds is damaged ({error})") from None


def storable(text: str) -> str:
    r"""Return a text that a file can hold: lone surrogates as ``\udc80``, which in JSON means the same."""
    return text.encode("utf-8", "backslashreplace").decode()


def is_omitted(value: Any) -> bool:
    """Say whether a content was not kept."""
    return isinstance(value, dict) and value.keys() == {"omitted"}


def _omitted(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=_name)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"omitted": {"chars": len(text), "sha256": digest}}


def _name(value: Any) -> str:
    return render_arguments({"": value}, 10_000)
