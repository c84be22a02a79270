"""Large payloads do not hold up the event loop: the guard of the suite (tests/support/loop_guard.py) watches each test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import ImgPath, Message, OpenAICompatible, llm_function
from tests.support.functions import async_function_of, chat
from tests.support.server import LoopbackServer, chunk, sse

pytestmark = pytest.mark.heavy

MEGABYTE = 1_000_000
LONG = ("It rains, and the wind blows. " * (10 * MEGABYTE // 30)).strip()


class Row(BaseModel):
    name: str
    number: int


ROWS = json.dumps([{"name": f"row {number}", "number": number} for number in range(100_000)])


def reply_in_pieces(server, written, size=2000):
    pieces = [{"content": written[at : at + size]} for at in range(0, len(written), size)]
    events = [chunk({"role": "assistant"}), *map(chunk, pieces), chunk({}, finish_reason="stop")]
    server.reply_sse([sse(*events[at : at + 50], done=False) for at in range(0, len(events), 50)] + [sse()])


def model(server, **more):
    return OpenAICompatible("m", base_url=server.base_url, max_retries=0, **more)


@pytest.fixture
async def server():
    async with LoopbackServer() as running:
        yield running


async def last_of(server, history, message, **more):
    """Let a streamed dialogue answer, and return its history."""
    pairs = [pair async for pair in chat(model(server, **more), stream=True)(history, message)]
    return pairs[-1][1]


async def test_a_large_image(server, tmp_path):
    @llm_function(llm_interface=model(server))
    async def seen(picture: ImgPath) -> str:
        """Say what it shows."""

    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(19 * MEGABYTE))
    server.reply("nothing")
    assert await seen(ImgPath(path)) == "nothing"
    assert len(server.requests[0].raw) > 25 * MEGABYTE


@pytest.mark.parametrize("more", [{}, {"tokens_per_minute": 1e9}, {"context_window": 10**9}])
async def test_a_long_question(server, more):
    server.reply("yes")
    assert await async_function_of(model(server, **more))(LONG) == "yes"
    server.reply("yes")
    assert (await last_of(server, [], LONG, **more))[-1]["content"] == "yes"
    assert len(server.requests[1].raw) > 10 * MEGABYTE


async def test_a_long_answer(server):
    server.reply(LONG)
    assert len(await async_function_of(model(server))("?")) > 9 * MEGABYTE
    reply_in_pieces(server, LONG)
    assert len((await last_of(server, [], "?"))[-1]["content"]) > 9 * MEGABYTE


@pytest.mark.parametrize("written", [ROWS, f"Here it is:\n```json\n{ROWS}\n```"], ids=["plain", "in a fence"])
async def test_a_long_typed_answer(server, written):
    server.reply(written)
    assert len(await async_function_of(model(server), list[Row])("?")) == 100_000


async def test_a_long_typed_answer_in_pieces(server):
    reply_in_pieces(server, ROWS, size=20_000)
    async for value in async_function_of(model(server), list[Row]).stream("?"):
        seen = len(value)
    assert seen == 100_000


async def test_a_long_answer_item_by_item(server):
    reply_in_pieces(server, ROWS)
    count = 0
    async for _ in async_function_of(model(server), AsyncIterator[Row])("?"):
        count += 1
    assert count == 100_000


async def test_a_long_history(server):
    history: list[Message] = [{"role": "user", "content": LONG}, {"role": "assistant", "content": LONG}]
    server.reply("yes")
    assert (await last_of(server, history, "?"))[-1]["content"] == "yes"


async def test_a_history_of_many_messages(server):
    called = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "1", "content": "seen"},
        {"role": "assistant", "content": "yes"},
    ] * 2_500
    server.reply("yes")
    assert len(await last_of(server, history, "?")) == 10_003
