"""Connections while the event loop is kept busy at the wrong moment, by code that has nothing to do with them."""

import asyncio
import gzip
import http.server
import json
import socket
import struct
import sys
import threading
import time

import pytest

from SimpleLLMFunc import budget
from SimpleLLMFunc.errors import BadReply, ConnectionFailed, DeadlineExceeded, StreamInterrupted
from SimpleLLMFunc.interface.attempts import LISTENER
from SimpleLLMFunc.interface.http import exchange, session
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.asking import HELLO, ask_either, streamed
from tests.support.busy_loop import ThreadServer, keep_loop_busy, read_request, whole_reply
from tests.support.server import chunk, serving_in_thread, sse
from tests.support.tls import certificate, server_context


def model(server, **options):
    return OpenAICompatible("m", base_url=server.base_url, **{"api_key": "sk-test", "max_retries": 0, **options})


async def text_of(llm, text="hello", **options):
    return (await llm.chat([{"role": "user", "content": text}], **options)).text


def asked_for(body):
    return json.loads(body)["messages"][-1]["content"]


# --- what nobody asked for -------------------------------------------------------------------------------


def echoes_and(unasked, later, said):
    """Answers with the question's text; on the first connection, something follows the first answer."""

    def serve(sock, number):
        count = 0
        while body := read_request(sock):
            count += 1
            sock.sendall(whole_reply(asked_for(body)))
            if number == count == 1:
                time.sleep(later)
                sock.sendall(unasked)
                said.set()

    return serve


UNASKED = {
    "a reply": whole_reply("for nobody"),
    "two replies": whole_reply("for nobody") + whole_reply("for nobody"),
    "a refusal": b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "junk": b"\x00\xff",
}


@pytest.mark.parametrize("later", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("unasked", UNASKED.values(), ids=UNASKED)
async def test_what_no_one_asked_for_is_no_answer_of_another(unasked, later):
    said = threading.Event()
    with ThreadServer(echoes_and(unasked, later, said)) as server:
        llm = model(server, max_retries=2, retry_delay=0.001)
        assert await text_of(llm, "first") == "first"  # junk in the same packet makes aiohttp doubt the reply
        llm.max_retries = 0
        assert said.wait(5)  # the loop is busy meanwhile, and reads nothing of it
        keep_loop_busy(0.05)
        for text in ("second", "third"):
            assert await text_of(llm, text) == text


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the request is written as soon as the connection is looked at")
async def test_nor_is_it_where_the_loop_is_held_up_as_the_next_request_goes_out():
    asked, said = threading.Event(), threading.Event()

    def serve(sock, number):
        while body := read_request(sock):
            sock.sendall(whole_reply(asked_for(body)))
            if number == 1:
                asked.wait(5)
                sock.sendall(whole_reply("for nobody"))
                said.set()

    real = session._Request.send

    async def busy_before_it_is_written(self, conn):
        if not asked.is_set():
            asyncio.get_running_loop().call_soon(lambda: (asked.set(), said.wait(5), keep_loop_busy(0.05)))
        return await real(self, conn)

    with ThreadServer(serve) as server, pytest.MonkeyPatch.context() as patch:
        llm = model(server)
        assert await text_of(llm, "first") == "first"
        patch.setattr(session._Request, "send", busy_before_it_is_written)
        for text in ("second", "third"):
            assert await text_of(llm, text) == text
        assert asked.is_set()


# --- connections that the server has closed ----------------------------------------------------------------


@pytest.mark.parametrize("ends_by", ["close", "reset"])
async def test_kept_connections_that_were_closed_meanwhile_fail_no_call(ends_by):
    closes, closed = threading.Event(), threading.Semaphore(0)

    def serve(sock, number):
        sock.sendall(whole_reply(asked_for(read_request(sock))))
        closes.wait(5)
        if number > 8:
            time.sleep(1)
        if ends_by == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        closed.release()

    with ThreadServer(serve) as server:
        llm = model(server)
        await asyncio.gather(*(text_of(llm, str(number)) for number in range(8)))
        assert server.connections == 8
        closes.set()
        for _ in range(8):  # the loop is busy meanwhile, and sees nothing of it
            assert closed.acquire(timeout=5)
        keep_loop_busy(0.05)
        texts = await asyncio.gather(*(text_of(llm, str(number)) for number in range(8)))
        assert texts == [str(number) for number in range(8)]


class ClosesIdleConnections(http.server.BaseHTTPRequestHandler):
    """A real server that keeps connections, and closes one that is idle without a word."""

    protocol_version = "HTTP/1.1"
    timeout = 0.1

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(whole_reply("here"))

    def log_message(self, *args):
        pass


class FailedTries:
    def __init__(self):
        self.errors = []

    def try_failed(self, error, **_):
        self.errors.append(error)


async def test_a_service_that_closes_idle_connections_costs_nothing_that_is_counted():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), ClosesIdleConnections) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        listener = FailedTries()
        block = LISTENER.enter(listener)
        try:
            server.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
            llm = model(server, max_retries=2, retry_delay=0.001, requests_per_minute=3)
            with budget(requests=3) as spent:
                for _ in range(3):
                    reply = await llm.chat(HELLO, deadline=20)  # a fourth request would wait for a minute
                    assert (reply.text, reply.tries) == ("here", 1)
                    keep_loop_busy(0.3)
            assert spent.requests == 3
            assert listener.errors == []
        finally:
            LISTENER.leave(block)
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("pause", [0.0, 0.05])
async def test_llama_cpp_keeps_no_connection_after_a_stream_though_it_says_so(pause):
    """It closes the connection a moment after the stream; a request that is sent in between is lost."""
    head = b"HTTP/1.1 200 OK\r\nserver: llama.cpp\r\ncontent-type: text/event-stream\r\n"
    head += b"keep-alive: timeout=5, max=100\r\ntransfer-encoding: chunked\r\n\r\n"
    event = sse(chunk({"content": "a"}), chunk({}, finish_reason="stop"))

    def serve(sock, _):
        read_request(sock)
        sock.sendall(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event))
        sock.settimeout(1)
        read_request(sock)  # taken, and not answered

    with ThreadServer(serve) as server:
        llm = model(server)
        for _ in range(3):
            pieces = [piece async for piece in llm.chat_stream(HELLO, deadline=20)]
            assert "".join(piece.text for piece in pieces) == "a"
            await asyncio.sleep(pause)
        assert server.connections == 3


async def test_a_request_that_was_taken_and_not_answered_counts():
    """Nobody knows whether it was read, and paid: only the caller may ask again."""
    count = 0

    def serve(sock, _):
        nonlocal count
        while body := read_request(sock):
            count += 1
            if count == 2:
                return
            sock.sendall(whole_reply(asked_for(body)))

    with ThreadServer(serve) as server:
        llm = model(server)
        await text_of(llm)
        with pytest.raises(ConnectionFailed, match="without an answer"):
            await text_of(llm)
        assert count == 2


# --- blanks that are packed ----------------------------------------------------------------------------------

BOMB = gzip.compress(b" " * 30_000_000)
PACKED = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"


def sends(data):
    def serve(sock, _):
        while read_request(sock):
            sock.sendall(data)

    return serve


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("blank", "members"), [(b" ", 12), (b"\n", 12), (b"", 500_000)])
async def test_packed_blanks_and_members_that_hold_nothing_do_not_outlast_a_deadline(stream, blank, members):
    kind = b"text/event-stream" if stream else b"application/json"
    bomb = gzip.compress(blank * 20_000_000, 1) * members
    with ThreadServer(sends(PACKED % (kind, len(bomb)) + bomb)) as server:
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            await ask_either(model(server), stream, deadline=0.1)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("stream", [False, True])
async def test_packed_blanks_count_as_what_they_unpack_to(stream, monkeypatch):
    monkeypatch.setattr(exchange, "LARGEST_BODY", 20_000_000)
    with ThreadServer(sends(PACKED % (b"application/json", len(BOMB)) + BOMB)) as server:
        with pytest.raises((BadReply, StreamInterrupted), match="longer than 20000000"):
            await ask_either(model(server), stream, deadline=20)


async def test_blanks_before_an_answer_are_dropped():
    body = whole_reply("here it is").partition(b"\r\n\r\n")[2]
    packed = gzip.compress(b" \n" * 5_000_000 + body)
    with ThreadServer(sends(PACKED % (b"application/json", len(packed)) + packed)) as server:
        assert await text_of(model(server), deadline=20) == "here it is"
        assert (await streamed(model(server), deadline=20)).text == "here it is"


# --- what has come counts --------------------------------------------------------------------------------------


async def test_text_that_came_before_a_connection_broke_is_not_lost_on_a_slow_reader():
    data = sse(*[chunk({"content": str(number)}) for number in range(8)], done=False)

    def serve(sock, _):
        read_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n")
        for event in data.split(b"\n\n")[:-1]:
            sock.sendall(event + b"\n\n")
            time.sleep(0.01)

    with ThreadServer(serve) as server:
        pieces = model(server).chat_stream(HELLO)
        first = await anext(pieces)
        await asyncio.sleep(0.3)
        keep_loop_busy()
        texts = [first.text]
        with pytest.raises(StreamInterrupted) as broken:
            async for piece in pieces:
                texts.append(piece.text)
        assert "".join(texts) == broken.value.partial == "01234567"


async def test_text_that_came_while_the_loop_was_busy_for_too_long_counts(monkeypatch):
    monkeypatch.setattr("SimpleLLMFunc.interface.attempts.http_model.IDLE_SECONDS", 0.2)

    goes_on, said = threading.Event(), threading.Event()

    def serve(sock, _):
        read_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        sock.sendall(sse(chunk({"content": "a"}), done=False))
        goes_on.wait(5)
        sock.sendall(sse(chunk({"content": "b"}), chunk({}, finish_reason="stop")))
        said.set()

    with ThreadServer(serve) as server:
        pieces = model(server).chat_stream(HELLO)
        texts = [(await anext(pieces)).text]
        following = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0)
        goes_on.set()
        assert said.wait(5)
        keep_loop_busy(0.3)
        texts.append((await following).text)
        texts += [piece.text async for piece in pieces]
        assert "".join(texts) == "ab"


# --- TLS ---------------------------------------------------------------------------------------------------------


async def test_cancelling_while_tls_is_set_up_harms_no_other(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    said = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context["message"]))
    with serving_in_thread(tls=server_context()) as server:
        server.base_url = f"https://127.0.0.1:{server.port}/v1"
        llm = model(server)
        await text_of(llm)
        for turn in range(6):
            doomed = [asyncio.ensure_future(text_of(llm)) for _ in range(10)]
            innocent = [asyncio.ensure_future(text_of(llm, f"{turn}-{number}")) for number in range(10)]
            for _ in range(turn * 2):
                await asyncio.sleep(0.002)
            if turn % 2:
                keep_loop_busy(0.05)
            for each in doomed:
                each.cancel()
            pair = socket.socketpair()  # another library takes descriptors that have just become free
            reader, writer = await asyncio.open_connection(sock=pair[0])
            pair[1].sendall(b"theirs")
            assert await reader.readexactly(6) == b"theirs"
            assert await asyncio.gather(*innocent) == [f"{turn}-{number}" for number in range(10)]
            await asyncio.gather(*doomed, return_exceptions=True)
            writer.close()
            pair[1].close()
    assert said == []
