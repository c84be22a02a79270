"""A reply that is cut at every byte on its way through a socket: in two packets the same, and ended there the same or an error."""

from __future__ import annotations

import asyncio

import pytest

from SimpleLLMFunc.errors import SimpleLLMFuncError, StreamInterrupted
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.faults.replies import LAST, STREAM_HEAD, event, in_chunk
from tests.faults.server import FaultServer

HELLO = [{"role": "user", "content": "hello"}]
SAID = "caf\u00e9 \U0001f327"
WIRE = b"".join(
    [
        STREAM_HEAD, in_chunk(event('{"choices":[{"delta":{"content":"caf\u00e9 "}}]}')),
        in_chunk(event('{"choices":[{"delta":{"content":"\U0001f327"}}]}')),
        in_chunk(event('{"choices":[{"delta":{},"finish_reason":"stop"}]}')), in_chunk(event("[DONE]")), LAST,
    ]
)  # fmt: skip
AT_ONCE = 50


async def asked(act, count):
    """Ask `count` times, some at once; return what came."""
    async with FaultServer({"cut": [act]}) as server:
        room = asyncio.Semaphore(AT_ONCE)

        async def ask():
            async with room:
                # A model of its own for each: what breaks for all would be noticed, and not tried again by everybody.
                llm = OpenAICompatible("m", base_url=server.address("cut"), max_retries=0, timeout=5)
                try:
                    return "".join([chunk.text async for chunk in llm.chat_stream(HELLO)])
                except SimpleLLMFuncError as error:
                    return error

        return await asyncio.gather(*(ask() for _ in range(count)))


async def test_a_reply_split_at_every_byte_of_the_wire():
    async def act(exchange):
        at = exchange.number
        await exchange.send(WIRE[:at])
        await exchange.pause(0.002)
        await exchange.send(WIRE[at:])

    assert set(await asked(act, len(WIRE))) == {SAID}


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_reply_that_ends_at_every_byte_of_the_wire(end):
    async def act(exchange):
        await exchange.send(WIRE[: exchange.number - 1])
        await exchange.pause(0.002)
        exchange.reset() if end == "reset" else exchange.close()

    found = await asked(act, len(WIRE) + 1)
    kinds = {type(said).__name__ for said in found}
    assert kinds == {"str", "ConnectionFailed", "StreamInterrupted"}
    assert all(said == SAID for said in found if isinstance(said, str))
    partials = [said.partial for said in found if isinstance(said, StreamInterrupted)]
    assert all(SAID.startswith(partial) for partial in partials)
    assert max(map(len, partials)) == len(SAID)
