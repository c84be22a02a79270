"""One session per event loop; closed with it, never shared with a child."""

import asyncio
import contextlib
import gc
import socket
import threading
import time

import openai
import pytest

from SimpleLLMFunc.errors import BadReply, ConnectionFailed
from SimpleLLMFunc.interface.http import openai_client, session, timeouts
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.asking import HELLO
from tests.support.busy_loop import ThreadServer
from tests.support.server import Answer, LoopbackServer


async def opened():
    async with LoopbackServer() as server:
        assert (await OpenAICompatible("m", base_url=server.base_url).chat(HELLO)).text == "hello"
        return await session.session_of_this_loop()


async def test_a_loop_has_one_session_and_another_after_it_was_closed():
    first = await opened()
    assert await opened() is first
    assert not first.closed
    await first.close()
    assert await opened() is not first


def test_each_loop_has_its_own_and_closes_it_and_reads_certificates_off_the_loop(monkeypatch):
    threads = []
    monkeypatch.setattr(session, "tls_context", lambda: bool(threads.append(threading.current_thread())) or True)
    first, second = asyncio.run(opened()), asyncio.run(opened())
    assert (first is second, first.closed, second.closed) == (False, True, True)
    assert threads[0] is not threading.current_thread()


def test_nothing_is_kept_of_a_connection_that_is_closed():
    known = len(session._latest)
    asyncio.run(opened())
    gc.collect()
    assert len(session._latest) <= known


async def test_a_server_that_speaks_first_is_asked_once():
    def serve(sock, _):
        sock.sendall(b"220 mail.example ESMTP\r\n")
        while sock.recv(65536):
            pass

    with ThreadServer(serve) as server:
        with pytest.raises(BadReply):
            await OpenAICompatible("m", base_url=server.base_url, max_retries=0).chat(HELLO, deadline=5)
        assert server.connections == 1


@pytest.mark.parametrize("is_through_client", [False, True])
async def test_connecting_takes_no_longer_than_it_may(is_through_client, monkeypatch):
    monkeypatch.setattr(timeouts, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(openai_client, "CONNECT_SECONDS", 0.1)
    with socket.socket() as listening, contextlib.ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):  # the queue is full: the system answers no further one
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        async with openai.AsyncOpenAI(api_key="sk-test-12345678", base_url=address) as client:
            way = {"client": client} if is_through_client else {"base_url": address}
            llm = OpenAICompatible("m", **way, max_retries=0)
            started = time.monotonic()
            with pytest.raises(ConnectionFailed):
                await llm.chat(HELLO)
            assert 0.1 <= time.monotonic() - started < 5


async def test_connections_are_used_again_and_closed_after_a_while(server, monkeypatch):
    monkeypatch.setattr(session, "_KEEP_ALIVE_SECONDS", 0.1)
    llm = OpenAICompatible("m", base_url=server.base_url)
    async with asyncio.timeout(10):  # to see whether there is news on a connection takes no time
        for _ in range(6):
            await llm.chat(HELLO)
            [piece async for piece in llm.chat_stream(HELLO)]
    assert server.connections == 1
    async with asyncio.timeout(5):
        await server.all_closed()
    await llm.chat(HELLO)
    assert server.connections == 2


async def test_a_call_that_is_given_up_closes_its_connection(server):
    server.answer(Answer(body=b"{}", hold=asyncio.Event()))
    asking = asyncio.ensure_future(OpenAICompatible("m", base_url=server.base_url).chat(HELLO))
    await server.received()
    used = [protocol.transport.get_extra_info("socket") for protocol in session._latest if protocol.transport]
    assert used[-1].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(5):
        await server.all_closed()


async def test_a_server_that_never_reads_is_given_up_and_left():
    ended = threading.Event()

    def serve(sock, _):
        time.sleep(0.6)
        with contextlib.suppress(ConnectionError):
            while sock.recv(65536):
                pass
        ended.set()

    with ThreadServer(serve) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, max_retries=0, timeout=0.3)
        with pytest.raises(ConnectionFailed):
            await llm.chat([{"role": "user", "content": "x" * 20_000_000}])
        assert await asyncio.to_thread(ended.wait, 5)
