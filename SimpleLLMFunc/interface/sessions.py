"""One HTTP session per event loop, and how it connects."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from SimpleLLMFunc.interface.per_loop import PerLoop
from SimpleLLMFunc.threads import import_module, in_thread

if TYPE_CHECKING:
    import ssl

    import aiohttp
    from yarl import URL

__all__ = ["CONNECT_SECONDS", "opening_of", "seen", "session_of_this_loop"]

CONNECT_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 30.0
_LONGEST_HEADER = 64 * 1024
_MOST_PLACES = 64


async def session_of_this_loop() -> aiohttp.ClientSession:
    """Return the session of the running event loop; the first call opens it."""
    await import_module("aiohttp")
    return _sessions.here()


def opening_of(session: aiohttp.ClientSession, url: URL, tls: ssl.SSLContext | bool) -> aiohttp.ClientRequest:
    """Return the request by which the session's connector finds or opens a connection to the place of `url`."""
    return cast("Any", session.connector).opening(url, tls)  # type: ignore[no-any-return]


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

    class Connector(aiohttp.TCPConnector):
        """Gives out no kept connection on which something came that nobody had asked for.

        aiohttp would take it for the answer to the next request: the silently wrong answer of somebody else's question.
        """

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._known: WeakKeyDictionary[Any, Callable[[], bool]] = WeakKeyDictionary()
            self._openings: dict[Any, aiohttp.ClientRequest] = {}

        async def connect(self, *args: Any, **kwargs: Any) -> aiohttp.connector.Connection:
            while True:
                connection = await super().connect(*args, **kwargs)
                protocol = connection.protocol
                assert protocol is not None, "a connection that was just given out"
                has_news = self._known.get(protocol)
                if has_news is None:
                    self._known[protocol] = _news_of(protocol.transport)
                    return connection  # a new one: whatever comes on it is for the one who opened it
                if has_news():
                    try:
                        await asyncio.sleep(0)  # one round of the loop, to read what waits in the socket's buffer
                    except BaseException:
                        connection.close()
                        raise
                if protocol.is_connected() and not protocol.should_close:
                    return connection
                connection.close()

        def opening(self, url: URL, tls: ssl.SSLContext | bool) -> aiohttp.ClientRequest:
            """Return the request by which connections to the place of `url` are found and opened."""
            place = (url.scheme, url.host, url.port, tls)
            known = self._openings.get(place)
            if known is None:
                if len(self._openings) >= _MOST_PLACES:
                    self._openings.clear()
                known = self._openings[place] = aiohttp.ClientRequest(
                    "POST", url.origin(), loop=asyncio.get_running_loop(), ssl=tls
                )
            return known

    return Connector


def _news_of(transport: Any) -> Callable[[], bool]:
    """Return what tells at once whether something waits in the buffer of a connection's socket; True where nobody knows."""
    sock = transport.get_extra_info("socket") if transport is not None else None
    descriptor = -1 if sock is None else sock.fileno()
    if descriptor < 0 or not hasattr(select, "poll"):  # Windows has none
        return lambda: True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return lambda: bool(poll.poll(0))
