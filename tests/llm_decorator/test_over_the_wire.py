"""Decorated functions and chats through a real socket: OpenAICompatible against the loopback server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import (
    APIKeyPool,
    ChatPair,
    Message,
    OpenAICompatible,
    RateLimited,
    llm_chat,
    llm_function,
)
from tests.support.server import LoopbackServer, error_answer


class Grade(BaseModel):
    score: int
    why: str


def function_on(llm, returns=Grade, **options):
    async def grade(essay: str):
        """Grade the essay."""

    grade.__annotations__["return"] = returns
    return llm_function(llm, **options)(grade)


def chat_on(llm, **options):
    @llm_chat(llm, **options)
    async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
        """You are a guide."""
        raise NotImplementedError

    return chat


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


async def test_200_simultaneous_calls_get_their_own_answers():
    def echo(request):
        number = request.body["messages"][-1]["content"].rpartition(": ")[2]
        return json.dumps({"value": int(number)})

    async with LoopbackServer(echo) as server:
        echoing = function_on(model(server), int)
        assert await asyncio.gather(*(echoing(str(n)) for n in range(200))) == list(range(200))
        assert len(server.requests) == 200


async def test_three_keys_and_six_calls():
    release = asyncio.Event()

    async def wait(request):
        await release.wait()
        return "ok"

    keys = [f"sk-test-key-number-{n}" for n in range(3)]
    pool = APIKeyPool(keys)
    async with LoopbackServer(wait) as server:
        ask = function_on(model(server, api_key=None, api_key_pool=pool), str)
        tasks = [asyncio.create_task(ask("x")) for _ in range(6)]
        await server.received(6)
        assert sorted(request.key for request in server.requests) == sorted(keys * 2)
        release.set()
        assert await asyncio.gather(*tasks) == ["ok"] * 6
    assert pool.tasks == 0


@pytest.mark.parametrize("ends", ["error", "cancel", "break"])
async def test_counted_keys_return_to_zero(ends):
    pool = APIKeyPool(["sk-test-only-key"])
    async with LoopbackServer() as server:
        llm = model(server, api_key=None, api_key_pool=pool)
        if ends == "error":
            server.answer(error_answer(400, "no"))
            with pytest.raises(Exception, match="no"):
                await function_on(llm, str)("x")
        elif ends == "cancel":
            server.answer(lambda request: asyncio.sleep(30))
            task = asyncio.create_task(function_on(llm, str)("x"))
            await server.received(1)
            assert pool.tasks == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            server.reply("one two three four five six seven")
            async for _ in chat_on(llm, stream=True)([], "x"):
                break
            async with asyncio.timeout(1):
                while pool.tasks:
                    await asyncio.sleep(0)  # the dropped generator is closed by the loop, in its next round
        assert pool.tasks == 0
    assert len(asyncio.all_tasks()) == 1


async def test_a_wait_beyond_the_deadline_is_told_at_once():
    async with LoopbackServer() as server:
        server.answer(error_answer(429, "slow down", headers={"Retry-After": "30"}))
        started = asyncio.get_running_loop().time()
        with pytest.raises(RateLimited) as caught:
            await function_on(model(server), str, deadline=20)("x")
        assert caught.value.retry_after == 30
        assert caught.value.func_name == "grade"
        assert asyncio.get_running_loop().time() - started < 5
        assert len(server.requests) == 1
