"""Row 40 and the clock: sizes that grow linearly, depths that are cut, histories that change, clocks that jump."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from unittest import mock

import pytest
from pydantic import BaseModel, create_model

from SimpleLLMFunc import ChatPair, Message, OpenAICompatible, SimpleLLMFuncError, llm_chat, llm_function
from SimpleLLMFunc.base.type_resolve import get_detailed_type_description
from tests.faults.acts import breaks_after
from tests.faults.replies import LAST, STREAM_HEAD, TEXT, chunk, event, good, says, sends, status
from tests.faults.server import FaultServer, in_chunk


def model(server, play="play", **options):
    return OpenAICompatible("m", base_url=server.address(play), **{"retry_delay": 0.01, **options})


def chat_on(llm, **options):
    @llm_chat(llm, stream=True, **options)
    async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
        """Talk."""
        raise NotImplementedError

    return chat


async def test_a_hundred_thousand_chunks_take_ten_times_as_long_as_ten_thousand():
    piece = in_chunk(event(chunk(content="ab ")) * 100)

    def many(hundreds):
        async def act(exchange):
            await exchange.send(STREAM_HEAD, *[piece] * hundreds, in_chunk(event(chunk("stop"))), LAST)

        return act

    async with FaultServer({"few": [many(100)], "many": [many(1000)]}) as server:

        async def seconds(play, count):
            # Processor time: what else runs on this machine does not count.
            started = time.process_time()
            texts = [text async for text, _ in chat_on(model(server, play))([], "x")]
            assert len(texts) == count + 1
            return time.process_time() - started

        await seconds("few", 10_000)
        few = await seconds("few", 10_000)
        # Quadratic work would take a hundred times as long.
        assert await seconds("many", 100_000) < few * 30


def nested(depth: int) -> type[BaseModel]:
    inner: type[BaseModel] = create_model("Leaf", value=(int, ...))
    for level in range(depth):
        inner = create_model(f"Level{level}", inner=(inner, ...))
    return inner


async def test_a_model_300_deep_is_refused_or_read_never_a_foreign_error():
    value: object = {"value": 7}
    for _ in range(300):
        value = {"inner": value}
    async with FaultServer({"play": [says(json.dumps(value))]}) as server:

        async def report(place: str):
            """Report."""

        report.__annotations__["return"] = nested(300)
        with pytest.raises(SimpleLLMFuncError):
            await llm_function(model(server), max_reasks=0)(report)("x")


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


def test_a_recursive_type_is_described_with_an_end():
    assert len(get_detailed_type_description(Tree)) < 5_000


async def test_a_recursive_value_arrives():
    value = Tree(name="a", children=[Tree(name="b", children=[Tree(name="c")])])
    async with FaultServer({"play": [says(value.model_dump_json())]}) as server:

        @llm_function(model(server))
        async def grow(seed: str) -> Tree:
            """Grow."""
            raise NotImplementedError

        assert await grow("x") == value


async def test_a_thousand_calls_at_once():
    async with FaultServer({"play": [good]}) as server:
        chat = chat_on(model(server))

        async def said():
            return "".join([text async for text, _ in chat([], "x")])

        assert set(await asyncio.gather(*(said() for _ in range(1000)))) == {TEXT}
        assert len(server.requests("play")) == 1000


async def test_a_history_that_the_caller_changes_meanwhile_changes_nothing():
    async with FaultServer({"play": [good]}) as server:
        history: list[Message] = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "one"}]
        stream = chat_on(model(server))(history, "x")
        seen = []
        async for _, now in stream:
            history.append({"role": "user", "content": "foreign"})
            now.append({"role": "user", "content": "mine"})
            seen.append(now)
        sent = server.requests("play")[0].data["messages"]
        assert [message["content"] for message in sent] == ["Talk.", "first", "one", "message: x"]
        assert [message for message in seen[-1] if message["content"] not in {"mine"}][-1]["content"] == TEXT
        assert all(message["content"] != "foreign" for message in seen[-1])


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_clock_that_jumps_changes_no_wait(jump):
    real = time.time
    acts = [status(429, retry_after="0.2"), breaks_after(0, "close"), sends(end="hold")]
    async with FaultServer({"play": acts}) as server:
        started = time.monotonic()
        task = asyncio.create_task(chat_on(model(server), deadline=0.6)([], "x").__anext__())
        await server.until(lambda: len(server.requests("play")) == 1)
        with (
            mock.patch("time.time", side_effect=lambda: real() + jump),
            pytest.raises(SimpleLLMFuncError, match="deadline"),
        ):
            await task
        assert 0.6 <= time.monotonic() - started < 1.1
        assert len(server.requests("play")) == 3
