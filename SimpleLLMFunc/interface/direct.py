"""One request over a kept connection, without what an HTTP client does for browsers.

aiohttp's session spends half of the time of a small request on cookies, redirects, hooks, header dictionaries, and a
task that writes the body. Its connector (names, TLS, the pool) and its parser do their work here all the same; only
what stands between them is short: one write, one read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.interface.secret_parts import Hidden

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp
    from yarl import URL

__all__ = ["DirectReply", "RequestHeaders", "ask_directly"]

_LONGEST_HEADER = 64 * 1024
_BUFFER = 64 * 1024
_MOST_HEADS = 16
_SWITCHING = 101
_UNSAYABLE = frozenset("\r\n\0")


class RequestHeaders(Hidden[str, str]):
    """Headers that go out again and again; knows the bytes of the head that they make, for each address."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self._heads: Hidden[URL, bytes] = Hidden()

    def head(self, url: URL) -> bytes:
        """Return a request's head up to the value of its last field, Content-Length.

        Raises:
            ValueError: a field holds a character that would end it.
        """
        head = self._heads.get(url)
        if head is None:
            if len(self._heads) >= _MOST_HEADS:  # a service may redirect to ever new addresses
                self._heads.clear()
            head = self._heads[url] = self._made(url)
        return head

    def _made(self, url: URL) -> bytes:
        import aiohttp

        # What aiohttp would send, asked from aiohttp itself: Host, and the encodings that it can unpack.
        plain = aiohttp.ClientRequest("POST", url, headers=self, loop=asyncio.get_running_loop()).headers
        fields = {name: value for name, value in plain.items() if name not in {"Content-Length", "Transfer-Encoding"}}
        if any(not _UNSAYABLE.isdisjoint(part) for field in fields.items() for part in field):
            raise ValueError("a header holds a line break")
        lines = [f"POST {url.raw_path_qs} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return ("\r\n".join(lines) + "\r\nContent-Length: ").encode()


class DirectReply:
    """What comes back: as much of `aiohttp.ClientResponse` as an exchange needs.

    Attributes:
        connection: None once the whole body is here.
    """

    __slots__ = ("connection", "content", "headers", "status")

    def __init__(self, connection: aiohttp.connector.Connection, message: Any, content: aiohttp.StreamReader) -> None:
        self.connection: aiohttp.connector.Connection | None = connection
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self.content = content
        content.on_eof(self._release)

    def _release(self) -> None:
        connection = self.connection
        if connection is None or (connection.protocol is not None and connection.protocol.upgraded):
            return
        self.connection = None
        connection.release()

    def close(self) -> None:
        """Close the connection where the body has not been read to its end; whoever still reads it hears of that."""
        connection, self.connection = self.connection, None
        if connection is None:
            return
        if self.content.exception() is None:
            self.content.set_exception(ConnectionError("the connection was closed"))
        connection.close()


async def ask_directly(
    session: aiohttp.ClientSession, url: URL, headers: RequestHeaders, body: bytes, opening: Any
) -> DirectReply:
    """Send a POST and return its reply as soon as the head has come.

    Args:
        session: whose connections are used.
        url: where to.
        headers: all but Host, Accept-Encoding and Content-Length.
        body: in one piece, for it is written at once.
        opening: an `aiohttp.ClientRequest` to the same place, by which the connector finds or opens a connection.

    Raises:
        aiohttp.ClientError, http_exceptions.HttpProcessingError, OSError: as `aiohttp.ClientSession.request`.
    """
    head = headers.head(url)
    connector = session.connector
    assert connector is not None, "an open session"
    try:
        connection = await connector.connect(opening, [], session.timeout)
    except TimeoutError as error:
        raise TimeoutError(f"connecting to {url.host} took too long") from error
    try:
        protocol = connection.protocol
        assert protocol is not None, "a connection that was just given out"
        protocol.set_response_params(
            read_until_eof=True,
            auto_decompress=True,
            read_bufsize=_BUFFER,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )
        _write(protocol.transport, b"%b%d\r\n\r\n%b" % (head, len(body), body))
        message, content = await protocol.read()
        while message.code < 200 and message.code != _SWITCHING:
            message, content = await protocol.read()
    except BaseException:
        connection.close()
        raise
    return DirectReply(connection, message, content)


def _write(transport: asyncio.WriteTransport | None, data: bytes) -> None:
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the connection was closed before the request left")
    transport.write(data)
