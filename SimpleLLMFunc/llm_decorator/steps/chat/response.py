"""Step 5 of `@llm_chat`: raw responses become ``(content, history)`` pairs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.llm_decorator.steps.common.response import extract_response_content, extract_stream_response_content
from SimpleLLMFunc.logger import push_debug, shown_data
from SimpleLLMFunc.type import Message

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
    """Yield each response with the history so far.

    Args:
        response_stream: raw responses; the one who produces them lets `messages` grow.
        return_mode: "text" yields every piece of text that is not empty, and ``("", history)`` at the end;
            "raw" yields the responses, the last one with the whole history, and no closing pair.
        messages: the growing conversation. The yielded list is a copy: a new one when the history has grown, else
            the same one as before.
        func_name: for the log.
        stream: whether the responses are chunks.
    """
    history, size = copied(messages), len(messages)
    held: Any = None  # raw mode: the last response waits for the end, when the history is whole
    async with aclosing(response_stream):
        async for response in response_stream:
            _log_response(func_name, response)
            content = process_single_chat_response(response, return_mode, stream, func_name)
            if return_mode == "raw":
                content, held = held, content
            if not content:
                continue
            # Not by the length of the yielded list: the consumer may have changed it.
            if size != len(messages):
                history, size = copied(messages), len(messages)
            yield content, history
    history = history if size == len(messages) else copied(messages)
    if return_mode == "text":
        yield "", history
    elif held is not None:
        yield held, history


def _log_response(func_name: str, response: Any) -> None:
    # Never its whole repr, which takes a tenth of a second for ten megabytes.
    push_debug(lambda: f"LLM Chat {func_name!r} received {shown_data(response, LOGGED_CHARS)}")
