"""Raw asyncio sockets on loopback: requests are read by the byte, and a subclass writes whatever bytes it likes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

TLS_HANDSHAKE = 22
"""The first byte that a client sends who wants TLS."""


class HungUp(ConnectionError):
    """The client is gone."""


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived; `body` is the parsed JSON, None where it was none."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any
    connection: int

    @property
    def stream(self) -> bool:
        return (isinstance(self.body, dict) and bool(self.body.get("stream"))) or ":stream" in self.path

    @property
    def key(self) -> str:
        said = self.headers.get("x-api-key") or self.headers.get("x-goog-api-key")
        return said or self.headers.get("authorization", "").removeprefix("Bearer ")


# --- bytes -----------------------------------------------------------------------------------------------


def head(status: int | str = 200, *, version: str = "HTTP/1.1", **headers: str | int) -> bytes:
    """The head of a reply; underscores in header names are hyphens."""
    line = f"{status} Scripted" if isinstance(status, int) else status
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"{version} {line}\r\n{fields}\r\n".encode("latin-1")


def with_length(
    body: bytes, status: int = 200, *, content_type: str = "application/json", **headers: str | int
) -> bytes:
    """A whole reply whose length is told."""
    return head(status, content_type=content_type, content_length=len(body), **headers) + body


def in_chunk(data: bytes) -> bytes:
    """One piece of a body in chunked encoding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


# --- one exchange ----------------------------------------------------------------------------------------


class Exchange:
    """One request, and the wire that its answer goes out on.

    Attributes:
        number: which request this is, from 1.
        keep: whether the connection stays open when the act has ended.
    """

    def __init__(self, request: Recorded, number: int, connection: Connection, server: ByteServer) -> None:
        self.request = request
        self.number = number
        self.server = server
        self.keep = True
        self._connection = connection

    async def send(self, *pieces: bytes, gap: float = 0.0) -> None:
        """Send each piece as a packet of its own as far as that lies with us, `gap` seconds apart."""
        for number, piece in enumerate(pieces):
            if number and gap:
                await self.pause(gap)
            await self._connection.send(piece)

    async def pause(self, seconds: float) -> None:
        """Do nothing for a while.

        Raises:
            HungUp: the client went away meanwhile.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.hold()

    async def hold(self) -> None:
        """Say nothing until the client hangs up.

        Raises:
            HungUp: always.
        """
        await self._connection.gone.wait()
        raise HungUp

    async def hold_until(self, event: asyncio.Event) -> None:
        """Say nothing until the event is set.

        Raises:
            HungUp: the client went away before.
        """
        waiters = [asyncio.ensure_future(each.wait()) for each in (event, self._connection.gone)]
        try:
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()
            await asyncio.gather(*waiters, return_exceptions=True)
        if self._connection.gone.is_set():
            raise HungUp

    def close(self) -> None:
        """Close politely: the client reads the end of the stream."""
        self.keep = False

    def reset(self) -> None:
        """Tear the connection down: the client gets ECONNRESET, and what was on its way is lost."""
        self.keep = False
        self._connection.reset()


class Connection(asyncio.Protocol):
    """One connection: bytes in, one answer per request."""

    def __init__(self, server: ByteServer) -> None:
        self._server = server
        self._received = bytearray()
        self._changed = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self._server._opened(self)
        task = asyncio.get_running_loop().create_task(self._serve())
        self._server.tasks.add(task)
        task.add_done_callback(self._server._ended)

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self._changed.set()
        self._may_write.set()
        self._server._lost(self)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def send(self, data: bytes) -> None:
        if self.gone.is_set() or self._transport.is_closing():
            raise HungUp
        self._transport.write(data)
        await self._may_write.wait()

    def reset(self) -> None:
        sock = self._transport.get_extra_info("socket")
        if sock is not None and not self.gone.is_set():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def _serve(self) -> None:
        try:
            with contextlib.suppress(HungUp):
                while await self._one_exchange():
                    pass
        finally:
            self._transport.close()

    async def _one_exchange(self) -> bool:
        while not self._received or self._server.is_mute:
            await self._more()
        if self._received[0] == TLS_HANDSHAKE:
            # What every HTTP server says to somebody who wants TLS where there is none.
            await self.send(head("400 Bad Request", content_length=0))
            return False
        raw_head = await self._read_until(b"\r\n\r\n")
        first, *lines = raw_head.decode("latin-1").split("\r\n")
        method, path, _version = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b""
            while size := int((await self._read_until(b"\r\n")).strip(), 16):
                body += (await self._read(size + 2))[:-2]
            await self._read_until(b"\r\n")
        else:
            body = await self._read(int(headers.get("content-length") or 0))
        try:
            data = json.loads(body)
        except ValueError:
            data = None
        return await self._server._answer(Recorded(method, path, headers, body, data, self.number), self)

    async def _read_until(self, mark: bytes) -> bytes:
        while (at := self._received.find(mark)) < 0:
            await self._more()
        return self._take(at + len(mark))

    async def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            await self._more()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    async def _more(self) -> None:
        if self.gone.is_set():
            raise HungUp
        self._changed.clear()
        await self._changed.wait()


# --- the server ------------------------------------------------------------------------------------------


class ByteServer:
    """Accepts connections; a subclass answers.

    Attributes:
        port: where it listens, on 127.0.0.1.
        connections: how many connections were opened so far.
        tasks: of its connections.
        is_mute: it says nothing to anybody.
    """

    def __init__(self, *, port: int = 0, tls: ssl.SSLContext | None = None, is_mute: bool = False) -> None:
        self.port = port
        self.connections = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_mute = is_mute
        self._tls = tls
        self._open: set[Connection] = set()
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self.port, ssl=self._tls, backlog=4096
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        # The loop may not have told us yet of connections that it has accepted.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._open):
            connection.reset()
        await asyncio.sleep(0)

    async def _answer(self, request: Recorded, connection: Connection) -> bool:
        """Answer a request; return whether the connection stays open."""
        raise NotImplementedError

    @property
    def open_connections(self) -> int:
        return len(self._open)

    async def until(self, is_true: Callable[[], bool], seconds: float = 5.0) -> bool:
        """Wait until something is true that changes with requests and connections; return whether it is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not is_true():
                    self._changed.clear()
                    await self._changed.wait()
        return is_true()

    def _opened(self, connection: Connection) -> int:
        self._open.add(connection)
        self.connections += 1
        self._changed.set()
        return self.connections

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._changed.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self._changed.set()
