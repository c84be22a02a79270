"""Step 5 of `@llm_chat`: raw responses become ``(content, history)`` pairs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.ReAct import raw_response
from SimpleLLMFunc.llm_decorator.steps.common.response import extract_response_content, extract_stream_response_content
from SimpleLLMFunc.logger import push_debug, shown_data
from SimpleLLMFunc.type import Message

__all__ = [
    "Pairs",
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
    pairs = Pairs(return_mode, messages, func_name, stream)
    async with aclosing(response_stream):
        async for response in response_stream:
            pair = pairs.add(response)
            if pair is not None:
                yield pair
    pair = pairs.last()
    if pair is not None:
        yield pair


class Pairs:
    """Makes the pairs of `process_chat_response_stream`, whose arguments it takes, from one response after the other."""

    __slots__ = ("_func_name", "_held", "_history", "_messages", "_mode", "_size", "_stream")

    def __init__(
        self, return_mode: Literal["text", "raw"], messages: list[Message], func_name: str, stream: bool
    ) -> None:
        self._mode: Literal["text", "raw"] = return_mode
        self._messages = messages
        self._func_name = func_name
        self._stream = stream
        self._history = copied(messages)
        self._size = len(messages)
        self._held: Any = None  # raw mode: the last response waits for the end, when the history is whole

    def add(self, response: Any) -> tuple[Any, list[Message]] | None:
        """Take the next response; return the pair to give out, None for nothing."""
        _log_response(self._func_name, response)
        content = process_single_chat_response(response, self._mode, self._stream, self._func_name)
        if self._mode == "raw":
            content, self._held = self._held, content
        return (content, self.history()) if content else None

    def of(self, event: ReActEvent) -> tuple[Any, list[Message]] | None:
        """Take the next event of the run, by which the conversation may grow; return the pair to give out."""
        response = raw_response(event, self._messages, stream=self._stream)
        return None if response is None else self.add(response)

    def last(self) -> tuple[Any, list[Message]] | None:
        """Return the closing pair, None where there is none."""
        if self._mode == "raw":
            return None if self._held is None else (self._held, self.history())
        return "", self.history()

    def history(self) -> list[Message]:
        """Return the conversation as it stands, the same list for as long as it has not grown."""
        # Not by the length of what was given out: that is the consumer's, who may have changed it.
        if self._size != len(self._messages):
            self._history, self._size = copied(self._messages), len(self._messages)
        return self._history


def _log_response(func_name: str, response: Any) -> None:
    # Never its whole repr, which takes a tenth of a second for ten megabytes.
    push_debug(lambda: f"LLM Chat {func_name!r} received {shown_data(response, LOGGED_CHARS)}")
