"""One session per event loop; closed with it, never shared with a child."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import openai
import pytest

from SimpleLLMFunc.errors import BadReply, ConnectionFailed
from SimpleLLMFunc.interface.http import sessions
from SimpleLLMFunc.interface.http.openai_client import exchange as client_exchange
from SimpleLLMFunc.interface.http.request_head import RequestHeaders
from SimpleLLMFunc.interface.http.sessions import open_session, session_of_this_loop
from SimpleLLMFunc.interface.http.url import parsed_url
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.server import LoopbackServer

HELLO = [{"role": "user", "content": "hello"}]


async def test_a_loop_has_one_session():
    assert open_session() is None
    first = await session_of_this_loop()
    assert await session_of_this_loop() is open_session() is first
    assert len({id(session) for session in await asyncio.gather(*(session_of_this_loop() for _ in range(5)))}) == 1
    assert not first.closed


async def test_a_session_that_somebody_closed_is_replaced():
    first = await session_of_this_loop()
    await first.close()
    second = await session_of_this_loop()
    assert second is not first
    assert not second.closed


def test_each_loop_has_its_own_and_closes_it():
    async def session():
        return await session_of_this_loop()

    first, second = asyncio.run(session()), asyncio.run(session())
    assert first is not second
    assert first.closed
    assert second.closed


def test_loops_in_threads_do_not_meet():
    found = []

    async def session():
        found.append(await session_of_this_loop())

    threads = [threading.Thread(target=lambda: asyncio.run(session())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(session) for session in found}) == 8
    assert all(session.closed for session in found)


def run_program(text):
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(text)],
        capture_output=True, text=True, timeout=50, env={**os.environ, "PYTHONPATH": str(root)}, cwd=root, check=False,
    )  # fmt: skip
    noise = [line for line in done.stderr.splitlines() if not line.startswith(("Executing <", "Close <"))]
    assert noise == []
    return done


PRELUDE = """
import asyncio, os, sys, threading
from tests.support.server import LoopbackServer
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible

started = threading.Event()

def serve():
    async def run():
        async with LoopbackServer() as server:
            globals()["server"] = server
            started.set()
            await asyncio.Event().wait()
    asyncio.run(run())

threading.Thread(target=serve, daemon=True).start()
started.wait()
llm = OpenAICompatible("m", base_url=server.base_url)

async def ask(text="hello"):
    assert (await llm.chat([{"role": "user", "content": text}])).text == text
"""


def program(text):
    return textwrap.dedent(PRELUDE) + textwrap.dedent(text)


def test_a_loop_that_nobody_closes():
    done = run_program(
        program(
            """
            loop = asyncio.new_event_loop()
            loop.run_until_complete(ask())
            import atexit
            atexit.register(lambda: print("open" if not loop.is_closed() else "closed"))
            atexit.register(loop.close)
            print("asked")
            """
        )
    )
    assert done.stdout == "asked\nclosed\n"


def test_a_loop_that_runs_in_a_daemon_thread_at_the_end():
    done = run_program(
        program(
            """
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, daemon=True)
            thread.start()
            asyncio.run_coroutine_threadsafe(ask(), loop).result()
            from SimpleLLMFunc.interface.http import sessions
            session = sessions._sessions.known[loop][0]
            import atexit

            def end():
                print(session.closed)
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                loop.close()

            sessions._sessions.close_all()
            end()
            """
        )
    )
    assert done.stdout == "True\n"


def test_sync_calls_over_the_bridge():
    done = run_program(
        program(
            """
            from SimpleLLMFunc.runtime.sync import run_sync
            for number in range(3):
                run_sync(ask(str(number)))
            threads = [threading.Thread(target=run_sync, args=(ask(str(n)),)) for n in range(20)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(server.connections <= 21)
            """
        )
    )
    assert done.stdout == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("where", ["between", "inside"])
def test_a_forked_child_makes_its_own(where):
    done = run_program(
        program(
            f"""
            where = {where!r}

            def child():
                before = len(server.requests)
                asyncio.run(ask("child"))
                sys.stdout.write("child\\n")
                sys.stdout.flush()
                os._exit(0)

            def fork():
                import warnings
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # newer Pythons warn of threads; the server's is not used there
                    return os.fork()

            async def parent():
                await ask("one")
                if where == "inside":
                    pid = fork()
                    if pid == 0:
                        thread = threading.Thread(target=child)  # the parent's loop counts as running on this one
                        thread.start()
                        thread.join()
                    assert (await asyncio.to_thread(os.waitpid, pid, 0))[1] == 0
                await ask("two")

            asyncio.run(parent())
            if where == "between":
                loop = asyncio.new_event_loop()
                loop.run_until_complete(ask("kept"))
                pid = fork()
                if pid == 0:
                    child()
                assert os.waitpid(pid, 0)[1] == 0
                loop.run_until_complete(ask("still"))
                loop.close()
            print("parent")
            """
        )
    )
    assert done.stdout == "child\nparent\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_ends_quietly():
    done = run_program(
        program(
            """
            loop = asyncio.new_event_loop()
            loop.run_until_complete(ask("kept"))
            import warnings
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pid = os.fork()
            if pid:
                assert os.waitpid(pid, 0)[1] == 0
                loop.run_until_complete(ask("still"))
            else:
                asyncio.run(ask("child"))
            if pid:
                loop.close()
                print("parent")
            else:
                print("child")
                sys.stdout.flush()
            """
        )
    )
    assert sorted(done.stdout.split()) == ["child", "parent"]


async def test_an_answer_that_nobody_asked_for_is_nobodys_answer():
    late, said = asyncio.Event(), asyncio.Event()
    connections = []

    async def serve(reader, writer):
        connections.append(writer)
        with contextlib.closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(_http_reply(f"for connection {len(connections)}"))
                await late.wait()
                writer.write(_http_reply("for somebody else"))
                said.set()

    async with await asyncio.start_server(_quietly(serve), "127.0.0.1", 0) as server:
        llm = OpenAICompatible("m", base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        assert (await llm.chat(HELLO)).text == "for connection 1"
        late.set()
        await said.wait()
        assert (await llm.chat(HELLO)).text == "for connection 2"
        await (await session_of_this_loop()).close()


async def test_a_server_that_speaks_first_is_asked_once():
    asked = []

    async def serve(reader, writer):
        asked.append(writer)
        with contextlib.closing(writer):
            writer.write(b"220 mail.example ESMTP\r\n")
            await reader.read()

    async with await asyncio.start_server(_quietly(serve), "127.0.0.1", 0) as server:
        llm = OpenAICompatible("m", base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", max_retries=0)
        with pytest.raises(BadReply):
            await llm.chat(HELLO, deadline=5)
        assert len(asked) == 1


def _http_reply(text):
    body = json.dumps({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _quietly(serve):
    async def quiet(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)

    return quiet


@pytest.mark.parametrize("is_through_client", [False, True])
async def test_connecting_takes_no_longer_than_it_may(is_through_client, monkeypatch):
    monkeypatch.setattr(sessions, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(client_exchange, "CONNECT_SECONDS", 0.1)
    with socket.socket() as listening, contextlib.ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):  # the queue is full: the system answers no further one
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        async with openai.AsyncOpenAI(api_key="sk-test-12345678", base_url=address) as client:
            llm = (
                OpenAICompatible("m", client=client, max_retries=0)
                if is_through_client
                else OpenAICompatible("m", base_url=address, max_retries=0)
            )
            started = time.monotonic()
            with pytest.raises(ConnectionFailed):
                await llm.chat(HELLO)
            assert 0.1 <= time.monotonic() - started < 5


def _url(server):
    return parsed_url(f"http://127.0.0.1:{server.port}/")


async def _asked(session, server):
    """Ask once, and return the connection that has rested since."""
    url = _url(server)
    connection = await session.connection_to(url)
    incoming = await connection.ask(RequestHeaders({}).head(url) + b"Content-Length: 2\r\n\r\n", b"{}")
    while incoming.take() is None:
        await incoming.news()
    return connection


async def test_the_connection_that_rested_last_is_used_first():
    async with LoopbackServer() as server:
        session = await session_of_this_loop()
        first, second = await asyncio.gather(_asked(session, server), _asked(session, server))
        assert first is not second
        assert session.in_use == 0
        latest = list(session._resting[first.place])[-1]
        assert await session.connection_to(_url(server)) is latest
        assert session.in_use == 1
        latest.abort()
        await session.close()


async def test_connections_that_nobody_needs_are_closed_after_a_while(monkeypatch):
    monkeypatch.setattr(sessions, "_KEEP_ALIVE_SECONDS", 0.1)
    async with LoopbackServer() as server:
        session = await session_of_this_loop()
        await _asked(session, server)
        assert len(session.open) == 1
        async with asyncio.timeout(5):
            while session.open:
                await asyncio.sleep(0.01)
        assert not session._resting
        assert session._sweep is None
        await _asked(session, server)
        assert server.connections == 2


async def test_a_connection_that_the_server_closed_is_not_kept():
    gone = asyncio.Event()

    async def serve(reader, writer):
        with contextlib.closing(writer):
            await reader.readuntil(b"{}")
            writer.write(_http_reply("hello"))
            await writer.drain()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(_quietly(serve), "127.0.0.1", 0) as server:
        llm = OpenAICompatible("m", base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", max_retries=0)
        url = parsed_url(llm.base_url)
        session = await session_of_this_loop()
        for _ in range(3):
            connection = await session.connection_to(url)
            incoming = await connection.ask(RequestHeaders({}).head(url) + b"Content-Length: 2\r\n\r\n", b"{}")
            while incoming.take() is None:
                await incoming.news()
            async with asyncio.timeout(5):
                await gone.wait()
            gone.clear()
        async with asyncio.timeout(5):
            while session.open:
                await asyncio.sleep(0.001)
        assert not any(session._resting.values())
