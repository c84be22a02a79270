"""What several shapes of the wire have in common: fields as real servers send them, read as far as they make sense."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

MESSAGE_FIELDS = frozenset({
    "role", "content", "tool_calls", "refusal", "reasoning_content", "reasoning", "function_call",
})  # fmt: skip
"""Fields of a message, or of a piece of one, that are known; any other field goes back as it came."""

MOST = 2**53
"""Of tokens, and of seconds: beyond it a number is a mistake, and no float any more."""

_DEEPEST = 100
"""Levels of lists and objects in a field that goes back as it came."""

CALL_FIELDS = frozenset({"id", "type", "index", "function"})
"""The same of a tool call."""


_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """Return the text with halves of characters joined, and lone ones replaced by U+FFFD: no UTF-8 can hold them."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend(value: Any) -> Any:
    """Return JSON data with `without_surrogates` applied to every text."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [mend(item) for item in value]
    if isinstance(value, dict):
        return {mend(name): mend(item) for name, item in value.items()}
    return value


def arguments_text(arguments: Any, *, empty: str = "{}") -> str:
    """Return the arguments of a tool call as JSON text; `empty` for null and for the empty text."""
    if arguments is None or arguments == "":
        return empty
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def content_text(content: Any) -> str | None:
    """Return a content as text; a list of parts gives the text parts, joined."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    return str(content)


def thinking_in(message: Mapping[str, Any]) -> str | None:
    """Return the reasoning that a message shows: in its own field, or, as Mistral does, in parts of the content."""
    told = text_or_none(message.get("reasoning_content")) or text_or_none(message.get("reasoning"))
    parts = [part.get("thinking") for part in mappings(message.get("content")) if part.get("type") == "thinking"]
    return told or "".join(content_text(part) or "" for part in parts) or None


def extras(data: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the fields that are not `known`, fit to be sent back.

    A number that JSON cannot say becomes null, and so does what is nested too deep.
    """
    return {name: _sayable(value, 0) for name, value in data.items() if name not in known}


def _sayable(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return {name: _sayable(item, depth + 1) for name, item in value.items()} if depth < _DEEPEST else None
    if isinstance(value, list):
        return [_sayable(item, depth + 1) for item in value] if depth < _DEEPEST else None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, (list, tuple)) else []


def text_or_none(value: Any) -> str | None:
    """Return `value` where it is a text."""
    return value if isinstance(value, str) else None


_FINISH = {
    **dict.fromkeys(("length", "max_tokens", "model_length", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "sensitive", "safety", "refusal", "prohibited_content"), "content_filter"),
}
"""What cuts or blocks an answer, in the words of OpenAI, Mistral and Zhipu, and of gateways that pass on those of others."""


def finish_of(choice: Mapping[str, Any]) -> str | None:
    """Return why a choice ended: "length" or "content_filter" where a service says that in other words, else as it says."""
    reason = text_or_none(choice.get("finish_reason"))
    return _FINISH.get((reason or "").partition(":")[0].lower(), reason)


def present(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def index_of(data: Mapping[str, Any], position: int) -> int:
    """Return the index that `data` names, else its `position` in the list."""
    index = data.get("index")
    return index if isinstance(index, int) else position


def count(data: Any, name: str) -> int:
    """Return a number of things, from 0 up; 0 if there is no sensible one."""
    value = mapping(data).get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        return 0
    return int(value)
