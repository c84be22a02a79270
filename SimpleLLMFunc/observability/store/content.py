"""What a trace store keeps of a value: JSON data without secrets, long texts cut; or only its size and its hash."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel

from SimpleLLMFunc.logger import MASK, SHORTEST_SECRET, redact, redact_head, render_arguments
from SimpleLLMFunc.type import Audio, File, ImgPath, ImgUrl

_DEEPEST = 64
_MOST_ITEMS = 100_000
_DATA_URL = re.compile(r"data:(?P<kind>[a-z]{1,20})/[^,;\s]{0,80}(?:;[^,;\s]{0,80}){0,4};base64,", re.IGNORECASE)
# Of letters in both cases and digits: neither a hash nor a sequence of bases.
_BASE64 = re.compile(r"(?=.{0,200}[A-Z])(?=.{0,200}[a-z])(?=.{0,200}[0-9])[A-Za-z0-9+/_-]{2048}")
_COMPRESSED_FROM = 2048
"""Bytes; compressing shorter texts takes more time than it saves room."""

_SIMPLE = frozenset({str, bool, int, float})
"""What nobody can change."""

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


class Content:
    """Decides what is kept.

    Args:
        keep: False keeps sizes and hashes only.
        max_text: characters of one text that are kept.

    Attributes:
        prompts: what the prompts of this batch came to, by their text: as stored, and its digest.
    """

    def __init__(self, *, keep: bool, max_text: int) -> None:
        self.keep = keep
        self.max_text = max_text
        self._redacted: dict[str, str] = {}
        self.prompts: dict[str, tuple[str | bytes, str]] = {}

    def begin_batch(self) -> None:
        """Forget what texts came to: secrets may have become known meanwhile."""
        self._redacted.clear()
        self.prompts.clear()

    def kept(self, value: Any) -> Any:
        """Return what is kept of a value: JSON data; None stays None."""
        if value is None:
            return None
        return self._plain(value, 0) if self.keep else _omitted(value)

    def kept_fields(self, fields: Mapping[str, Any], *, always: Collection[str] = ()) -> dict[str, Any]:
        """Return what is kept of each of them; the names stay, and the values of those in `always`."""
        if self.keep:
            return cast("dict[str, Any]", self.kept(fields))
        return {
            self.text(str(name)): self.data(value) if name in always else self.kept(value)
            for name, value in fields.items()
        }

    def packed(self, value: Any) -> str | bytes | None:
        """Return `kept(value)` as it stands in the file."""
        return None if value is None else pack(self.kept(value))

    def head(self, value: Any, limit: int) -> str:
        """Return the beginning of a text for a list, on which nothing is kept but it; empty where nothing may be."""
        if not self.keep or value is None:
            return ""
        return storable(redact_head(value if isinstance(value, str) else str(value), limit))

    def text(self, text: str) -> str:
        """Return a text that is code or a name, and always kept: redacted and cut."""
        return storable(self._text(text))

    def about(self, text: str) -> str:
        """Return a text that may quote content: redacted, and not at all where no content is kept."""
        return self.text(text) if self.keep else ""

    def data(self, value: Any) -> Any:
        """Return JSON data that is code (a schema, tools), and always kept: redacted and cut."""
        return self._plain(value, 0)

    def snapshot(self, value: Any) -> Any:
        """Return a value that stays as it is now, for somebody may change the original; its texts are not copied.

        Cheap enough for an event loop: beyond some thousand items the original itself is kept.
        """
        return value if value is None or type(value) in _SIMPLE else _Snapshot().of(value, 0)

    def _plain(self, value: Any, depth: int) -> Any:
        match value:
            case str():
                return self._text(value)
            case None | bool():
                return value
            case int():
                return int(value) if -(1 << 1023) < value < (1 << 1023) else f"<int of {value.bit_length()} bits>"
            case float():
                return float(value) if math.isfinite(value) else repr(float(value))
        if depth >= _DEEPEST:
            return "…"
        if isinstance(value, Mapping):
            pairs = [(str(key), item) for key, item in list(value.items())[:_MOST_ITEMS]]
            return {
                self._text(name): MASK
                if isinstance(item, str) and item and is_secret_name(name)
                else self._plain(item, depth + 1)
                for name, item in pairs
            }
        if isinstance(value, list | tuple):
            return [self._plain(item, depth + 1) for item in list(value)[:_MOST_ITEMS]]
        if isinstance(value, BaseModel):
            return self._plain(dict(value), depth)
        if _has_plain_fields(value):
            return self._plain({name: getattr(value, name, None) for name in _fields(value)}, depth)
        # Files, dates, sets, objects of the user's: as the log shows them, their own text cut before it.
        try:
            return json.loads(render_arguments({"": value}, self.max_text * 8 + 1000))[""]
        except ValueError:  # cut
            return f"<{type(value).__name__}>"

    def _text(self, text: str) -> str:
        # A prompt stands in the messages and in the request, of this run and of the next: redacted once.
        found = self._redacted.get(text)
        if found is None:
            found = self._redacted[text] = self._looked_at(text)
        return found

    def _looked_at(self, text: str) -> str:
        if len(text) < SHORTEST_SECRET and text.isidentifier():
            return text
        data = _DATA_URL.match(text)
        if data is not None:
            return _named_by_size(data["kind"].lower(), (len(text) - data.end()) * 3 // 4)
        if len(text) > 2048 and _BASE64.match(text):
            return _named_by_size("base64", len(text) * 3 // 4)
        return redact_head(text, self.max_text)


class _Snapshot:
    """Copies containers until enough of them are copied."""

    def __init__(self) -> None:
        self.room = 5_000

    def of(self, value: Any, depth: int) -> Any:
        if type(value) in _SIMPLE or depth >= _DEEPEST or self.room <= 0:
            return value
        if isinstance(value, dict):
            self.room -= len(value)
            return {key: self.of(item, depth + 1) for key, item in value.items()} if self.room > 0 else value
        if isinstance(value, list | tuple):
            self.room -= len(value)
            return [self.of(item, depth + 1) for item in value] if self.room > 0 else value
        if isinstance(value, BaseModel):
            return self.of(dict(value), depth + 1)
        if _has_plain_fields(value):
            return self.of({name: getattr(value, name, None) for name in _fields(value)}, depth + 1)
        return value


def _has_plain_fields(value: Any) -> bool:
    # Files are shown by their size instead.
    return dataclasses.is_dataclass(value) and not isinstance(value, type | ImgUrl | ImgPath | Audio | File)


def _fields(value: Any) -> Iterator[str]:
    return (field.name for field in dataclasses.fields(value) if field.repr)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Say whether what stands under this name is a secret, as the log has it."""
    if len(name) > 100:
        return False
    probe = f"{name}={'x8' * 6}"
    return redact(probe) != probe or name.lower() in {"authorization", "cookie", "set-cookie"}


def pack(value: Any) -> str | bytes:
    """Return JSON data as it stands in the file: text, compressed where that helps."""
    text = storable(_encoded(value))
    if len(text) * 4 < _COMPRESSED_FROM:
        return text
    raw = text.encode()
    return zlib.compress(raw, 1) if len(raw) >= _COMPRESSED_FROM else text


def unpack(stored: str | bytes | None) -> Any:
    """Return the JSON data that `pack` was given."""
    if stored is None:
        return None
    return json.loads(zlib.decompress(stored) if isinstance(stored, bytes) else stored)


def storable(text: str) -> str:
    r"""Return a text that a file can hold: half characters as ``\udc80``, which in JSON means the same."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def _omitted(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=_name)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"omitted": {"chars": len(text), "sha256": digest}}


def _name(value: Any) -> str:
    try:
        return render_arguments({"": value}, 10_000)
    except Exception:  # noqa: BLE001 - an object of the user's may fail at showing itself
        return f"<{type(value).__name__}>"


def _named_by_size(kind: str, size: int) -> str:
    return f"<{kind} {size} B>" if size < 1000 else f"<{kind} {round(size / 1000)} kB>"
