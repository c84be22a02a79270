"""One HTTP/1.1 connection: a request goes out in one write, and its reply comes in as the parser takes it apart.

An HTTP client made for everything spends most of the time of a small request on cookies, hooks, header dictionaries
and stream objects, and the streams of asyncio a quarter of a megabyte for each read. Here a read goes into one buffer
that all connections of a loop share, and from there into llhttp, the parser of Node.js.

Source: RFC 9112 (HTTP/1.1); what is a well-formed message is decided by llhttp.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.interface.http.response_body import Incoming
from SimpleLLMFunc.interface.http.wire_errors import BodyBroken, Disconnected, NotHttp

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.http.connecting import Place
    from SimpleLLMFunc.interface.http.sessions import Session

__all__ = ["BUFFER", "Connection"]

BUFFER = 256 * 1024
"""Bytes that are read at once, at most."""

_LONGEST_HEAD = 64 * 1024
_PIECE = 256 * 1024
_TOO_LONG = f"its head is longer than {_LONGEST_HEAD} bytes"
_LARGE_REQUEST = 1024 * 1024
_SHOWN = 200
_SWITCHING = 101


class Connection(asyncio.BufferedProtocol):
    """A connection to one place, for one request after the other.

    Args:
        session: whose it is; told when it rests and when it is gone.
        place: where it leads.
        buffer: what reads go into.
        is_kept: whether it rests after a request; else who asked goes on with it.

    Attributes:
        place: as given.
        has_extra: something came behind the reply that nobody asked for.
        rests_since: the loop's time when the latest request was over.
    """

    __slots__ = (
        "_drained",
        "_fields",
        "_has_news",
        "_head_size",
        "_incoming",
        "_is_interim",
        "_is_kept",
        "_is_paused",
        "_is_sent",
        "_may_stay",
        "_parser",
        "_problem",
        "_session",
        "_shown",
        "_transport",
        "_view",
        "has_extra",
        "place",
        "rests_since",
    )

    def __init__(self, session: Session, place: Place, buffer: bytearray, *, is_kept: bool = True) -> None:
        import httptools

        self.place = place
        self.rests_since = 0.0
        self._session = session
        self._is_kept = is_kept
        self._view = memoryview(buffer)
        self._transport: asyncio.Transport | None = None
        self._incoming: Incoming | None = None
        self._has_news: Callable[[], bool] = _yes
        self._drained: asyncio.Future[None] | None = None
        self._fields: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        self._shown = b""
        self._problem = ""
        self._is_interim = False
        self.has_extra = False
        self._is_sent = False
        self._may_stay = False
        self._is_paused = False
        self._parser = httptools.HttpResponseParser(self)
        # What many servers do, and no client minds: lines that end with LF alone, spaces behind the size of a chunk.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)

    # --- one request -------------------------------------------------------------------------------------

    async def ask(self, head: bytes, body: bytes) -> Incoming:
        """Send a request and return its reply as soon as the head has come.

        Args:
            head: all of it, with its empty line.
            body: a long one is written in pieces, as fast as the other side takes them.

        Raises:
            NotHttp: something else came.
            Disconnected, OSError: the connection ended.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise Disconnected("the connection was closed before the request left")
        self._incoming = incoming = Incoming(self)
        self._head_size = 0
        self._is_sent = False
        try:
            if len(body) < _LARGE_REQUEST:
                self._is_sent = True
                transport.write(head + body)
            else:
                transport.write(head)
                await self._write(transport, memoryview(body), incoming)
            while not incoming.status and incoming.error is None:
                await incoming.news()
        except BaseException:
            self.fail(Disconnected("the connection was closed"))
            raise
        if not incoming.status and incoming.error is not None:
            raise incoming.error
        return incoming

    async def _write(self, transport: asyncio.Transport, body: memoryview, incoming: Incoming) -> None:
        for at in range(0, len(body), _PIECE):
            if incoming.status or incoming.error is not None:
                return  # it has answered already: it does not want the rest
            transport.write(body[at : at + _PIECE])
            if self._is_paused:
                self._drained = asyncio.get_running_loop().create_future()
                await self._drained
            else:
                await asyncio.sleep(0)  # others have something to do, too
        self._is_sent = True

    def _go_on_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    async def turned_into(self, other: Connection, tls: ssl.SSLContext, host: str, **options: Any) -> Connection:
        """Speak TLS with `host` from now on, through what this connection leads to, and return who does so.

        Raises:
            OSError: the other side does not.
        """
        transport, self._transport = self._transport, None
        assert transport is not None, "the connection is open"
        self._incoming = None
        self.connection_lost(None)  # asyncio tells the other one from now on
        secured = await asyncio.get_running_loop().start_tls(transport, other, tls, server_hostname=host, **options)
        if secured is None:
            raise Disconnected("the proxy closed the tunnel")
        other.connection_made(secured)
        return other

    # --- its state ---------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def has_news(self) -> bool:
        """Whether something waits in the buffer of the socket: that the other side has gone, or what nobody asked for."""
        return self._has_news()

    def close(self) -> None:
        """Close a connection that rests."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once, whatever it is doing."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: Exception) -> None:
        """Close it at once, and tell who waits for the reply why it ends."""
        incoming, self._incoming = self._incoming, None
        self._go_on_writing()
        self.abort()
        if incoming is not None:
            incoming.error = error
            incoming.wake()

    def go_on(self) -> None:
        """Read again: what waited has been taken."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # --- what asyncio calls ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]  # of a socket, which reads and writes
        self._has_news = _news_of(transport)
        self._session.joined(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - given by position
        """Return where the next bytes shall go; TLS fills it slice by slice."""
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Take the next bytes."""
        incoming = self._incoming
        if incoming is None:
            # Nobody asked: it would be taken for the answer to the next request.
            self.abort()
            return
        data = self._view[:nbytes]
        if not self._head_size:
            self._shown = bytes(data[:_SHOWN])
        self._head_size += nbytes
        has_had = incoming.size
        try:
            self._parser.feed_data(data)
        except Exception as error:  # noqa: BLE001 - of the parser: whatever it is, these bytes are not HTTP
            if self._incoming is not None:
                self._refuse(incoming, self._problem or str(error))
                return
            self.has_extra = True
        if incoming.is_whole:
            self._rest(incoming)
        elif incoming.size == has_had:
            # Heads, trailers, the extensions of chunks: whoever sends nothing else for long is not answering.
            if self._head_size > _LONGEST_HEAD:
                self._refuse(incoming, _TOO_LONG)
                return
        else:
            self._head_size = 1
            if incoming.is_full and self._transport is not None and not self._transport.is_closing():
                self._transport.pause_reading()
        if incoming.status:
            if self._drained is not None:
                self._go_on_writing()
            incoming.wake()  # last: whoever waits may go on in here, with the next request even

    def eof_received(self) -> bool:
        """End: the other side sends no more."""
        self._ended(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._session.left(self)
        self._ended(exc)
        # The two know each other; so nothing waits for the garbage collector.
        del self._parser

    def pause_writing(self) -> None:
        """Write no more: the other side does not read as fast."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Write again."""
        self._is_paused = False
        self._go_on_writing()

    # --- what the parser calls ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Note a reply that nobody asked for."""
        if self._incoming is None:
            self.has_extra = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; those of trailers are not wanted."""
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Hand the head on, unless it says that the reply will follow."""
        incoming, fields = self._incoming, self._fields
        status = self._parser.get_status_code()
        if incoming is None or (status < 200 and status != _SWITCHING):
            self._is_interim = True
        else:
            if self._head_size > _LONGEST_HEAD and sum(map(len, chain.from_iterable(fields))) > _LONGEST_HEAD:
                self._problem = _TOO_LONG
                raise ValueError(_TOO_LONG)  # the parser stops there
            headers: dict[str, str] = {}
            for name, value in fields:
                headers.setdefault(_names.get(name) or _named(name), value.decode("utf-8", "replace"))
            incoming.begin(status, headers)
        fields.clear()

    def on_body(self, body: bytes) -> None:
        """Hand a piece of the body on."""
        if self._incoming is not None:
            self._incoming.add(body)

    def on_message_complete(self) -> None:
        """Let go of a reply that is whole."""
        incoming = self._incoming
        self._fields.clear()  # of trailers, which would else be read as the next reply's
        if self._is_interim or incoming is None:
            self._is_interim = False
            return
        self._may_stay = self._parser.should_keep_alive()
        incoming.is_whole = True
        self._incoming = None

    # --- ends --------------------------------------------------------------------------------------------

    def _rest(self, incoming: Incoming) -> None:
        """Rest until the next request, unless this was the last one."""
        if not self._is_kept:
            return
        if self._is_sent and self._may_stay and not self.has_extra:
            if incoming.is_full:
                self.go_on()
            self._session.rests(self)
        else:
            self.abort()

    def _refuse(self, incoming: Incoming, problem: str) -> None:
        if incoming.status:
            self.fail(BodyBroken(f"the body broke off: {problem}"))
        else:
            self.fail(NotHttp(problem, self._shown.decode("utf-8", "replace")))

    def _ended(self, error: Exception | None) -> None:
        incoming = self._incoming
        if incoming is None:
            self._go_on_writing()
            return
        if not incoming.status:
            self.fail(error or Disconnected("the server closed the connection without an answer"))
        elif error is None and _ends_with_the_connection(incoming):
            self._incoming = None
            incoming.is_whole = True
            self.abort()
            incoming.wake()
        else:
            broken = BodyBroken("the body broke off")
            broken.__cause__ = error
            self.fail(broken)


_MOST_NAMES = 256
_names: dict[bytes, str] = {}
"""Names of fields as they came and as they are known: the same few come with each reply."""


def _named(name: bytes) -> str:
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    known = _names[name] = name.decode("latin-1").lower()
    return known


def _ends_with_the_connection(incoming: Incoming) -> bool:
    """Whether the head says nothing of where the body ends."""
    coding = incoming.headers.get("transfer-encoding", "").lower().rpartition(",")[2].strip()
    return coding != "chunked" and (bool(coding) or "content-length" not in incoming.headers)


def _yes() -> bool:
    return True


def _news_of(transport: asyncio.BaseTransport) -> Callable[[], bool]:
    """Return what tells at once whether something waits in the buffer of a connection's socket; True where nobody knows."""
    sock = transport.get_extra_info("socket")
    descriptor = -1 if sock is None else sock.fileno()
    if descriptor < 0 or not hasattr(select, "poll"):  # Windows has none
        return _yes
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return lambda: bool(poll.poll(0))
