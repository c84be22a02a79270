"""Row 40: sizes that grow linearly, depths that are cut, histories that change."""

from __future__ import annotations

import asyncio
import json
import time
from unittest.mock import Mock

import pytest
from pydantic import BaseModel, create_model

from SimpleLLMFunc import Message, SimpleLLMFuncError
from SimpleLLMFunc.runtime import threads
from tests.faults.replies import LAST, STREAM_HEAD, TEXT, chunk, event, good, says, streams
from tests.faults.runner import model_of
from tests.faults.server import FaultServer
from tests.faults.test_processes import Program
from tests.support.connections import in_chunk
from tests.support.functions import async_function_of, chat


def chat_on(server, play="play"):
    return chat(model_of("chat", server.address(play)), stream=True)


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
            texts = [text async for text, _ in chat_on(server, play)([], "x")]
            assert len(texts) == count + 1
            return time.process_time() - started

        await seconds("few", 10_000)
        few = await seconds("few", 10_000)
        # Quadratic work would take a hundred times as long.
        assert await seconds("many", 100_000) < few * 30


LARGE = "word " * 800_000
ROWS = json.dumps({"value": ["word " * 200] * 3_600})

PEAKS = """
import tracemalloc

def peak(ask):
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    ask()
    more = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return more

async def pieces():
    async for _ in awaited("large", str).stream("x"):
        pass

async def talk():
    async for _ in chat("large")([], "x"):
        pass

plain("good", str)("x")
for ask in (
    lambda: plain("large", str)("x"),
    lambda: asyncio.run(awaited("large", str)("x")),
    lambda: plain("rows", list[str])("x"),
    lambda: asyncio.run(pieces()),
    lambda: asyncio.run(talk()),
):
    print(peak(ask))
"""
"""In a process of its own: what the server holds is not the library's."""


async def test_an_answer_takes_at_most_five_times_its_size():
    async def large(exchange):
        if not exchange.request.stream:
            await says(LARGE)(exchange)
            return
        pieces = [chunk(content=LARGE[at : at + 1000]) for at in range(0, len(LARGE), 1000)]
        await streams(*pieces, chunk("stop"), "[DONE]")(exchange)

    async with FaultServer({"good": [good], "large": [large], "rows": [says(ROWS)]}) as server:
        async with Program(server, PEAKS) as program:
            out, err, code = await program.end()
        assert code == 0, err
        peaks = [int(line) / len(LARGE) for line in out.split()]
        assert len(peaks) == 5
        # More than the answer itself, else nothing was measured.
        assert 1 < min(peaks) <= max(peaks) <= 5, peaks


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
        llm = model_of("chat", server.address("play"))
        with pytest.raises(SimpleLLMFuncError):
            await async_function_of(llm, nested(300), max_reasks=0)("x")


async def test_a_thousand_calls_at_once(monkeypatch):
    monkeypatch.setattr(threads, "_start", started := Mock(wraps=threads._start))
    async with FaultServer({"play": [good]}) as server:
        talk = chat_on(server)

        async def said():
            return "".join([text async for text, _ in talk([], "x")])

        assert set(await asyncio.gather(*(said() for _ in range(1000)))) == {TEXT}
        assert len(server.requests("play")) == 1000
    assert started.call_count < 10  # not one for each


async def test_a_history_that_the_caller_changes_meanwhile_changes_nothing():
    async with FaultServer({"play": [good]}) as server:
        history: list[Message] = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "one"}]
        stream = chat_on(server)(history, "x")
        seen = []
        async for _, now in stream:
            history.append({"role": "user", "content": "foreign"})
            now.append({"role": "user", "content": "mine"})
            seen.append(now)
        sent = server.requests("play")[0].body["messages"]
        assert [message["content"] for message in sent] == ["Talk.", "first", "one", "message: x"]
        assert [message for message in seen[-1] if message["content"] not in {"mine"}][-1]["content"] == TEXT
        assert all(message["content"] != "foreign" for message in seen[-1])
