"""Every recorded body cut at every byte: in two packets the same reply, and ended there the same reply or an interruption."""

from __future__ import annotations

import asyncio

import pytest

from SimpleLLMFunc.errors import SimpleLLMFuncError, StreamInterrupted
from SimpleLLMFunc.interface.attempts.reply_reader import read_chunks
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http.timeouts import Patience
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.spending.deadline import Deadline
from SimpleLLMFunc.interface.wires import CHAT
from SimpleLLMFunc.interface.wires.streams.delta_assembly import ReplyAssembler
from tests.faults.recordings import RECORDINGS
from tests.faults.replies import LAST, STREAM_HEAD, event, in_chunk
from tests.faults.server import FaultServer

HELLO = [{"role": "user", "content": "hello"}]
parametrized = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)


class Packets:
    """A reply whose body comes in these packets."""

    status = 200
    headers = {"content-type": "text/event-stream"}
    url, sent = "", b""
    is_checked = True  # nothing is packed

    def __init__(self, *pieces):
        self.patience = Patience(Deadline.after(None), first_byte=5, idle=5)
        self._pieces = [piece for piece in pieces if piece]

    async def piece(self):
        return self._pieces.pop(0) if self._pieces else b""


async def read(*pieces):
    """What a stream says: (text, calls, finish reason), or the text that had come when it broke."""
    assembler = ReplyAssembler()
    try:
        async for piece in read_chunks(Packets(*pieces), CHAT, "m", 1):
            for each in piece:
                assembler.add(each)
    except AttemptFailed as failed:
        # It broke before it had shown anything, so that it may be tried again.
        assert isinstance(failed.error, StreamInterrupted), failed.error
        assert failed.error.partial == ""
        return ""
    except StreamInterrupted as error:
        assert error.partial == assembler.text
        return error.partial
    reply = assembler.completion()
    calls = tuple((call.function.name, call.function.arguments) for call in reply.tool_calls)
    return (reply.text, calls, reply.finish_reason)


def what(recording):
    return (recording.text, recording.calls, recording.finish_reason)


@parametrized
async def test_split_in_two_packets_at_every_byte(recording):
    body = recording.body
    for at in range(len(body) + 1):
        assert await read(body[:at], body[at:]) == what(recording), at


@parametrized
async def test_every_byte_in_a_packet_of_its_own(recording):
    assert await read(*(recording.body[at : at + 1] for at in range(len(recording.body)))) == what(recording)


@parametrized
async def test_ended_at_every_byte(recording):
    body, found = recording.body, []
    for at in range(len(body) + 1):
        said = await read(body[:at])
        if isinstance(said, str):
            assert recording.text.startswith(said), at
        else:
            # A stream may lose what follows its finish reason; never a part of what it says.
            assert said[:2] == what(recording)[:2], at
        found.append(said)
    assert found[0] == ""
    assert found[-1] == what(recording)
    # Once it is complete it stays so, however much more comes.
    first = next(at for at, said in enumerate(found) if not isinstance(said, str))
    assert not any(isinstance(said, str) for said in found[first:])


# --- the same through a socket, with the head of the reply -----------------------------------------------

SAID = "caf\u00e9 \U0001f327"
WIRE = b"".join(
    [
        STREAM_HEAD,
        in_chunk(event('{"choices":[{"delta":{"content":"caf\u00e9 "}}]}')),
        in_chunk(event('{"choices":[{"delta":{"content":"\U0001f327"}}]}')),
        in_chunk(event('{"choices":[{"delta":{},"finish_reason":"stop"}]}')),
        in_chunk(event("[DONE]")),
        LAST,
    ]
)
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
