"""Decorated functions and chats through a real socket: OpenAICompatible against the loopback server."""

from __future__ import annotations

from pydantic import BaseModel

from SimpleLLMFunc import (
    OpenAICompatible,
    llm_function,
)
from tests.support.server import LoopbackServer


class Grade(BaseModel):
    score: int
    why: str


def function_on(llm, returns=Grade, **options):
    async def grade(essay: str):
        """Grade the essay."""

    grade.__annotations__["return"] = returns
    return llm_function(llm, **options)(grade)


def model(server, **options):
    return OpenAICompatible("m", **{"api_key": "sk-test-12345678", "base_url": server.base_url, **options})


async def test_preview_shows_the_body_that_goes_out():
    async with LoopbackServer() as server:
        server.reply('{"score": 4, "why": "clear"}')
        grade = function_on(model(server), temperature=0.5)
        preview = grade.preview("On rain")
        assert server.requests == []
        await grade("On rain")
        assert preview.body == server.requests[0].body
        assert "sk-test" not in preview.as_curl()
