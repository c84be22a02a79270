"""One HTTP session per event loop, and how it connects."""

from __future__ import annotations

import asyncio
import socket
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from SimpleLLMFunc.interface.per_loop import PerLoop
from SimpleLLMFunc.threads import import_module, in_thread

if TYPE_CHECKING:
    import aiohttp

__all__ = ["CONNECT_SECONDS", "seen", "session_of_this_loop"]

CONNECT_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 30.0
_LONGEST_HEADER = 64 * 1024


async def session_of_this_loop() -> aiohttp.ClientSession:
    """Return the session of the running event loop; the first call opens it."""
    await import_module("aiohttp")
    return _sessions.here()


def _open_session() -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        # No limit: how many calls are in flight is decided above, by rate limits and keys.
        connector=_connector_class()(
            limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, resolver=aiohttp.ThreadedResolver(cast("Any", _Names()))
        ),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=_LONGEST_HEADER,
        max_field_size=_LONGEST_HEADER,
        trust_env=False,
    )


async def _close_session(session: aiohttp.ClientSession) -> None:
    await session.close()


_sessions: PerLoop[aiohttp.ClientSession] = PerLoop(_open_session, _close_session, lambda session: not session.closed)


class _Names:
    """What a loop offers to look names up, without the loop's own pool of threads.

    A look-up that hangs (some take half a minute) would otherwise hold up the end of the loop, and after the end of
    the main thread nothing could be looked up any more.
    """

    async def getaddrinfo(self, host: str, port: int, **options: int) -> list[Any]:
        return await in_thread(partial(socket.getaddrinfo, host, port, **options))

    async def getnameinfo(self, address: Any, flags: int = 0) -> tuple[str, str]:
        return await in_thread(socket.getnameinfo, address, flags)


def seen(end: asyncio.Future[None]) -> None:
    """Take note of how a connection ended: who only wants to know that it did need not ask, and asyncio would complain."""
    if not end.cancelled():
        end.exception()


@lru_cache(maxsize=1)
def _connector_class() -> type[aiohttp.TCPConnector]:
    import aiohttp

    known: WeakSet[Any] = WeakSet()

    class Connector(aiohttp.TCPConnector):
        """Gives out no kept connection on which something came that nobody had asked for.

        aiohttp would take it for the answer to the next request: the silently wrong answer of somebody else's question.
        """

        async def connect(self, *args: Any, **kwargs: Any) -> aiohttp.connector.Connection:
            while True:
                connection = await super().connect(*args, **kwargs)
                protocol = connection.protocol
                assert protocol is not None, "a connection that was just given out"
                if protocol not in known:
                    known.add(protocol)
                    return connection  # a new one: whatever comes on it is for the one who opened it
                try:
                    await asyncio.sleep(0)  # one round of the loop, to see what waits in the socket's buffer
                except BaseException:
                    connection.close()
                    raise
                if protocol.is_connected() and not protocol.should_close:
                    return connection
                connection.close()

    return Connector
