"""Conversations in several forms → records of messages with a role and a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.logger import push_warning

_KNOWN_ROLES: Final = frozenset({"user", "assistant", "tool", "system", "developer"})


def conversation_records(
    conversation: Iterable[Any], *, roles: Sequence[str] = ("user", "assistant"), latest: int = 0
) -> list[list[dict[str, str]]]:
    """Return one list of ``{"role": …, "content": …}`` messages for each record, oldest first.

    A record is one message, or a question with its answer. What has no text is left out, and so is every role that is
    not asked for: instructions do not come out of a history. Neither does what is no record at all, with a warning.

    Args:
        conversation: ``{"role": …, "content": …}`` items, messages of a chat (parts of text are joined, images are
            named), or ``{"question": …, "answer": …}`` items.
        roles: that are kept, spelled exactly so.
        latest: keep that many records at the end; 0 keeps all.
    """
    records: list[list[dict[str, str]]] = []
    unusable = 0
    for item in conversation:
        messages = _messages(item)
        unusable += messages is None
        kept = [message for message in messages or () if message["role"] in roles and message["content"].strip()]
        if kept:
            records.append(kept)
    if unusable:
        push_warning(f"left out of the conversation: {counted(unusable, 'item')} that cannot be read as messages.")
    return records[-latest:] if latest > 0 else records


def _messages(item: Any) -> list[dict[str, str]] | None:
    """Return the messages of a record; None if this is no record."""
    if not isinstance(item, Mapping):
        return None
    role = item.get("role")
    if isinstance(role, str) and role in _KNOWN_ROLES:
        return [{"role": role, "content": _text(item.get("content"))}]
    if "role" not in item and ("question" in item or "answer" in item):
        said = (("user", item.get("question")), ("assistant", item.get("answer")))
        return [{"role": role, "content": _text(content)} for role, content in said]
    return None


def _text(content: Any) -> str:
    """Return what of a content can be read: its text, and the kind of every other part."""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return ""
    return "\n".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return part if isinstance(part, str) else ""
    text = part.get("text")
    return text if isinstance(text, str) else f"[{str(part.get('type', 'part')).removesuffix('_url')}]"
