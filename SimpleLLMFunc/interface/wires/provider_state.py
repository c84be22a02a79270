"""What a service wants back with an assistant's message, and what only its wire can say; pure.

It stands on the message under ``"provider_state"``, as JSON data: ``{"wire", "service", "items"}``, and ``"prefix"``
where the service binds it to all that stands before it. It goes out to the same wire and service only. What else the
service tells of the message (Gemini's sources) stands under ``"about"`` and does not go back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any, cast

from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.type import Message

STATE = "provider_state"
"""The field of the message."""

_json_of = json.JSONEncoder(separators=(",", ":")).encode


def state_of(
    wire: str, service: str, items: list[Any], prefix: str = "", about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the state for a message.

    Args:
        wire: the name of the wire.
        service: the host.
        items: as they came, in their order.
        prefix: the hash of what stands before; empty where nothing is bound.
        about: what else the service tells of the message, which does not go back.
    """
    state: dict[str, Any] = {"wire": wire, "service": service, "items": items}
    if prefix:
        state["prefix"] = prefix
    return {**state, "about": dict(about)} if about else state


def state_in(message: Mapping[str, Any], wire: str, service: str) -> tuple[list[Any], str] | None:
    """Return the items and the prefix in a message; None where it has none for this wire and service."""
    state = message.get(STATE)
    if not isinstance(state, Mapping) or state.get("wire") != wire or state.get("service") != service:
        return None
    items, prefix = state.get("items"), state.get("prefix")
    return (items, prefix if isinstance(prefix, str) else "") if isinstance(items, list) and items else None


_REFUSED = re.compile(
    r"""
    invalid_encrypted_content | encrypted\ content\ .{0,80}\ could\ not\ be\ verified      # Responses
    | without\ its\ required\ (?:following\ item|'reasoning'\ item) | \bitem\ with\ id\ 'rs_[^']*'\ not\ found
    | \breasoning\ input\ items\ can\ only\ be\ provided
    | bound\ to\ a\ different\ conversation | \bexpected\ `?thinking\b                     # Messages
    | \binvalid\ `?signature`?\ in\ `?thinking\b
    | \bthinking\b.{0,40}\ blocks\ .{0,60}\ cannot\ be\ modified
    | (?:corrupted|invalid)\ thought\ signature                                         # Gemini
    """,
    re.IGNORECASE | re.VERBOSE,
)


def refuses_state(error: BadRequest) -> bool:
    """Whether a service says, beyond doubt, that it does not take what it wanted back."""
    return error.status == 400 and bool(_REFUSED.search(f"{error.code} {error.body}"))


def state_key(message: Mapping[str, Any]) -> str:
    """Return what the state of a message is known by; empty where it has none."""
    return Prefix(message[STATE]).value() if STATE in message else ""


def without_state(messages: Sequence[Message], refused: Container[str]) -> list[Message]:
    """Return the messages without the state that was `refused`; what every wire can say of them stays."""
    return [
        cast("Message", {name: value for name, value in message.items() if name != STATE})
        if state_key(message) in refused
        else message
        for message in messages
    ]


class Prefix:
    """A hash that grows with a conversation; the work is linear in its length.

    Args:
        *parts: what stands before the first message, such as the tools and the system prompt.
    """

    def __init__(self, *parts: Any) -> None:
        self._hash = hashlib.sha256()
        for part in parts:
            self.add(part)

    def add(self, part: Any) -> None:
        """Take the next part: JSON data; the order of keys counts, as it does on the wire."""
        self._hash.update(_json_of(part).encode() + b"\n")

    def value(self) -> str:
        """Return the hash of what has been added so far."""
        return self._hash.copy().hexdigest()[:32]
