"""Decorated functions and chats through a real socket: OpenAICompatible against the loopback server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import (
    APIKeyPool,
    BudgetExceeded,
    ChatPair,
    ConfigError,
    ContentBlocked,
    DeadlineExceeded,
    Message,
    OpenAICompatible,
    RateLimited,
    UsageError,
    forbid_real_calls,
    llm_chat,
    llm_function,
    tool,
)
from SimpleLLMFunc.interface.spending.budget import budget
from tests.support.server import LoopbackServer, completion, error_answer


class Grade(BaseModel):
    score: int
    why: str


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


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


async def test_a_structured_answer():
    async with LoopbackServer() as server:
        server.reply('{"score": 4, "why": "clear"}')
        result = await function_on(model(server), temperature=0.5).call("On rain")
        assert result.value == Grade(score=4, why="clear")
        body = server.requests[0].body
        assert server.requests[0].path == "/v1/chat/completions"
        assert body["model"] == "m"
        assert body["temperature"] == 0.5
        assert body["response_format"]["type"] == "json_schema"
        assert set(body["response_format"]["json_schema"]["schema"]["properties"]) == {"score", "why"}
        assert [m["role"] for m in body["messages"]] == ["system", "user"]


async def test_preview_shows_the_body_that_goes_out():
    async with LoopbackServer() as server:
        server.reply('{"score": 4, "why": "clear"}')
        grade = function_on(model(server), temperature=0.5, toolkit=[add])
        preview = grade.preview("On rain")
        assert server.requests == []
        await grade("On rain")
        assert preview.body == server.requests[0].body
        assert "sk-test" not in preview.as_curl()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_round(stream):
    async with LoopbackServer() as server:
        server.reply_tool_calls([("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})])
        server.reply("3 and 7")
        chat = chat_on(model(server), stream=stream, toolkit=[add])
        pairs = [pair async for pair in chat([], "add")]
        assert "".join(text for text, _ in pairs) == "3 and 7"
        sent = server.requests[1].body["messages"]
        assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "tool"]
        assert [m["content"] for m in sent[3:]] == ["3", "7"]
        assert [m["tool_call_id"] for m in sent[3:]] == [c["id"] for c in sent[2]["tool_calls"]]
        assert server.requests[0].stream is stream


async def test_a_real_400_moves_down_the_ladder():
    async with LoopbackServer() as server:
        server.answer(error_answer(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"))
        server.reply_tool_calls([("answer", {"score": 4, "why": "clear"})])
        result = await function_on(model(server)).call("x")
        assert result.value.score == 4
        assert result.output_mode == "tool"
        assert "refused" in result.output_mode_reason
        assert "response_format" not in server.requests[1].body
        assert [t["function"]["name"] for t in server.requests[1].body["tools"]] == ["answer"]


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


async def test_a_rate_limit_is_waited_for():
    async with LoopbackServer() as server:
        server.answer(error_answer(429, "slow down", headers={"Retry-After": "0.2"}))
        server.reply("ok")
        started = asyncio.get_running_loop().time()
        result = await function_on(model(server), str).call("x")
        assert result.value == "ok"
        assert result.tries == 2
        assert asyncio.get_running_loop().time() - started >= 0.2


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


async def test_the_deadline_covers_everything():
    async with LoopbackServer(lambda request: asyncio.sleep(30)) as server:
        started = asyncio.get_running_loop().time()
        with pytest.raises(DeadlineExceeded):
            await function_on(model(server), str, deadline=0.3)("x")
        assert asyncio.get_running_loop().time() - started < 5


async def test_a_refusal_is_not_asked_again():
    reply = completion(None)
    reply["choices"][0]["message"]["refusal"] = "I cannot help with that."
    async with LoopbackServer() as server:
        server.reply_json(reply)
        with pytest.raises(ContentBlocked, match="cannot help"):
            await function_on(model(server))("x")
        assert len(server.requests) == 1


async def test_budgets_count_every_http_request():
    async with LoopbackServer() as server:
        server.answer(error_answer(503, "busy"))
        server.answer(error_answer(503, "busy"))
        server.reply("ok")
        llm = model(server, retry_delay=0.01)
        with budget(requests=2) as spent, pytest.raises(BudgetExceeded):
            await function_on(llm, str)("x")
        assert spent.requests == len(server.requests) == 2


async def test_forbidden_calls_are_not_sent():
    async with LoopbackServer() as server:
        with forbid_real_calls(), pytest.raises(UsageError):
            await function_on(model(server), str)("x")
        assert server.requests == []


def test_a_sync_function_and_one_event_loop_after_the_other():
    async def serve():
        async with LoopbackServer() as server:
            llm = model(server)
            server.reply("async")
            server.reply("again")
            assert await function_on(llm, str)("x") == "async"
            assert await function_on(llm, str)("x") == "again"

    for _ in range(3):
        asyncio.run(serve())


async def test_a_sync_function_inside_a_running_loop():
    async with LoopbackServer() as server:

        @llm_function(model(server))
        def say(text: str) -> str:
            """Say."""
            raise NotImplementedError

        server.reply("from a thread")
        # the loop of this test serves, so the blocking call stands in a thread of its own
        assert await asyncio.to_thread(say, "x") == "from a thread"


async def test_without_a_key_the_paragraph_says_what_to_do(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError) as caught:
        await function_on(OpenAICompatible("gpt-5-mini", base_url="https://api.openai.com/v1"), str)("x")
    text = str(caught.value)
    assert "OPENAI_API_KEY" in text
    assert "LocalModel" in text
    assert any("\u4e00" <= character <= "\u9fff" for character in text)
    assert caught.value.__cause__ is None
