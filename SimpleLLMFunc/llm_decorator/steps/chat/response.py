"""Step 5 of `@llm_chat`: raw responses become ``(content, history)`` pairs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any, Literal

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.llm_decorator.steps.common.response import extract_response_content, extract_stream_response_content
from SimpleLLMFunc.logger import get_location, push_debug
from SimpleLLMFunc.type.message import Message

__all__ = [
    "extract_response_content",
    "extract_stream_response_content",
    "process_chat_response_stream",
    "process_single_chat_response",
]

LOGGED_CHARS = 2000
"""Characters of a response that the log shows."""


def process_single_chat_response(
    response: Any, return_mode: Literal["text", "raw"], stream: bool, func_name: str
) -> Any:
    """Return the response itself in raw mode, else its text ("" where it has none)."""
    if return_mode == "raw":
        return response
    if stream:
        return extract_stream_response_content(response, func_name)
    return extract_response_content(response, func_name)


async def process_chat_response_stream(
    response_stream: AsyncGenerator[Any, None],
    return_mode: Literal["text", "raw"],
    messages: list[Message],
    func_name: str,
    stream: bool,
) -> AsyncGenerator[tuple[Any, list[Message]], None]:
    """Yield each response with the history as it stands.

    Args:
        response_stream: raw responses; the one who produces them lets `messages` grow.
        return_mode: "text" yields every piece of text that is not empty, and ``("", history)`` at the end;
            "raw" yields the responses, the last one with the whole history, and no closing pair.
        messages: the growing conversation. What is yielded is a list of its own: a new one when the history
            has grown, the same one as before when it has not.
        func_name: for the log.
        stream: whether the responses are chunks.
    """
    history, size = copied(messages), len(messages)

    def current() -> list[Message]:
        nonlocal history, size
        # Not by the length of what was given out: that is the consumer's, who may have changed it.
        if size != len(messages):
            history, size = copied(messages), len(messages)
        return history

    held: list[Any] = []  # raw mode: the last response waits for the end, when the history is whole
    async with aclosing(response_stream):
        async for response in response_stream:
            push_debug(partial(_received, func_name, response), get_location())
            content = process_single_chat_response(response, return_mode, stream, func_name)
            if return_mode == "raw":
                if held:
                    yield held.pop(), current()
                held.append(content)
            elif content:
                yield content, current()
    if return_mode == "raw":
        for content in held:
            yield content, current()
    else:
        yield "", current()


def _received(func_name: str, response: Any) -> str:
    # Cut before it is redacted, which takes a second for ten megabytes.
    return f"LLM Chat {func_name!r} received {cut(repr(response), LOGGED_CHARS)}"
