"""What the log shows of a response of a chat: its beginning, however large it is."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from SimpleLLMFunc.llm_decorator.steps.chat.response import LOGGED_CHARS, process_chat_response_stream
from SimpleLLMFunc.testing import ScriptedLLM


class Unprintable(str):
    """A text that must not be written out whole."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise AssertionError("the whole text was written out")


async def test_a_large_response_is_never_written_out_whole(caplog: pytest.LogCaptureFixture) -> None:
    text = Unprintable("0123456789" * 1_000_000)
    completion = await ScriptedLLM(["short"]).chat([{"role": "user", "content": "?"}])
    message = completion.choices[0].message
    object.__setattr__(message, "content", text)

    async def responses() -> AsyncGenerator[Any, None]:
        yield completion

    with caplog.at_level(logging.DEBUG):
        pairs = process_chat_response_stream(responses(), "text", [], "story", stream=False)
        assert [content async for content, _ in pairs] == [text, ""]
    (line,) = [record.getMessage() for record in caplog.records if "'story' received" in record.getMessage()]
    assert "0123456789" in line
    assert len(line) < LOGGED_CHARS + 500
