"""How connections come about: names, addresses that do not answer, proxies, tunnels, TLS inside TLS."""

import asyncio
import contextlib
import os
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from SimpleLLMFunc.errors import BadReply, ConnectionFailed
from SimpleLLMFunc.interface.http import connecting, sessions
from SimpleLLMFunc.interface.http.connecting import Names, first_reached
from SimpleLLMFunc.interface.http.sessions import session_of_this_loop
from SimpleLLMFunc.interface.http.wire_errors import ConnectFailed
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.server import LoopbackServer

HELLO = [{"role": "user", "content": "hello"}]
KEY = "sk-CANARY0123456789abcdefghij"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith("SSL_CERT"):
            monkeypatch.delenv(name)


# --- names -----------------------------------------------------------------------------------------------


class Looked:
    """Look-ups, counted."""

    def __init__(self, monkeypatch, *addresses):
        self.asked = []
        self.addresses = list(addresses)
        monkeypatch.setattr(connecting, "_addresses", self)

    def __call__(self, host, port):
        self.asked.append(host)
        if not self.addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in self.addresses]


async def test_many_who_ask_at_a_time_ask_once_and_others_know(monkeypatch):
    looked = Looked(monkeypatch, ("127.0.0.1", 1))
    names = Names()
    found = await asyncio.gather(*(names.look_up("host", 1) for _ in range(20)))
    assert all(each == found[0] for each in found)
    await names.look_up("host", 1)
    assert looked.asked == ["host"]
    names.forget("host", 1)
    await names.look_up("host", 1)
    await names.look_up("other", 1)
    assert looked.asked == ["host", "host", "other"]


async def test_a_name_that_stands_for_several_servers_means_them_all(monkeypatch):
    Looked(monkeypatch, ("127.0.0.1", 1), ("127.0.0.2", 1), ("127.0.0.3", 1))
    names = Names()
    first = [(await names.look_up("host", 1))[0][4][0] for _ in range(6)]
    assert sorted(set(first)) == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


async def test_one_who_gives_up_takes_nobody_along(monkeypatch):
    looked = Looked(monkeypatch, ("127.0.0.1", 1))
    names = Names()
    impatient, patient = (asyncio.ensure_future(names.look_up("host", 1)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    assert len(await patient) == 1
    assert looked.asked == ["host"]
    await names.close()


async def test_a_name_that_nobody_knows(monkeypatch):
    looked = Looked(monkeypatch)
    llm = OpenAICompatible("m", base_url="http://nowhere.example/v1", api_key=KEY, max_retries=1, retry_delay=0.001)
    with pytest.raises(ConnectionFailed, match=r"nowhere.example:80: Name or service not known"):
        await llm.chat(HELLO)
    assert len(looked.asked) == 2


async def test_an_address_where_nobody_is_does_not_stand_in_the_way(monkeypatch):
    async with LoopbackServer() as server:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # and does not listen
            Looked(monkeypatch, nobody.getsockname(), ("127.0.0.1", server.port))
            llm = OpenAICompatible("m", base_url="http://far.example/v1", api_key=KEY, max_retries=0)
            assert (await llm.chat(HELLO)).text == "hello"


async def test_an_address_that_does_not_answer_is_not_waited_for(monkeypatch):
    async with LoopbackServer() as server:
        with socket.socket() as listening, contextlib.ExitStack() as stack:
            listening.bind(("127.0.0.1", 0))
            listening.listen(0)
            for _ in range(3):  # the queue is full: the system answers no further one
                one = stack.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(listening.getsockname())
            Looked(monkeypatch, listening.getsockname(), ("127.0.0.1", server.port))
            llm = OpenAICompatible("m", base_url="http://far.example/v1", api_key=KEY, max_retries=0)
            assert (await llm.chat(HELLO, deadline=5)).text == "hello"


def test_families_take_turns():
    def of(family, *names):
        return [(family, 1, 6, "", (name, 1)) for name in names]

    addresses = of(10, "six", "six again", "and again") + of(2, "four", "four again")
    assert [each[4][0] for each in connecting._in_turn(addresses)] == [
        "six", "four", "six again", "four again", "and again",
    ]  # fmt: skip


async def test_all_that_failed_is_told():
    def at(port):
        return (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))

    with pytest.raises(ConnectionRefusedError):
        await first_reached([at(1), at(9)])
    with pytest.raises(OSError, match="no address"):
        await first_reached([])
    unknown = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("255.255.255.255", 1))
    with pytest.raises(OSError, match=r".+; .+"):
        await first_reached([at(1), unknown])


async def test_whoever_gives_up_leaves_no_socket_behind():
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir())) if open_files.is_dir() else 0
    with socket.socket() as listening, contextlib.ExitStack() as stack:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", listening.getsockname())
        reaching = asyncio.ensure_future(first_reached([address, address, address]))
        await asyncio.sleep(0.3)
        reaching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reaching
    if before:
        assert len(list(open_files.iterdir())) <= before


async def test_names_kept_are_few(monkeypatch):
    Looked(monkeypatch, ("127.0.0.1", 1))
    names = Names()
    for number in range(1000):
        await names.look_up(f"host{number}", 1)
    assert len(names._known) <= connecting._MOST_NAMES


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "host:1: Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "host:1: Name or service not known"),
        (OSError("Multiple exceptions: a, b"), "host:1: Multiple exceptions: a, b"),
        (TimeoutError(), "host:1: TimeoutError"),
    ],
)
def test_a_failure_is_told_in_few_words(error, said):
    assert str(ConnectFailed("host", 1, error)) == said


# --- proxies ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=far.example"]
    command += ["-addext", "subjectAltName=DNS:far.example,DNS:proxy.example", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return key, cert


def server_context(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    return context


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
        await (await session_of_this_loop()).close()
        async with asyncio.timeout(10):
            await asyncio.gather(*self._tasks)
        await self._server.wait_closed()


def names_of(monkeypatch):
    """Every host is this machine."""
    monkeypatch.setattr(
        connecting, "_addresses", lambda _host, port: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    )


@pytest.mark.parametrize("is_secure_proxy", [False, True], ids=["http proxy", "https proxy"])
async def test_a_tunnel_carries_tls_and_is_used_again(certificate, monkeypatch, is_secure_proxy):
    names_of(monkeypatch)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    context = server_context(certificate)
    async with (
        LoopbackServer(tls=context) as server,
        Proxy(server.port, server_context(certificate) if is_secure_proxy else None) as proxy,
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


async def test_an_https_proxy_is_asked_for_plain_http_too(certificate, monkeypatch):
    names_of(monkeypatch)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    async with LoopbackServer() as server, Proxy(server.port, server_context(certificate)) as proxy:
        monkeypatch.setenv("http_proxy", f"https://proxy.example:{proxy.port}")
        llm = OpenAICompatible("m", base_url="http://far.example/v1", api_key=KEY, max_retries=0)
        for _ in range(2):
            assert (await llm.chat(HELLO)).text == "hello"
        assert server.requests[0].path == "http://far.example/v1/chat/completions"
        assert len(proxy.heads) == 1


async def test_a_tunnel_to_somebody_else_is_refused(certificate, monkeypatch):
    """The proxy may be anybody; whoever is behind it has to show that it is the host."""
    names_of(monkeypatch)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    async with LoopbackServer(tls=server_context(certificate)) as server, Proxy(server.port) as proxy:
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
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nand then no TLS at all, whatever comes now" * 9,
            BadReply,
        ),
    ],
    ids=["no HTTP", "a page to log in", "no TLS"],
)
async def test_a_proxy_that_opens_no_tunnel(certificate, monkeypatch, answer, error):
    names_of(monkeypatch)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    async with LoopbackServer() as server, Proxy(server.port, answer=answer) as proxy:
        monkeypatch.setenv("https_proxy", f"http://proxy.example:{proxy.port}")
        llm = OpenAICompatible("m", base_url="https://far.example/v1", api_key=KEY, max_retries=0)
        with pytest.raises(error):
            await llm.chat(HELLO, deadline=10)
        session = await session_of_this_loop()
        assert session.in_use == 0
        assert not any(session._resting.values())


async def test_a_proxy_that_says_nothing_is_given_up_in_time(monkeypatch):
    names_of(monkeypatch)
    monkeypatch.setattr(sessions, "CONNECT_SECONDS", 0.1)
    async with LoopbackServer() as server, Proxy(server.port, answer=b"") as proxy:
        monkeypatch.setenv("https_proxy", f"http://proxy.example:{proxy.port}")
        llm = OpenAICompatible("m", base_url="https://far.example/v1", api_key=KEY, max_retries=0)
        with pytest.raises(ConnectionFailed, match=r"connecting to far.example took too long"):
            await llm.chat(HELLO)
        assert (await session_of_this_loop()).in_use == 0
