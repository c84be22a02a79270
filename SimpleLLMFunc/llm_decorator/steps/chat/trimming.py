"""Step 3 of `@llm_chat`: a long history is cut to fit the context window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from SimpleLLMFunc.interface.spending import estimate_tokens
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.type import Message, ToolSpec

_MOST_KEPT_FREE = 1024
"""Tokens kept free for the answer, where no `max_tokens` says how many it needs."""


def room_for_input(context_window: int, params: Mapping[str, Any]) -> int:
    """Return how many tokens a request may have so that the answer fits too."""
    asked = params.get("max_completion_tokens") or params.get("max_tokens")
    free = asked if isinstance(asked, int) else min(_MOST_KEPT_FREE, context_window // 4)
    return max(context_window - free, context_window // 4)


def fits(messages: Sequence[Message], tools: Sequence[ToolSpec] | None, room: int) -> bool:
    """Say whether a request stays within `room` tokens, by estimate."""
    return estimate_tokens(list(messages), list(tools or ()) or None) <= room


def trimmed(messages: Sequence[Message], tools: Sequence[ToolSpec] | None, room: int, func_name: str) -> list[Message]:
    """Leave out the oldest exchanges of a conversation until it fits.

    An exchange is a user message with all that follows it up to the next one, so a tool call never loses its
    result. The system prompt and the last exchange always stay.

    Args:
        messages: system prompt, history, new user message; not changed.
        tools: sent along.
        room: tokens.
        func_name: for the warning.
    """
    head = 1 if messages and messages[0]["role"] == "system" else 0
    # Messages before the first user message belong to the oldest exchange.
    starts = [number for number, message in enumerate(messages) if number >= head and message["role"] == "user"]
    # Each message is looked at once: a history may be long.
    taken = [estimate_tokens([message]) for message in messages]
    total = sum(taken) + estimate_tokens([], list(tools or ()) or None)
    begin = head
    for left_out, start in enumerate(starts):
        if left_out:
            total -= sum(taken[begin:start])
            begin = start
        if total <= room or start == starts[-1]:
            if left_out:
                push_warning(f"LLM Chat {func_name!r}: the {left_out} oldest exchanges do not fit and are left out.")
            return [*messages[:head], *messages[begin:]]
    return list(messages)
