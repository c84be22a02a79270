"""Listening at an address of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import urllib.request

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.runtime.listening import THIS_MACHINE, address_of, listening, serve_until_cancelled


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.com", ""])
def test_other_machines_may_not_call_where_that_is_said(host):
    said = rf"^the page is served on this machine only \(.*\), not at '{re.escape(host)}': no\.$"
    with pytest.raises(ConfigError, match=said), listening(host, 0, others="no.", offered="the page is served"):
        pass


def test_an_address_is_written_as_clients_write_it():
    for host in ("127.0.0.1", "localhost"):
        assert host in THIS_MACHINE
        with listening(host, 0) as listener:
            assert address_of(host, listener) == f"http://{host}:{listener.getsockname()[1]}"
            assert address_of("::1", listener).startswith("http://[::1]:")


def test_a_port_that_is_taken_and_one_that_is_none():
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=f":{port} cannot be used .*0 for any free one"),
            listening("127.0.0.1", port),
        ):
            pass
    with pytest.raises(ConfigError, match="cannot be used"), listening("127.0.0.1", 70_000):
        pass


async def test_it_serves_until_it_is_cancelled():
    async def hello(scope, receive, send):
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})

    with listening("127.0.0.1", 0) as listener:
        address = address_of("127.0.0.1", listener)
        serving = asyncio.create_task(serve_until_cancelled(hello, listener, lifespan="off"))
        read = lambda: urllib.request.urlopen(address, timeout=20).read()
        assert await asyncio.to_thread(read) == b"hello"
        serving.cancel()
        await asyncio.wait({serving}, timeout=20)
        assert serving.cancelled()


async def test_an_answer_that_its_end_cuts_off_shows_no_traceback(caplog):
    asked = asyncio.Event()

    async def never(scope, receive, send):
        asked.set()
        await asyncio.Event().wait()

    with listening("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(serve_until_cancelled(never, listener, grace=0, lifespan="off"))
        read = asyncio.to_thread(urllib.request.urlopen, address_of("127.0.0.1", listener), timeout=20)
        reading = asyncio.create_task(read)
        await asked.wait()
        serving.cancel()
        await asyncio.wait({serving, reading})
    assert isinstance(reading.exception(), OSError)
    assert [record.exc_info for record in caplog.records if record.exc_info] == []


# --- requests that are half sent ---------------------------------------------------------------------------

HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n"


@contextlib.asynccontextmanager
async def half_open(monkeypatch, sent, *, seconds=0.3, waits=0.6):
    """A connection to a server that gives requests `seconds`, and whose application waits; `sent` is on its way."""
    monkeypatch.setattr(sys.modules[serve_until_cancelled.__module__], "_REQUEST_SECONDS", seconds)

    async def slow_echo(scope, receive, send):
        await asyncio.sleep(waits)
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message.get("more_body"):
                break
        else:
            return
        await asyncio.sleep(waits)
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    with listening("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(serve_until_cancelled(slow_echo, listener, lifespan="off"))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        try:
            writer.write(sent)
            yield reader, writer
        finally:
            writer.close()
            serving.cancel()
            await asyncio.wait({serving}, timeout=20)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD, HEAD + b"\r\n12345"], ids=["none", "line", "head", "body"])
async def test_a_connection_whose_request_does_not_arrive_is_closed(monkeypatch, sent):
    async with half_open(monkeypatch, sent) as (reader, _), asyncio.timeout(20):
        assert await reader.read() == b""


async def test_one_that_sends_a_byte_now_and_then_is_closed_too(monkeypatch):
    async with half_open(monkeypatch, HEAD) as (reader, writer), asyncio.timeout(20):
        read = asyncio.ensure_future(reader.read())
        while not read.done():
            with contextlib.suppress(ConnectionError):
                writer.write(b"X")
                await writer.drain()
            await asyncio.sleep(0.05)
        with contextlib.suppress(ConnectionResetError):
            assert await read == b""


async def test_a_whole_request_may_wait_for_its_answer_and_the_connection_is_kept(monkeypatch):
    async with half_open(monkeypatch, HEAD + b"\r\n0123456789") as (reader, writer), asyncio.timeout(20):
        assert (await reader.readuntil(b"0123456789")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET / HT")
        assert await reader.read() == b""


async def test_a_body_that_the_application_does_not_read_yet_is_waited_for(monkeypatch):
    body = b"x" * 1_000_000
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with half_open(monkeypatch, head + body) as (reader, _), asyncio.timeout(20):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert len(await reader.readexactly(len(body))) == len(body)


async def test_the_time_of_the_application_is_not_taken_from_the_client(monkeypatch):
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100010\r\n\r\n"
    # A time ends at 0.6, 1.2 and 1.8 s; the application begins to read at 1 s.
    async with half_open(monkeypatch, head + b"x" * 100_000, seconds=0.6, waits=1.0) as (reader, writer):
        async with asyncio.timeout(20):
            await asyncio.sleep(1.5)
            writer.write(b"0123456789")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            assert len(await reader.readexactly(100_010)) == 100_010
