"""What an MCP tool answered, as a value that our tools may return: text, JSON data, images, notes of the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.type import MAX_FILE_BYTES, ImgUrl

_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_MAX_NOTE_CHARS: Final = 500


def result_value(result: Mapping[str, Any]) -> Any:
    """Return the value of a result that is no error.

    Text is text. Structured content is its JSON data; the protocol has servers repeat it as text, and what only
    repeats is left out. Images are `ImgUrl` data parts. Of resources and links the text, or a note, remains.

    Args:
        result: as on the wire, with `content` and perhaps `structuredContent`.
    """
    parts = list(content_parts(result.get("content") or ()))
    texts = [part for part in parts if isinstance(part, str)]
    images = [part for part in parts if not isinstance(part, str)]
    value = _combined(texts, result.get("structuredContent"))
    if not images:
        return value
    if isinstance(value, str):
        return [*parts] if value else images
    return [value, *images]


def error_text(result: Mapping[str, Any]) -> str:
    """Return what a result that is an error says."""
    texts = [part for part in content_parts(result.get("content") or ()) if isinstance(part, str)]
    said = "\n".join(texts).strip()
    return said or json.dumps(result.get("structuredContent") or "the server gave no reason", ensure_ascii=False)


def _combined(texts: Sequence[str], structured: Any) -> Any:
    text = "\n".join(texts)
    if structured is None:
        return text
    # A value that is no object is wrapped: {"result": 3} and the text "3". A list may have a text for each item.
    is_wrapped = isinstance(structured, Mapping) and list(structured) == ["result"]
    for value in (structured["result"], structured) if is_wrapped else (structured,):
        one_by_one = isinstance(value, list) and len(value) == len(texts) and all(map(_is_same, texts, value))
        if one_by_one or _is_same(text, value):
            return value
    return f"{text}\n{json.dumps(structured, ensure_ascii=False)}" if text else structured


def _is_same(text: str, value: Any) -> bool:
    if text == value:
        return True
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(found == value) and isinstance(found, bool) == isinstance(value, bool)


def content_parts(content: Sequence[Any]) -> Iterator[str | ImgUrl]:
    """Yield what blocks of content say, as on the wire: their texts, images, and a note for each of the rest."""
    for block in content:
        kind = block.get("type")
        if kind == "text":
            yield str(block.get("text", ""))
        elif kind == "image":
            yield _image(block.get("mimeType"), block.get("data"))
        elif kind == "resource":
            yield _resource(block.get("resource") or {})
        elif kind == "resource_link":
            yield _note("link", block.get("title") or block.get("name"), block.get("uri"), block.get("description"))
        else:
            yield _note(kind or "content", block.get("mimeType"), _size(block.get("data")), "not shown")


def _image(mime: Any, data: Any) -> str | ImgUrl:
    if str(mime).lower() not in _IMAGE_TYPES:
        return _note("image", mime, _size(data), "not shown: no PNG, JPEG, GIF, WebP or BMP")
    if not isinstance(data, str) or not _BASE64.fullmatch(data):
        return _note("image", mime, "not shown: its data is not base64")
    if len(data) * 3 // 4 > MAX_FILE_BYTES:
        return _note("image", mime, _size(data), "not shown: too large")
    return ImgUrl(f"data:{str(mime).lower()};base64,{data}")


def _resource(resource: Mapping[str, Any]) -> str | ImgUrl:
    mime, uri, blob = resource.get("mimeType"), resource.get("uri"), resource.get("blob")
    if isinstance(resource.get("text"), str):
        return f"{_note('resource', uri, mime)}\n{resource['text']}"
    if str(mime).lower() in _IMAGE_TYPES:
        return _image(mime, blob)
    return _note("resource", uri, mime, _size(blob), "not shown")


def _note(*words: Any) -> str:
    return f"[{cut(', '.join(str(word) for word in words if word), _MAX_NOTE_CHARS)}]"


def _size(data: Any) -> str:
    if not isinstance(data, str):
        return ""
    size = len(data) * 3 // 4
    return f"{size} B" if size < 1000 else f"{round(size / 1000)} kB"
