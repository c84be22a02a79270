"""A connection: replies cut anywhere are the same replies, and no connection is used again that should not be."""

import asyncio
import contextlib
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.errors import BadReply, ConnectionFailed, ProviderError
from SimpleLLMFunc.interface.http.connecting import Place
from SimpleLLMFunc.interface.http.connection import Connection
from SimpleLLMFunc.interface.http.request_head import RequestHeaders
from SimpleLLMFunc.interface.http.sessions import session_of_this_loop
from SimpleLLMFunc.interface.http.url import parsed_url
from SimpleLLMFunc.interface.http.wire_errors import BodyBroken, Disconnected, NotHttp
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
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


# --- bytes in, a reply out -------------------------------------------------------------------------------


class Ends:
    """What a session does with its connections, and what a transport does, written down."""

    def __init__(self):
        self.said = []
        self.is_closed = False

    def joined(self, connection):
        pass

    def left(self, connection):
        self.said.append("left")

    def rests(self, connection):
        self.said.append("rests")

    def write(self, data):
        pass

    def abort(self):
        if not self.is_closed:
            self.is_closed = True
            self.said.append("closed")

    def is_closing(self):
        return self.is_closed

    def pause_reading(self):
        self.said.append("pauses")

    def resume_reading(self):
        self.said.append("goes on")

    def get_extra_info(self, name):
        return None


def fed(connection, data):
    view = connection.get_buffer(-1)
    for at in range(0, len(data), len(view)):
        piece = data[at : at + len(view)]
        view[: len(piece)] = piece
        connection.buffer_updated(len(piece))


def read(incoming):
    """Return all that has come of a body, and what ends it: True where it is whole, else the error, else None."""
    body = b""
    while True:
        try:
            piece = incoming.take()
        except Exception as error:
            return body, error
        if not piece:
            return body, None if piece is None else True
        body += piece


async def exchange(pieces, *, eof=False):
    """Return the reply that a connection makes of these pieces, its body with its end, and what became of it."""
    ends = Ends()
    connection = Connection(ends, Place("http", "host", 80), bytearray(65536))
    connection.connection_made(ends)
    asking = asyncio.ensure_future(connection.ask(b"", b""))
    await asyncio.sleep(0)
    for piece in pieces:
        if not ends.is_closed:
            fed(connection, piece)
    if eof and not ends.is_closed:
        connection.eof_received()
        connection.connection_lost(None)
    try:
        async with asyncio.timeout(5):
            incoming = await asking
    except Exception as error:
        return None, (b"", error), ends.said
    return incoming, read(incoming), ends.said


BODY = b'{"a": "' + b"x" * 50 + b'"}'
PACKED = gzip.compress(BODY, mtime=0)
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
REPLIES = {
    "length": (whole(BODY), "rests"),
    "chunks": (CHUNKED + b"\r\n5\r\n" + BODY[:5] + b"\r\n%x;why=because\r\n" % (len(BODY) - 5) + BODY[5:]
               + b"\r\n0\r\nx-sum: 1\r\n\r\n", "rests"),
    "hints": (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + whole(BODY), "rests"),
    "packed": (whole(PACKED, b"content-encoding: gzip\r\n"), "rests"),
    "packed twice": (whole(PACKED[:0] + gzip.compress(BODY[:9]) + gzip.compress(BODY[9:]),
                     b"Content-Encoding: GZIP\r\n"), "rests"),
    "lines end with LF": (whole(BODY).replace(b"\r\n", b"\n"), "rests"),
    "close": (whole(BODY, b"connection: close\r\n"), "closed"),
    "1.0": (whole(BODY).replace(b"1.1", b"1.0"), "closed"),
    "until the end": (b"HTTP/1.1 200 OK\r\n\r\n" + BODY, "closed"),
    "an offer of HTTP/2": (whole(BODY, b"upgrade: h2c\r\nconnection: upgrade\r\n"), "rests"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
@given(cuts=st.lists(st.integers(0, 400), max_size=12))
@settings(deadline=None, max_examples=40)
def test_a_reply_is_the_same_however_it_is_cut(name, cuts):
    data, end = REPLIES[name]
    at = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[begin:to] for begin, to in zip(at, at[1:], strict=False)]
    incoming, (body, ended), said = asyncio.run(exchange(pieces, eof=name == "until the end"))
    assert (incoming.status, body, ended) == (200, BODY, True)
    assert said[0] == end


@given(st.sampled_from(sorted(REPLIES)), st.integers(0, 400))
@settings(deadline=None)
def test_a_reply_that_is_cut_off_is_never_whole(name, cut):
    data, _ = REPLIES[name]
    if name == "until the end" or cut >= len(data):
        return
    incoming, (body, ended), said = asyncio.run(exchange([data[:cut]], eof=True))
    assert isinstance(ended, Disconnected if incoming is None else BodyBroken)
    assert BODY.startswith(body)
    assert "rests" not in said


@given(st.binary(min_size=1, max_size=30))
@settings(deadline=None)
def test_what_nobody_asked_for_ends_the_connection(junk):
    for pieces in ([whole(BODY) + junk], [whole(BODY), junk]):
        incoming, (body, ended), said = asyncio.run(exchange(pieces))
        assert (incoming.status, body, ended) == (200, BODY, True)
        # Empty lines between messages are allowed, and servers of old send them.
        assert "closed" in said or not junk.strip(b"\r\n")


@given(st.binary(max_size=60))
@settings(deadline=None)
def test_bytes_that_are_not_http_are_refused(junk):
    incoming, (_, ended), said = asyncio.run(exchange([b"x" + junk]))
    assert incoming is None
    assert isinstance(ended, NotHttp)
    assert said[0] == "closed"


async def test_trailers_are_not_read_as_the_head_of_the_next_reply():
    ends = Ends()
    connection = Connection(ends, Place("http", "host", 80), bytearray(65536))
    connection.connection_made(ends)
    headers = []
    for data in (CHUNKED + b"\r\n0\r\nx-who: the first\r\n\r\n", whole(BODY)):
        asking = asyncio.ensure_future(connection.ask(b"", b""))
        await asyncio.sleep(0)
        fed(connection, data)
        headers.append((await asking).headers)
    assert [sorted(each) for each in headers] == [["transfer-encoding"], ["content-length"]]


async def test_the_beginning_of_what_is_not_http_is_shown():
    _, (_, ended), _ = await exchange([b"220 mail.example ESMTP\r\n"])
    assert ended.head == "220 mail.example ESMTP\r\n"


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.1 200 OK\r\nx: ",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10,
        CHUNKED + b"\r\n0\r\n",
        CHUNKED + b"\r\n5;x=",
    ],
    ids=["a field", "fields", "trailers", "an extension"],
)
async def test_a_head_without_end_is_given_up(begin):
    incoming, (_, ended), said = await exchange(
        [begin, *[b"a: b\r\n" * 100 if begin.endswith(b"\n") else b"x" * 600] * 200]
    )
    assert isinstance(ended, NotHttp if incoming is None else BodyBroken)
    assert said[0] == "closed"


async def test_a_long_head_that_comes_at_once_is_refused_too():
    incoming, (_, ended), _ = await exchange(
        [whole(BODY, b"x-long: " + b"x" * 65_000 + b"\r\ny: " + b"y" * 600 + b"\r\n")]
    )
    assert incoming is None
    assert "longer than" in str(ended)


async def test_whoever_reads_slowly_is_not_sent_more():
    ends = Ends()
    connection = Connection(ends, Place("http", "host", 80), bytearray(65536))
    connection.connection_made(ends)
    asking = asyncio.ensure_future(connection.ask(b"", b""))
    await asyncio.sleep(0)
    fed(connection, b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 300_000)
    assert ends.said == ["pauses"]
    incoming = await asking
    assert incoming.take() == b"x" * 300_000
    assert incoming.take() is None
    assert ends.said == ["pauses", "goes on"]
    fed(connection, b"x" * 700_000)
    assert read(incoming) == (b"x" * 700_000, True)
    assert ends.said[-2:] == ["goes on", "rests"]


# --- over the wire ---------------------------------------------------------------------------------------


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


async def test_a_switch_to_another_protocol_is_no_answer():
    async with Raw(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n") as server:
        with pytest.raises(BadReply):
            await model(server).chat(HELLO)


async def test_a_server_that_answers_before_it_has_read_all_is_heard():
    """It says why, and reads no further; the rest of the request is not pressed upon it."""
    ended = asyncio.Event()

    async def serve(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\n{}")
            await writer.drain()
            await reader.read(1)
            await asyncio.sleep(0.05)
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, limit=4096) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        llm = OpenAICompatible("m", base_url=address, max_retries=0)
        with pytest.raises(ProviderError) as caught:
            await llm.chat([{"role": "user", "content": "x" * 20_000_000}], deadline=20)
        assert caught.value.status == 413
        assert (await session_of_this_loop()).in_use == 0
        async with asyncio.timeout(10):
            await ended.wait()


async def test_a_server_that_never_reads_is_given_up_at_the_deadline():
    stop = asyncio.Event()

    async def serve(_reader, writer):
        with contextlib.closing(writer):
            await stop.wait()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, limit=4096) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        llm = OpenAICompatible("m", base_url=address, max_retries=0, timeout=0.3)
        with pytest.raises(ConnectionFailed):
            await llm.chat([{"role": "user", "content": "x" * 20_000_000}])
        assert (await session_of_this_loop()).in_use == 0
        stop.set()
        await asyncio.sleep(0)


async def test_a_body_waits_in_the_socket_until_it_is_read():
    sent = 0
    size = 64 * 1024 * 1024

    async def serve(reader, writer):
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            while sent < size:
                writer.write(bytes(65536))
                await writer.drain()
                sent += 65536

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = parsed_url(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        session = await session_of_this_loop()
        connection = await session.connection_to(url)
        incoming = await connection.ask(RequestHeaders({}).head(url) + b"Content-Length: 0\r\n\r\n", b"")
        await asyncio.sleep(0.3)
        assert sent < size / 2
        got = 0
        while (piece := incoming.take()) != b"":
            if piece is None:
                await incoming.news()
            else:
                got += len(piece)
        assert got == size


async def test_a_call_that_is_given_up_closes_its_connection():
    async with Raw() as server:
        asking = asyncio.ensure_future(model(server).chat(HELLO))
        while not server.heads:
            await asyncio.sleep(0.001)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await session_of_this_loop()).in_use == 0
