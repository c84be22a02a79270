"""How a connection comes about: a name looked up, an address reached, a tunnel through a proxy, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from SimpleLLMFunc.interface.http.connection import Connection
from SimpleLLMFunc.interface.http.environment import Proxy
from SimpleLLMFunc.interface.http.request_head import request_head
from SimpleLLMFunc.interface.http.url import Url
from SimpleLLMFunc.interface.http.wire_errors import ConnectFailed, NotHttp, ProxyRefused
from SimpleLLMFunc.runtime import in_thread

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.http.sessions import Session

__all__ = ["Names", "Place", "connected", "first_reached"]

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


async def first_reached(addresses: Addresses) -> socket.socket:
    """Return a socket that is connected to the address that answers first.

    The next one is tried when the one before has failed, or has not answered for a quarter of a second.

    Raises:
        OSError: nobody is at any of them.

    Source: RFC 8305 ("happy eyeballs"), sections 4 and 5.
    """
    waiting = deque(_in_turn(addresses))
    if len(waiting) == 1:
        return await _socket_to(waiting[0])
    failures: list[OSError] = []
    tasks: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or tasks:
            if waiting:
                tasks.add(asyncio.get_running_loop().create_task(_socket_to(waiting.popleft())))
            done, _ = await asyncio.wait(
                tasks, timeout=_HEAD_START if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                tasks.discard(task)
                try:
                    return task.result()
                except OSError as error:
                    failures.append(error)
    finally:
        await _abandoned(tasks)
    if len({error.errno for error in failures}) == 1:
        raise failures[0]
    raise OSError("; ".join(dict.fromkeys(map(str, failures))) or "no address")


def _in_turn(addresses: Addresses) -> Addresses:
    """Return the addresses with the families of protocols taking turns; the first stays the first."""
    families: dict[Any, Addresses] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    return [address for row in zip_longest(*families.values()) for address in row if address is not None]


async def _socket_to(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


async def _abandoned(tasks: set[asyncio.Task[socket.socket]]) -> None:
    """Close what others than the first have reached, or are about to."""
    for task in tasks:
        task.cancel()
    for reached in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(reached, socket.socket):
            reached.close()


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
    host, port = url.host, url.port
    sock = None
    try:
        sock = await first_reached(await session.names.look_up(host, port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a model may think for minutes
        given: dict[str, Any] = {}
        if tls is not None:
            given = {"ssl": tls, "server_hostname": host, "ssl_shutdown_timeout": _FAREWELL_SECONDS}
        _, connection = await asyncio.get_running_loop().create_connection(
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
