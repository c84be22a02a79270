"""Text and data for logs and stores: secrets masked, control characters escaped, long values cut, images named by size."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re
from collections import deque
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import chain, islice
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from SimpleLLMFunc.errors import BODY_LIMIT, cut
from SimpleLLMFunc.logger.known import MASK, SHORTEST_SECRET, end_before_secret, mask_known
from SimpleLLMFunc.logger.looks import is_secret_name, mask_looks
from SimpleLLMFunc.type import Audio, File, ImgPath, ImgUrl

# --- secrets -------------------------------------------------------------------------------------------------


def redact(text: str) -> str:
    """Return `text` with secrets masked: those of `remember_secret`, and what looks like one.

    Such as: ``sk-…`` and similar keys, tokens after ``Bearer`` and ``Authorization``, values of ``api_key=``,
    ``password:`` and the like, user and password of a URL, keys in a query, private keys.
    """
    return mask_looks(mask_known(text))


_SECRET_PART = re.compile(
    r"key|token|secret|passw|credential|auth|signature|cookie|^(?:sig|code|pwd|session)$", re.IGNORECASE
)
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def looks_secret(name: str, value: str) -> bool:
    """Say whether a header or a query parameter is a secret: by its name, or because it is long and random."""
    if len(value) < SHORTEST_SECRET:
        return False
    return bool(_SECRET_PART.search(name) or _RANDOM.search(value)) or redact(value) != value


HTTP_LOGGERS = (
    *("httpx", "httpx2"),
    *(f"{name}.{part}" for name in ("httpcore", "httpcore2") for part in ("connection", "http11", "http2", "proxy")),
)
"""Loggers of HTTP libraries that log addresses and headers of our requests."""


class RedactingFilter(logging.Filter):
    """Removes secrets from the records of another library."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record pass, redacted."""
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - the handlers report a record that cannot be rendered
            return True
        if (redacted := redact(text)) != text:
            record.msg, record.args = redacted, ()
        return True


def redact_logs_of(*names: str) -> None:
    """Remove secrets from the records of these loggers from now on."""
    for name in names:
        logger = logging.getLogger(name)
        if not any(isinstance(each, RedactingFilter) for each in logger.filters):
            logger.addFilter(RedactingFilter())


BEYOND = 10_000
"""Characters that are searched beyond the shown ones."""


def redact_head(text: str, limit: int) -> str:
    """Return the first `limit` characters of `text`, redacted; the cut leaves no half of a secret."""
    if len(text) <= limit:
        return redact(text)
    end = end_before_secret(text, limit)
    return redact(text[:end]) + ("…" if end == limit else f"{MASK}…")


def shown_text(text: str, limit: int = BODY_LIMIT) -> str:
    """Return `text` redacted and cut to `limit` characters; the cost does not grow with the rest."""
    # Redacted before the cut, since no pattern recognises half a key. Of a long text only the shown part is searched, and
    # the longest key that may begin in it.
    head = text[: limit + BEYOND]
    shown = redact(head)
    return f"{shown}…" if len(head) < len(text) and len(shown) < limit else cut(shown, limit)


# --- control characters --------------------------------------------------------------------------------------

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 and C1: line breaks, terminal escapes, NUL
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks: text that reads other than it is
    "\u2028\u2029\ufeff\ufff9-\ufffb"  # line separators, byte order mark, annotations
    "\ud800-\udfff]"  # half a character: no file can hold it
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_control(text: str) -> str:
    r"""Return `text` on one line, its control characters, bidirectional marks and lone surrogates as ``\n``, ``\u202e``."""
    if text.isprintable():
        return text
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


# --- arguments -----------------------------------------------------------------------------------------------

_DEEPEST = 8

_MOST_CELLS = 100
"""Most cells of an array or a frame that is shown by its repr; a larger one is named by its size."""

_LISTED = (list, tuple, set, frozenset, deque, KeysView, ValuesView, ItemsView)

_DATA_URL = re.compile(r"data:(?P<kind>[a-z]{1,20})/[^,;\s]{0,80}(?:;[^,;\s]{0,80}){0,4};base64,", re.IGNORECASE)
_IMAGE_HEADS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")


def shown_data(value: Any, limit: int = 2000, deepest: int = _DEEPEST) -> Any:
    """Return `value` as JSON data: redacted, images as ``<image 34 kB>``, values without a JSON form by their repr.

    Args:
        value: anything; no value raises.
        limit: about the most characters of all texts; an ellipsis stands for the rest.
        deepest: shown levels of lists and objects.
    """
    return PlainData(limit, deepest).of(value, 0)


def shown_value(value: Any, limit: int) -> str:
    """Return the repr of `value`, redacted and cut to `limit` characters; a large value as JSON."""
    if holds_little(value):
        return shown_text(repr(value), limit)
    return cut(json.dumps(shown_data(value, limit), ensure_ascii=False), limit)


def render_arguments(arguments: Mapping[str, Any], limit: int = 2000) -> str:
    """Return `arguments` as JSON text for a log: redacted, images as ``<image 34 kB>``, at most `limit` characters.

    No value raises: one without a JSON form is shown by its repr, one whose repr fails by its type. A cut text ends in an
    ellipsis and is not complete JSON.
    """
    return cut(escape_control(json.dumps(PlainData(limit).of_pairs(arguments.items(), 0), ensure_ascii=False)), limit)


_OF_A_VALUE = 10
"""Characters that each value counts for, in addition to its text."""


def holds_little(value: Any, room: int = BEYOND) -> bool:
    """Say whether `value` holds at most about `room` characters, so that its repr is cheap.

    Looks into Python's containers, dataclasses and models, until `room` is used up.
    """
    waiting = [value]
    while waiting and room >= 0:
        item = waiting.pop()
        room -= _OF_A_VALUE
        most = max(room, 0) // _OF_A_VALUE + 1
        if isinstance(item, (str, bytes, bytearray)):
            room -= len(item)
        else:
            try:
                waiting += islice(_held(item), most)
            except Exception:  # noqa: BLE001 - a user's class may raise anything, so its repr may too
                return False
    return room >= 0


def _held(value: Any) -> Iterable[Any]:
    """Return the contents of a container or the fields of an object; nothing for any other value."""
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    return chain.from_iterable(pairs_of(value) or ())


class PlainData:
    """Turns values into JSON data, and stops when enough characters have been gathered; `of_text` shows a text."""

    most_pairs = 10_000

    def __init__(self, room: int, deepest: int = _DEEPEST) -> None:
        self.room = room
        self.deepest = deepest

    def of(self, value: Any, depth: int) -> Any:
        """Return a value as JSON data; one that fails in its repr by its type."""
        try:
            return self._of(value, depth)
        except Exception:  # noqa: BLE001 - a user's class may raise anything, and the log must not fail
            return f"<{type(value).__name__}>"

    def _of(self, value: Any, depth: int) -> Any:
        match value:
            case Enum():
                return self.of(value.value, depth)
            case str():
                return self.of_text(value)
            case None | bool() | int() | float() | bytes() | bytearray() | memoryview():
                return _scalar(value)
        pairs = pairs_of(value)
        if pairs is None and not isinstance(value, _LISTED):
            return self.of_text(_one_text(value))
        if depth >= self.deepest or self.room <= 0:
            return "…"
        return self.of_items(value, depth) if pairs is None else self.of_pairs(pairs, depth)

    def of_text(self, text: str) -> str:
        """Return the shown form of a text."""
        text = data_url_by_size(text) or text
        text = shown_text(text, max(self.room, 1))
        self.room -= len(text)
        return text

    def of_items(self, items: Iterable[Any], depth: int) -> list[Any]:
        """Return the items of a list."""
        shown: list[Any] = []
        for item in items:
            if self.room <= 0:
                shown.append("…")
                break
            self.room -= 2
            shown.append(self.of(item, depth + 1))
        return shown

    def of_pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        """Return named values; values behind names of secrets are masked."""
        shown: dict[str, Any] = {}
        for key, value in islice(pairs, self.most_pairs):
            if self.room <= 0:
                shown["…"] = "…"
                break
            name = self.of_text(key if isinstance(key, str) else str(self.of(key, depth)))
            self.room -= 4
            secret = isinstance(key, str) and is_secret_name(key) and isinstance(value, str | bytes | list | tuple)
            shown[name] = MASK if secret and value else self.of(value, depth + 1)
        return shown


def _scalar(value: float | bytes | bytearray | memoryview | None) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            # Above 4300 digits, Python refuses to write an int in decimal.
            return int(value) if value.bit_length() < 4096 else f"<int of {value.bit_length()} bits>"
        case float():
            return float(value) if math.isfinite(value) else repr(float(value))
    return named_by_size("image" if bytes(value[:4]).startswith(_IMAGE_HEADS) else "bytes", memoryview(value).nbytes)


def pairs_of(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return the names and values inside `value`; None for a value without names."""
    match value:
        case Mapping():
            return value.items()
        case BaseModel():
            return value
        case ImgUrl() | ImgPath() | Audio() | File():
            return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = (field.name for field in dataclasses.fields(value) if field.repr)
        return ((name, getattr(value, name, None)) for name in shown)
    return None


def _one_text(value: Any) -> str:
    match value:
        case ImgUrl():
            return value.url
        case ImgPath() | Audio() | File():
            return _file_by_size(value)
        case PurePath() | date() | time() | timedelta() | Decimal() | UUID():
            return str(value)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and math.prod(shape) > _MOST_CELLS:
        return f"<{type(value).__name__} {'x'.join(map(str, shape))}>"
    # The repr of an object is seldom larger than its contents.
    is_short = holds_little(value) and holds_little(getattr(value, "__dict__", None))
    return repr(value) if is_short else f"<{type(value).__name__}>"


def _file_by_size(value: ImgPath | Audio | File) -> str:
    kind = "image" if isinstance(value, ImgPath) else type(value).__name__.lower()
    try:
        return named_by_size(kind, value.path.stat().st_size)
    except OSError:  # gone since it was checked; sending it will say so
        return repr(value)


def data_url_by_size(text: str) -> str | None:
    """Return the placeholder of the file in a ``data:`` URL; None for any other text."""
    data = _DATA_URL.match(text)
    return named_by_size(data["kind"].lower(), (len(text) - data.end()) * 3 // 4) if data else None


def named_by_size(kind: str, size: int) -> str:
    """Return the placeholder of a file's bytes, such as ``<image 34 kB>``."""
    return f"<{kind} {size} B>" if size < 1000 else f"<{kind} {round(size / 1000)} kB>"
