"""How a connection comes about: a name looked up, an address reached, a tunnel through a proxy, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple

from SimpleLLMFunc.interface.connection import Connection
from SimpleLLMFunc.interface.heads import request_head
from SimpleLLMFunc.interface.network import Proxy
from SimpleLLMFunc.interface.url import Url
from SimpleLLMFunc.interface.wire_errors import ConnectFailed, NotHttp, ProxyRefused
from SimpleLLMFunc.threads import in_thread

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.sessions import Session

__all__ = ["Names", "Place", "connected"]

_HEAD_START = 0.25
"""Seconds that one address has before the next is tried beside it. Source: RFC 8305, section 5."""
_KNOWN_SECONDS = 10.0
_MOST_NAMES = 256
_FAREWELL_SECONDS = 1.0

Addresses = list[tuple[Any, ...]]
"""What `socket.getaddrinfo` gives."""


class Place(NamedTuple):
    """Where a connection leads; requests to the same place may share one.

    Attributes:
        proxy: through which; None for the direct way.
        tls: whom TLS trusts, None for none.
    """

    scheme: str
    host: str
    port: int
    proxy: Proxy | None = None
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> Url:
        """Its address."""
        return Url(self.scheme, self.host, self.port)


class Names:
    """The addresses that names stand for, looked up in a thread and known for a while.

    A look-up that hangs (some take half a minute) would otherwise hold up the end of the loop, and after the end of
    the main thread nothing could be looked up any more.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, Addresses]] = {}
        self._asked: dict[tuple[str, int], asyncio.Task[Addresses]] = {}

    async def look_up(self, host: str, port: int) -> Addresses:
        """Return the addresses, the one to be tried first at the beginning; many who ask at a time ask once.

        Raises:
            OSError: there are none.
        """
        key = host, port
        until, known = self._known.get(key, (0.0, []))
        if asyncio.get_running_loop().time() < until:
            known.append(known.pop(0))  # a name that stands for several servers means them all
            return list(known)
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.get_running_loop().create_task(self._ask(key))
        return list(await asyncio.shield(task))

    async def _ask(self, key: tuple[str, int]) -> Addresses:
        try:
            found: Addresses = await in_thread(_addresses, *key)
        finally:
            del self._asked[key]
        if len(self._known) >= _MOST_NAMES:
            self._known.clear()
        self._known[key] = asyncio.get_running_loop().time() + _KNOWN_SECONDS, found
        return found

    def forget(self, host: str, port: int) -> None:
        """Look up anew the next time: nobody was there."""
        self._known.pop((host, port), None)

    async def close(self) -> None:
        """Wait for nothing any more."""
        asked = list(self._asked.values())
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def _addresses(host: str, port: int) -> Addresses:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


async def connected(session: Session, place: Place) -> Connection:
    """Return a new connection to `place`.

    Raises:
        ConnectFailed: nobody is there, or TLS failed.
        ProxyRefused: the proxy opens no tunnel.
        NotHttp, Disconnected: the proxy answered something else.
    """
    proxy = place.proxy
    if proxy is None:
        return await _reached(session, place, place.url, place.tls)
    if place.tls is None:
        return await _reached(session, place, proxy.url, proxy.tls)
    first = await _reached(session, place, proxy.url, proxy.tls, is_kept=False)
    try:
        return await _tunnelled(session, place, first, place.tls)
    except BaseException:
        first.abort()
        raise


async def _reached(
    session: Session, place: Place, url: Url, tls: ssl.SSLContext | None, *, is_kept: bool = True
) -> Connection:
    import aiohappyeyeballs

    loop = asyncio.get_running_loop()
    host, port = url.host, url.port
    sock = None
    try:
        infos = await session.names.look_up(host, port)
        sock = await aiohappyeyeballs.start_connection(infos, happy_eyeballs_delay=_HEAD_START, interleave=1, loop=loop)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a model may think for minutes
        given: dict[str, Any] = {}
        if tls is not None:
            given = {"ssl": tls, "server_hostname": host, "ssl_shutdown_timeout": _FAREWELL_SECONDS}
        _, connection = await loop.create_connection(
            lambda: Connection(session, place, session.buffer(), is_kept=is_kept), sock=sock, **given
        )
    except BaseException as error:
        if sock is not None:
            sock.close()
        if isinstance(error, OSError):
            session.names.forget(host, port)
            raise ConnectFailed(host, port, error) from error
        raise
    return connection


async def _tunnelled(session: Session, place: Place, first: Connection, tls: ssl.SSLContext) -> Connection:
    """Return the connection that goes through the one to the proxy.

    Source: RFC 9110, section 9.3.6 (CONNECT).
    """
    proxy, url = place.proxy, place.url
    assert proxy is not None, "a tunnel goes through a proxy"
    host = f"[{url.host}]" if ":" in url.host else url.host
    target = f"{host}:{url.port}"
    incoming = await first.ask(request_head("CONNECT", target, url, {**proxy.headers, "Host": target}) + b"\r\n", b"")
    if not 200 <= incoming.status < 300:
        raise ProxyRefused(incoming.status)
    if first.has_extra or incoming.size:
        raise NotHttp("the proxy said something inside of the tunnel")
    second = Connection(session, place, session.buffer())
    try:
        return await first.turned_into(second, tls, url.host, ssl_shutdown_timeout=_FAREWELL_SECONDS)
    except OSError as error:
        raise ConnectFailed(url.host, url.port, error) from error
