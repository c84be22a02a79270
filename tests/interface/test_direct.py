"""The short way to a reply: what goes out is what aiohttp would send, and what comes back is read to its end."""

import asyncio
import contextlib
import json

import aiohttp
import pytest
from yarl import URL

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface import direct
from SimpleLLMFunc.interface.direct import RequestHeaders
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.sessions import session_of_this_loop
from tests.support.server import LoopbackServer

HELLO = [{"role": "user", "content": "hello"}]
REPLY = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "hello yourself"}, "finish_reason": "stop"}]}
).encode()


def model(server, **more):
    return OpenAICompatible("m", base_url=server.base_url, api_key="sk-test", max_retries=0, **more)


class Raw:
    """A server that keeps what comes, byte for byte, and answers what it is told, piece by piece."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.heads = []
        self.connections = 0
        self.ended = asyncio.Event()

    async def _serve(self, reader, writer):
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                for piece in self.pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        self.ended.set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await (await session_of_this_loop()).close()
        await self._server.wait_closed()


def whole(body, head=b""):
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def fields(head):
    lines = head.decode().split("\r\n")
    return lines[0], {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}


async def test_what_goes_out_is_what_aiohttp_would_send():
    async with Raw(whole(REPLY)) as server:
        assert (await model(server).chat(HELLO)).text == "hello yourself"
        session = await session_of_this_loop()
        sent = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "Bearer sk-test"}
        async with session.post(server.base_url + "/chat/completions", data=b"{}", headers=sent) as reply:
            await reply.read()
    ours, theirs = map(fields, server.heads)
    assert ours[0] == theirs[0] == "POST /v1/chat/completions HTTP/1.1"
    for known in ours[1], theirs[1]:
        del known["user-agent"], known["content-length"]
    assert ours[1] == theirs[1]


async def test_requests_go_this_way_and_share_a_connection(monkeypatch):
    def never(*_, **__):
        raise AssertionError("the long way round")

    monkeypatch.setattr(aiohttp.ClientSession, "_request", never)
    async with Raw(whole(REPLY)) as server:
        for _ in range(3):
            assert (await model(server).chat(HELLO)).text == "hello yourself"
        assert (len(server.heads), server.connections) == (3, 1)


async def test_a_long_body_is_written_in_pieces():
    text = "ä" * 1_000_000
    async with LoopbackServer() as server:
        server.reply("read")
        assert (await model(server).chat([{"role": "user", "content": text}])).text == "read"
        assert server.requests[0].body["messages"][0]["content"] == text


@pytest.mark.parametrize("status", [b"100 Continue", b"103 Early Hints"])
async def test_what_comes_before_the_reply_is_passed_over(status):
    async with Raw(b"HTTP/1.1 " + status + b"\r\n\r\n", whole(REPLY)) as server:
        for _ in range(2):
            assert (await model(server).chat(HELLO)).text == "hello yourself"


async def test_a_body_in_pieces_is_read_to_its_end():
    pieces = [REPLY[at : at + 7] for at in range(0, len(REPLY), 7)]
    async with Raw(whole(REPLY)[: -len(REPLY)], *pieces) as server:
        for _ in range(2):
            assert (await model(server).chat(HELLO)).text == "hello yourself"
        assert server.connections == 1


async def test_a_reply_that_is_left_closes_its_connection():
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    event = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
    async with Raw(head, b"%x\r\n%b\r\n" % (len(event), event)) as server:
        chunks = model(server).chat_stream(HELLO)
        assert (await anext(chunks)).text == "a"
        await chunks.aclose()
        async with asyncio.timeout(5):
            await server.ended.wait()


async def test_a_header_that_holds_a_line_break_is_not_sent():
    async with Raw(whole(REPLY)) as server:
        llm = model(server, api_params={"extra_headers": {"X-Team": "a\r\nX-Admin: yes"}})
        with pytest.raises(UsageError, match="line break"):
            await llm.chat(HELLO)
        assert not server.heads


async def test_heads_are_kept_for_a_few_addresses_only_and_shown_nowhere():
    headers = RequestHeaders({"Authorization": "Bearer sk-secret"})
    for number in range(100):
        assert headers.head(URL(f"http://localhost/{number}")).startswith(b"POST /%d HTTP/1.1\r\n" % number)
    assert len(headers._heads) <= direct._MOST_HEADS
    assert "sk-secret" not in repr(headers) + repr(headers._heads) + repr(vars(headers))
