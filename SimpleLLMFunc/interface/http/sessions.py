"""The connections of one event loop: kept for the next request, closed with the loop."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from SimpleLLMFunc.interface.http.connecting import Names, Place, connected
from SimpleLLMFunc.interface.http.connection import BUFFER, Connection
from SimpleLLMFunc.interface.http.environment import load_tls_context, proxy_for
from SimpleLLMFunc.interface.http.url import Url
from SimpleLLMFunc.runtime import PerLoop, import_module

__all__ = ["CONNECT_SECONDS", "Session", "open_session", "session_of_this_loop"]

CONNECT_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 30.0
_ROUNDS = 100
_SHARES_BUFFER: Final = sys.platform != "win32"
"""Elsewhere a read begins and ends between two steps of the loop; there the system writes into the buffer meanwhile."""


def open_session() -> Session | None:
    """Return the session of the running event loop, None where `session_of_this_loop` has to open it."""
    known = _sessions.known.get(asyncio.get_running_loop())
    return None if known is None or known[0].closed else known[0]


async def session_of_this_loop() -> Session:
    """Return the session of the running event loop; the first call opens it."""
    await import_module("httptools")
    return _sessions.here()


class Session:
    """The connections of one event loop.

    There is no limit to them: how many calls are in flight is decided above, by rate limits and keys.

    Attributes:
        names: the addresses of hosts.
        open: every connection that is open.
        closed: whether the loop is at its end.
    """

    def __init__(self) -> None:
        self.names = Names()
        self.open: set[Connection] = set()
        self.closed = False
        self._resting: dict[Place, dict[Connection, None]] = {}
        """In the order in which they came to rest; the latest is used first."""
        self._sweep: asyncio.TimerHandle | None = None
        self._buffer = bytearray(BUFFER)

    def buffer(self) -> bytearray:
        """Return what a new connection reads into."""
        return self._buffer if _SHARES_BUFFER else bytearray(BUFFER // 4)

    @property
    def in_use(self) -> int:
        """How many connections are at work, and do not rest."""
        return sum(one.is_open and one not in self._resting.get(one.place, ()) for one in self.open)

    async def connection_to(self, url: Url) -> Connection:
        """Return a connection for one request to `url`: one that rests there, else a new one.

        A connection on which something came that nobody had asked for is not given out: it would be taken for the
        answer to the next request, the silently wrong answer of somebody else's question.

        Raises:
            WireError: none came about.
            TimeoutError: none came about in time.
            ConfigError: the environment names a proxy that we do not know.
        """
        if url.scheme == "https":
            tls = await load_tls_context()
            place = Place(url.scheme, url.host, url.port, proxy_for(url), tls)
        else:
            place = Place(url.scheme, url.host, url.port, proxy_for(url))
        resting = self._resting.get(place)
        while resting:
            connection = resting.popitem()[0]
            if connection.has_news():
                try:
                    await asyncio.sleep(0)  # one round of the loop, to read what waits in the socket's buffer
                except BaseException:
                    connection.abort()
                    raise
            if connection.is_open:
                return connection
            connection.abort()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await connected(self, place)
        except TimeoutError as error:
            raise TimeoutError(f"connecting to {url.host} took too long") from error

    # --- what connections tell ---------------------------------------------------------------------------

    def joined(self, connection: Connection) -> None:
        """Note a new connection."""
        self.open.add(connection)

    def left(self, connection: Connection) -> None:
        """Note the end of one."""
        self.open.discard(connection)
        resting = self._resting.get(connection.place)
        if resting is not None:
            resting.pop(connection, None)

    def rests(self, connection: Connection) -> None:
        """Keep a connection for the next request."""
        if self.closed:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.rests_since = loop.time()
        resting = self._resting.get(connection.place)
        if resting is None:
            resting = self._resting[connection.place] = {}
        resting[connection] = None
        if self._sweep is None:
            self._sweep = loop.call_later(_KEEP_ALIVE_SECONDS, self._close_old)

    def _close_old(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - _KEEP_ALIVE_SECONDS
        first: float | None = None
        for place, resting in list(self._resting.items()):
            for connection in [one for one in resting if one.rests_since <= oldest]:
                del resting[connection]
                connection.close()
            if resting:
                since = next(iter(resting)).rests_since
                first = since if first is None else min(first, since)
            else:
                del self._resting[place]
        self._sweep = None if first is None else loop.call_at(first + _KEEP_ALIVE_SECONDS, self._close_old)

    # --- its end -----------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close every connection, and wait until that is done; a closed session is replaced by a new one."""
        self.closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._resting.clear()
        await self.names.close()
        for _ in range(_ROUNDS):
            for connection in list(self.open):
                connection.abort()
            if not self.open:
                break
            await asyncio.sleep(0)


async def _close_session(session: Session) -> None:
    await session.close()


_sessions: PerLoop[Session] = PerLoop(Session, _close_session, lambda session: not session.closed)
