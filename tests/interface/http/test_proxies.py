"""Requests through a proxy: which one, who is told what, tunnels, TLS inside TLS."""

import asyncio
import contextlib
import socket
import ssl

import pytest

from SimpleLLMFunc.errors import BadReply, ConfigError, ConnectionFailed
from SimpleLLMFunc.interface.http import session
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.asking import HELLO
from tests.support.server import LoopbackServer
from tests.support.tls import certificate, server_context

KEY = "sk-CANARY0123456789abcdefghij"


async def test_the_proxy_of_the_environment_is_asked(server, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://user:proxy-password@127.0.0.1:{server.port}")
    reply = await OpenAICompatible("m", base_url="http://far.example/v1", api_key=KEY).chat(HELLO)
    assert reply.text == "hello"
    assert server.requests[0].path == "http://far.example/v1/chat/completions"
    assert server.requests[0].headers["proxy-authorization"] == "Basic dXNlcjpwcm94eS1wYXNzd29yZA=="
    assert server.requests[0].key == KEY


async def test_a_proxy_of_a_kind_we_do_not_know_is_said(monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(ConfigError, match="socks5"):
        await OpenAICompatible("m", base_url="http://far.example/v1", api_key=KEY).chat(HELLO)


async def test_netrc_does_not_replace_the_key(server, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    await OpenAICompatible("m", base_url=server.base_url, api_key=KEY).chat(HELLO)
    assert server.requests[0].key == KEY


class Proxy:
    """A proxy that opens tunnels to one server, whatever host it is asked for."""

    def __init__(self, port, tls=None, answer=b"HTTP/1.1 200 Connection established\r\n\r\n"):
        self.heads = []
        self._port = port
        self._tls = tls
        self._answer = answer
        self._tasks = set()

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head.decode())
            there_reader, there = await asyncio.open_connection("127.0.0.1", self._port)
            if head.startswith(b"CONNECT "):
                writer.write(self._answer)
            else:
                there.write(head)
            await asyncio.gather(self._pass_on(reader, there), self._pass_on(there_reader, writer))

    async def _pass_on(self, reader, writer):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await (await session.session_of_this_loop()).close()
        async with asyncio.timeout(10):
            await asyncio.gather(*self._tasks)
        await self._server.wait_closed()


@pytest.fixture
def every_host_is_here(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _host, port, *_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))],
    )


@pytest.mark.parametrize("is_secure_proxy", [False, True], ids=["http proxy", "https proxy"])
async def test_a_tunnel_carries_tls_and_is_used_again(every_host_is_here, monkeypatch, is_secure_proxy):
    async with (
        LoopbackServer(tls=server_context()) as server,
        Proxy(server.port, server_context() if is_secure_proxy else None) as proxy,
    ):
        scheme = "https" if is_secure_proxy else "http"
        monkeypatch.setenv("https_proxy", f"{scheme}://me:the-password@proxy.example:{proxy.port}")
        llm = OpenAICompatible("m", base_url="https://far.example/v1", api_key=KEY, max_retries=0)
        for _ in range(3):
            assert (await llm.chat(HELLO)).text == "hello"
        text = "x" * 3_000_000
        assert (await llm.chat([{"role": "user", "content": text}])).text == text
        pieces = [piece.text async for piece in llm.chat_stream(HELLO)]
        assert "".join(pieces) == "hello"
        (head,) = proxy.heads
        assert head.startswith("CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n") or "Host: far" in head
        assert "Proxy-Authorization: Basic " in head
        assert KEY not in head
        assert all(request.key == KEY for request in server.requests)
        assert not any("proxy-authorization" in request.headers for request in server.requests)


async def test_a_tunnel_to_someone_else_is_refused(every_host_is_here, monkeypatch):
    """The proxy may be anybody; whoever is behind it has to show that it is the host."""
    async with LoopbackServer(tls=server_context()) as server, Proxy(server.port) as proxy:
        monkeypatch.setenv("https_proxy", f"http://proxy.example:{proxy.port}")
        llm = OpenAICompatible("m", base_url="https://another.example/v1", api_key=KEY, max_retries=3)
        with pytest.raises(ConnectionFailed, match=r"TLS: another.example:443") as caught:
            await llm.chat(HELLO)
        assert caught.value.tries == 1
        assert server.requests == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"220 mail.example ESMTP\r\n\r\n", BadReply),
        (b"HTTP/1.1 302 Found\r\nlocation: http://login.example/\r\ncontent-length: 0\r\n\r\n", ConnectionFailed),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nand then no TLS at all, whatever comes now" * 9, BadReply),
    ],
    ids=["no HTTP", "a page to log in", "no TLS"],
)
async def test_a_proxy_that_opens_no_tunnel(every_host_is_here, monkeypatch, answer, error):
    async with LoopbackServer() as server, Proxy(server.port, answer=answer) as proxy:
        monkeypatch.setenv("https_proxy", f"http://proxy.example:{proxy.port}")
        llm = OpenAICompatible("m", base_url="https://far.example/v1", api_key=KEY, max_retries=0)
        with pytest.raises(error):
            await llm.chat(HELLO, deadline=10)
        assert not (await session.session_of_this_loop()).connector._acquired
