"""Connections while the event loop is kept busy at the wrong moment, by code that has nothing to do with them."""

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import pytest

from SimpleLLMFunc.errors import BadReply, DeadlineExceeded, StreamInterrupted
from SimpleLLMFunc.interface.http import exchange, session
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.busy_loop import HELLO, ThreadServer, keep_loop_busy, read_request, whole_reply
from tests.support.server import LoopbackServer, chunk, sse


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


# --- blanks that are packed ----------------------------------------------------------------------------------

BOMB = gzip.compress(b" " * 30_000_000)
PACKED = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"


def sends(data):
    def serve(sock, _):
        while read_request(sock):
            sock.sendall(data)

    return serve


def ask(llm, stream, **options):
    async def streamed():
        return [piece async for piece in llm.chat_stream(HELLO, **options)]

    return streamed() if stream else llm.chat(HELLO, **options)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("blank", [b" ", b"\n"])
async def test_packed_blanks_do_not_outlast_a_deadline(stream, blank):
    kind = b"text/event-stream" if stream else b"application/json"
    bomb = gzip.compress(blank * 20_000_000, 1) * 12
    with ThreadServer(sends(PACKED % (kind, len(bomb)) + bomb)) as server:
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            await ask(model(server), stream, deadline=0.1)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("stream", [False, True])
async def test_packed_blanks_count_as_what_they_unpack_to(stream, monkeypatch):
    monkeypatch.setattr(exchange, "LARGEST_BODY", 20_000_000)
    with ThreadServer(sends(PACKED % (b"application/json", len(BOMB)) + BOMB)) as server:
        with pytest.raises((BadReply, StreamInterrupted), match="longer than 20000000"):
            await ask(model(server), stream, deadline=20)


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


# --- TLS ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return key, cert


@contextlib.contextmanager
def tls_server(tls):
    """A server in a thread, so that it goes on while this loop is busy."""
    ready, stop, found = threading.Event(), asyncio.Event(), []

    async def run():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls[1], tls[0])
        async with LoopbackServer(tls=context) as server:
            server.base_url = f"https://127.0.0.1:{server.port}/v1"
            found.extend([server, asyncio.get_running_loop()])
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield found[0]
    finally:
        found[1].call_soon_threadsafe(stop.set)
        thread.join(10)


async def test_cancelling_while_tls_is_set_up_harms_no_other(tls, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    said = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context["message"]))
    with tls_server(tls) as server:
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
