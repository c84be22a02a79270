"""aiohttp's session of each event loop. This module takes its time to load, which the first call does off the loop."""

from __future__ import annotations

import asyncio
import selectors
import socket
import sys
from typing import Any
from weakref import WeakKeyDictionary, ref

import aiohttp
from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from SimpleLLMFunc.interface.http import timeouts
from SimpleLLMFunc.interface.http.environment import tls_context
from SimpleLLMFunc.runtime import PerLoop, importing, in_thread

_KEEP_ALIVE_SECONDS = 30.0
_PROBES = [vars(socket)[name] for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL") if hasattr(socket, name)]
"""When the system asks whether the other side is there still; each system has some of these options."""

_LONGEST_HEAD = 64 * 1024


class StaleConnection(Exception):
    """Nothing was sent: something came on the kept connection since the request before, or its end."""


_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
"""Takes no descriptor; Windows has no poll, and its select takes any socket."""

_latest: WeakKeyDictionary[ResponseHandler, ref[aiohttp.ClientResponse] | None] = WeakKeyDictionary()
"""The latest reply on each connection; None where the first one is still to come. Its body holds the connection: a strong
reference would keep both, and their loop, for ever."""


_WRITES_LATER = sys.version_info < (3, 12)
"""Whether aiohttp writes a request with a body in a task, which begins a turn of the loop later."""


class _Request(aiohttp.ClientRequest):
    """Is not sent over a kept connection on which something has come since the request before.

    What a server sends unasked would be taken for the answer to the next question. aiohttp does not look at it, and
    while the loop is busy it waits unread, so that the socket is looked at right before the request is written; where
    that is later, also before the reader may have its turn.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        protocol = conn.protocol
        assert protocol is not None, "the connection has just been given out"
        if protocol not in _latest:
            _latest[protocol] = None
            if protocol.closed is not None:
                protocol.closed.add_done_callback(lambda closed: _end_body(closed, protocol))
            if protocol.transport is not None:
                # A model may think for minutes: routers on the way forget a connection that is silent for so long.
                connected = protocol.transport.get_extra_info("socket")
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for option in _PROBES:
                    connected.setsockopt(socket.IPPROTO_TCP, option, 60)
        elif _has_news(protocol):
            raise StaleConnection
        return await super().send(conn)

    async def write_bytes(self, writer: AbstractStreamWriter, conn: Connection, *more: Any, **options: Any) -> None:
        protocol = conn.protocol
        if _WRITES_LATER and protocol is not None and _latest.get(protocol) is not None and _has_news(protocol):
            protocol.set_exception(StaleConnection())
        else:
            await super().write_bytes(writer, conn, *more, **options)


class _Response(aiohttp.ClientResponse):
    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        protocol = connection.protocol
        try:
            await super().start(connection)
        except BaseException:
            if connection.transport is not None:
                connection.transport.abort()  # `close` waits until the other side has taken what is written
            raise
        if protocol is not None:
            _latest[protocol] = ref(self)
            if self.headers.get("Server") == "llama.cpp" and self.content_type == "text/event-stream":
                protocol.force_close()  # the server promises to keep the connection, and closes it after a stream
        return self


def _has_news(protocol: ResponseHandler) -> bool:
    transport = protocol.transport
    if transport is None or protocol.should_close:
        return True
    with _Selector() as look:
        look.register(transport.get_extra_info("socket"), selectors.EVENT_READ)
        return bool(look.select(0))


def _end_body(closed: asyncio.Future[None], protocol: ResponseHandler) -> None:
    """End the wait for a body whose connection is gone: aiohttp leaves a reader waiting where a chunk is malformed."""
    if not closed.cancelled():
        closed.exception()  # else asyncio tells of it in the log
    latest = _latest.get(protocol)
    reply = latest() if latest else None
    if reply is not None and not (body := reply.content).is_eof() and body.exception() is None:
        body.set_exception(aiohttp.ClientPayloadError(str(protocol.exception() or "the connection was closed")))


class _Resolver(AbstractResolver):
    """Looks names up in a thread that a closing loop does not wait for: some look-ups take half a minute."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await in_thread(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        return [
            ResolveResult(hostname=host, host=str(place[0]), port=port, family=kind, proto=protocol, flags=0)
            for kind, _, protocol, _, place in found
        ]

    async def close(self) -> None:
        pass


def _opened() -> aiohttp.ClientSession:
    # How many calls are in flight is decided above, by rate limits and keys.
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, ssl=tls_context(), resolver=_Resolver()
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=timeouts.CONNECT_SECONDS),
        auto_decompress=False,  # it takes a packed body that was cut off for whole
        request_class=_Request,
        response_class=_Response,
        max_line_size=_LONGEST_HEAD,
        max_field_size=_LONGEST_HEAD,
    )


_sessions: PerLoop[aiohttp.ClientSession] = PerLoop(
    _opened, aiohttp.ClientSession.close, lambda session: not session.closed
)


async def session_of_this_loop() -> aiohttp.ClientSession:
    """Return the session of the running event loop; the first call opens it."""
    if asyncio.get_running_loop() not in _sessions.known:
        await importing(tls_context)  # reads certificates from the disk, unless it has
    return _sessions.here()
