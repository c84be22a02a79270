"""A server that misbehaves byte by byte: raw asyncio sockets on loopback, one named play per fault.

A play is a list of acts, one per request; an act gets the exchange and writes whatever bytes it likes, when it likes.
After the last act the last one is played again. The address names the play, so one server can offer all of them::

    async with FaultServer({"burst": [status(503), status(503), good]}) as server:
        llm = OpenAICompatible("m", base_url=server.address("burst"))

``python -m tests.faults.server`` serves every scenario of `tests.faults.scenarios` until it is interrupted, so that any
client can be tried against them, on any of the four wires; there a play begins anew after its last act.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.faults.speech import SPEECH, SPEECHES, wire_of

TLS_HANDSHAKE = 22
"""The first byte that a client sends who wants TLS."""


class HungUp(ConnectionError):
    """The client is gone."""


@dataclass(frozen=True)
class Request:
    """One request as it arrived.

    Attributes:
        data: the parsed JSON of the body, None where it was none.
        moment: seconds on the loop's clock.
    """

    method: str
    path: str
    headers: dict[str, str]
    data: Any
    connection: int
    moment: float

    @property
    def stream(self) -> bool:
        return (isinstance(self.data, dict) and bool(self.data.get("stream"))) or ":stream" in self.path

    @property
    def wire(self) -> str:
        return wire_of(self.path.partition("?")[0])

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
        number: which request of the play this is, from 1.
        keep: whether the connection stays open when the act has ended.
    """

    def __init__(self, request: Request, number: int, connection: _Connection, server: FaultServer) -> None:
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

    def close(self) -> None:
        """Close politely: the client reads the end of the stream."""
        self.keep = False

    def reset(self) -> None:
        """Tear the connection down: the client gets ECONNRESET, and what was on its way is lost."""
        self.keep = False
        self._connection.reset()


Act: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""What happens with one request."""


class _Connection(asyncio.Protocol):
    """One connection: bytes in, one act per request."""

    def __init__(self, server: FaultServer) -> None:
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
        task.add_done_callback(self._server.tasks.discard)

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
        while not self._received:
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
        moment = asyncio.get_running_loop().time()
        return await self._server._answer(Request(method, path, headers, data, self.number, moment), self)

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


@dataclass
class _Play:
    acts: Sequence[Act]
    requests: list[Request] = field(default_factory=list)


class FaultServer:
    """Serves plays by name; see the module.

    Args:
        plays: the acts of each play.
        again: a play begins anew after its last act, instead of repeating that one.

    Attributes:
        port: where it listens, on 127.0.0.1.
        busy: how many exchanges are under way.
        tasks: of its connections.
        connections: how many connections were opened so far.
        failures: what an act raised, beside its client's going away: a fault of the test.
    """

    def __init__(
        self,
        plays: Mapping[str, Sequence[Act]],
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        again: bool = False,
    ) -> None:
        self.port = port
        self._again = again
        self.busy = 0
        self.connections = 0
        self.failures: list[BaseException] = []
        self._plays = {name: _Play(acts) for name, acts in plays.items()}
        self._tls = tls
        self.tasks: set[asyncio.Task[None]] = set()
        self._open: set[_Connection] = set()
        self._changed = asyncio.Event()

    async def __aenter__(self) -> FaultServer:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, ssl=self._tls, backlog=4096
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

    def address(self, play: str, *, scheme: str = "http", host: str = "127.0.0.1") -> str:
        """The base URL of a play."""
        return f"{scheme}://{host}:{self.port}/{play}/v1"

    def requests(self, play: str) -> list[Request]:
        """The requests of a play so far, in order of arrival."""
        return self._plays[play].requests

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

    def _opened(self, connection: _Connection) -> int:
        self._open.add(connection)
        self.connections += 1
        self._changed.set()
        return self.connections

    def _lost(self, connection: _Connection) -> None:
        self._open.discard(connection)
        self._changed.set()

    async def _answer(self, request: Request, connection: _Connection) -> bool:
        play = self._plays.get(request.path.split("/")[1])
        if play is None:
            await connection.send(with_length(b'{"error": {"message": "no such scenario"}}', 404))
            return True
        play.requests.append(request)
        count = len(play.requests)
        act = play.acts[(count - 1) % len(play.acts) if self._again else min(count, len(play.acts)) - 1]
        exchange = Exchange(request, count, connection, self)
        self.busy += 1
        self._changed.set()
        SPEECH.set(SPEECHES[request.wire]())
        try:
            await act(exchange)
        except (HungUp, asyncio.CancelledError):
            raise
        except BaseException as error:
            self.failures.append(error)
            raise
        finally:
            self.busy -= 1
            self._changed.set()
        return exchange.keep


async def _serve_for_ever(port: int) -> None:
    from tests.faults.scenarios import SCENARIOS

    plays = {scenario.name: scenario.acts for scenario in SCENARIOS if not scenario.tls}
    async with FaultServer(plays, port=port, again=True) as server:
        print(f"{len(plays)} scenarios, each at {server.address('NAME')}", flush=True)
        await asyncio.Event().wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve every scenario, or list them."""
    from tests.faults.scenarios import SCENARIOS

    parser = argparse.ArgumentParser(prog="python -m tests.faults.server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--list", action="store_true", help="the scenarios by name, and end")
    options = parser.parse_args(arguments)
    if options.list:
        for scenario in SCENARIOS:
            print(f"{scenario.name:32} {scenario.row:>5}  {scenario.fault}")
        return
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_for_ever(options.port))


if __name__ == "__main__":
    main()
