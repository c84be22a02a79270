"""What a tool returned, as the content a model reads: text, JSON, or parts with images; never longer than allowed."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base.templates import enclosed, shortened
from SimpleLLMFunc.tools import wire_name
from SimpleLLMFunc.type import MULTIMODAL, ContentPart, Multimodal, Text, holds_multimodal, without_surrogates
from SimpleLLMFunc.utils import in_one_order, settled

_MAX_NESTED_LISTS: Final = 3
_MAX_DEPTH: Final = 50
_MAX_NODES: Final = 200_000
_MAX_BITS: Final = 10_000


def render_result(value: Any, max_chars: int, *, untrusted: str | None = None) -> str | list[ContentPart]:
    """Return what the model reads of a tool's result.

    Text as it is; images and the like as parts; everything else as JSON, or as its text where it is no JSON.

    Args:
        value: what the tool returned.
        max_chars: of all text together; more is cut, and a note inside the limit says so. Images do not count.
        untrusted: the tool's name if its text comes from outside: it is then put in a delimited block.

    Raises:
        FileNotFoundError: an `ImgPath` is gone by now.
        ValueError: it has become something else.
    """
    heading = f"Data from the tool {wire_name(untrusted)}" if untrusted else ""

    def shown(text: str, limit: int) -> str:
        return enclosed(text, limit, heading=heading, tag="tool_data") if untrusted else shortened(text, limit)

    kept: list[ContentPart] = []
    left = room = max_chars
    last: ContentPart = {"type": "text", "text": ""}
    texts: list[str] = []  # of the last part with text, and what found no room after it
    for part in _parts(value):
        if part["type"] == "text":
            text = without_surrogates(part["text"])
            if left <= 0:
                texts.append(text)
                continue
            room, texts, last = left, [text], part
            part["text"] = shown(text, room)
            left -= len(part["text"])
        kept.append(part)
    if len(texts) > 1:
        last["text"] = shown("".join(texts), room)  # its note tells of them all
    if all(part["type"] == "text" for part in kept) and len(kept) < 2:
        return str(kept[0]["text"]) if kept else ""
    return kept


def _parts(value: Any, depth: int = 0) -> Iterator[ContentPart]:
    if isinstance(value, str):
        yield {"type": "text", "text": str(value)}
    elif isinstance(value, MULTIMODAL):
        yield value.to_part()
    elif isinstance(value, (list, tuple)) and _has_media(value, depth):
        for item in value:
            yield from _parts(item, depth + 1)
    else:
        plain = _Plain()
        data = plain.of(value, 0)
        # A single object without a JSON form is its text, without quotes around it.
        yield {"type": "text", "text": data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}
        for shown in plain.media:
            yield shown.to_part()


def _has_media(value: Any, depth: int) -> bool:
    """Whether the value is a picture or the like, or a list or tuple that holds one, a few levels down."""
    if not isinstance(value, (list, tuple)):
        return isinstance(value, MULTIMODAL)
    return depth < _MAX_NESTED_LISTS and any(_has_media(item, depth + 1) for item in value)


class _Plain:
    """Turns a value into JSON data; images inside it are named in their place and gathered."""

    def __init__(self) -> None:
        self.media: list[Multimodal] = []
        self._open: set[int] = set()
        self._nodes = 0

    def of(self, value: Any, depth: int) -> Any:
        self._nodes += 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self.of(value.value, depth)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (int, float)):
            return _number(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"[{len(value)} bytes of binary data, not shown]"
        if isinstance(value, Text):
            return value.content
        if isinstance(value, MULTIMODAL):
            self.media.append(value)
            return f"[{type(value).__name__} {len(self.media)}]"
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES or id(value) in self._open:
            return "…"
        self._open.add(id(value))
        try:
            return self._of_container(value, depth + 1)
        finally:
            self._open.discard(id(value))

    def _of_container(self, value: Any, depth: int) -> Any:
        if isinstance(value, BaseModel):
            return self.of(dict(value), depth) if holds_multimodal(value) else _of_other(value)
        if isinstance(value, tuple) and callable(as_dict := getattr(value, "_asdict", None)):
            value = as_dict()
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return {_key(key): self.of(item, depth) for key, item in value.items()}
        if isinstance(value, (Sequence, AbstractSet)):
            items = [self.of(item, depth) for item in value]
            return in_one_order(items) if isinstance(value, (set, frozenset)) else items
        # Arrays and scalars of numpy and its kin.
        if callable(convert := getattr(value, "tolist", None)):
            return self.of(convert(), depth)
        return _of_other(value)


def _number(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    # Turning a huge integer into digits takes time, and Python refuses it.
    return int(value) if value.bit_length() <= _MAX_BITS else f"[an integer of {value.bit_length()} bits]"


def _of_other(value: Any) -> Any:
    try:
        if isinstance(value, BaseModel):
            # Not `mode="json"`, which stops at the first field that is no JSON.
            dumped = value.model_dump(warnings=False)
            return settled(to_jsonable_python(dumped, fallback=_text_of, bytes_mode="base64"), dumped)
        # Reading an iterator here might never end.
        return _text_of(value) if isinstance(value, Iterator) else to_jsonable_python(value)
    except Exception:  # noqa: BLE001 - a serializer may raise anything; what is no JSON is shown as its text
        return _text_of(value)


def _text_of(value: Any) -> str:
    try:
        return f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide that there was a result
        return f"[{type(value).__name__}]"


def _key(key: Any) -> str:
    plain = key.value if isinstance(key, Enum) else key
    return plain if isinstance(plain, str) else _text_of(plain)
