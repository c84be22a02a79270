"""One HTTP exchange: bytes out, bytes in. Nothing is tried again here.

Requests go out over aiohttp, or through an `openai.AsyncOpenAI` that the user brought (`client_exchange`). What these
raise becomes ours in `foreign`; no other file of the package knows an HTTP client.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from SimpleLLMFunc import __version__
from SimpleLLMFunc.errors import BadReply, BadRequest
from SimpleLLMFunc.interface.direct import DirectReply, RequestHeaders, ask_directly
from SimpleLLMFunc.interface.foreign import failure_of_exception
from SimpleLLMFunc.interface.network import load_tls_context, parsed_url, proxy_for, tls_context
from SimpleLLMFunc.interface.patience import Patience
from SimpleLLMFunc.interface.retry import TryFailed
from SimpleLLMFunc.interface.sessions import opening_of, seen, session_of_this_loop
from SimpleLLMFunc.logger.redact import redact
from SimpleLLMFunc.type.quick import quickly_made

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

__all__ = [
    "LARGEST_BODY",
    "Exchange",
    "HttpReply",
    "HttpRequest",
    "is_redirect",
    "now",
    "read_all",
    "redirect_target",
    "user_agent",
]

LARGEST_BODY = 256 * 1024 * 1024
"""Bytes of a reply, unpacked; whatever sends more is not answering a question."""

_MOST_REDIRECTS = 5
_LARGE_REQUEST = 1024 * 1024


@quickly_made
@dataclass(frozen=True, slots=True, repr=False)
class HttpRequest:
    """What goes out; its repr shows nothing of it, for tools that print the variables of a traceback.

    Attributes:
        body: JSON as bytes; empty for none.
        model, tries: for the errors.
    """

    url: str
    body: bytes
    headers: Mapping[str, str]
    model: str
    tries: int = 1
    method: str = "POST"


class HttpReply(Protocol):
    """What comes back: the head at once, the body in pieces."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, found by lower-case name."""
        ...

    @property
    def patience(self) -> Patience:
        """The clock of this try; the reader notes progress on it."""
        ...

    async def piece(self) -> bytes:
        """Return the next bytes of the body as they come, empty at its end."""
        ...


async def read_all(reply: HttpReply, model: str, tries: int) -> bytes:
    """Return the whole body.

    Raises:
        TryFailed: the connection broke, or fell silent, or the body is too large.
        DeadlineExceeded: the call took too long.
    """
    pieces: list[bytes] = []
    size = 0
    while piece := await reply.piece():
        # Some services send white space while a request waits in their queue.
        if size or not piece.isspace():
            reply.patience.progress()
            size += len(piece)
            if size > LARGEST_BODY:
                problem = f"it is longer than {LARGEST_BODY} bytes"
                raise TryFailed(BadReply(model, problem=problem, status=reply.status, tries=tries), again="never")
            pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _OwnReply:
    """A reply over aiohttp."""

    __slots__ = ("_content", "_request", "headers", "patience", "status")

    def __init__(
        self, response: aiohttp.ClientResponse | DirectReply, request: HttpRequest, patience: Patience
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.patience = patience
        self._content = response.content
        self._request = request

    async def piece(self) -> bytes:
        content = self._content
        try:
            # What has arrived already costs no timer.
            if piece := content.read_nowait():
                return piece
            if content.at_eof():
                return b""
            with self.patience.waiting("reading the answer"):
                return await content.readany()
        except Exception as error:  # noqa: BLE001 - as in `translated`, without a coroutine more for each wait
            failure = failure_of_exception(error, self._request.model, self._request.tries)
        raise failure


class Exchange:
    """Sends a request over this event loop's session; leaving the context closes what has not been read.

    Entering it raises:
        TryFailed: no reply came.
        DeadlineExceeded: the call took too long.
        ConfigError: the address cannot be asked.
    """

    __slots__ = ("_lost", "_patience", "_protocol", "_request", "_response")

    def __init__(self, request: HttpRequest, patience: Patience) -> None:
        self._request = request
        self._patience = patience

    async def __aenter__(self) -> HttpReply:
        request, redirects = self._request, 0
        try:
            # One coroutine does it all: there are as many of them as calls in flight.
            with self._patience.waiting():
                session = await session_of_this_loop()
                url = parsed_url(request.url)
                while True:
                    if url.scheme == "https":
                        await load_tls_context()
                    self._response = sent = await _asked(session, url, request)
                    if not is_redirect(sent.status, sent.headers):
                        break
                    sent.close()
                    redirects += 1
                    url = redirect_target(url, sent.status, sent.headers["location"], redirects, request)
        except Exception as error:  # noqa: BLE001 - as in `translated`
            failure: Exception | None = failure_of_exception(error, request.model, request.tries)
        else:
            failure = None
        if failure is not None:
            raise failure
        response = self._response
        connection = response.connection  # None where the whole body is here already
        self._protocol = connection.protocol if connection is not None else None
        self._lost = self._protocol.closed if self._protocol is not None else None
        if self._lost is not None:
            self._lost.remove_done_callback(seen)
            self._lost.add_done_callback(self._end_of_connection)
        return _OwnReply(response, request, self._patience)

    async def __aexit__(self, *_: object) -> None:
        if self._lost is not None:
            self._lost.remove_done_callback(self._end_of_connection)
            self._lost.add_done_callback(seen)
        # After the end of the body the connection is back in the pool already; before it, it is closed now.
        self._response.close()

    def _end_of_connection(self, end: asyncio.Future[None]) -> None:
        """Wake the reader of a body that can no longer end: after a broken chunk aiohttp closes, and tells nobody."""
        import aiohttp

        seen(end)
        content = self._response.content
        if not content.is_eof() and content.exception() is None:
            error = aiohttp.ClientPayloadError("the body broke off")
            error.__cause__ = self._protocol.exception() if self._protocol is not None else None
            content.set_exception(error)


def _asked(
    session: aiohttp.ClientSession, url: URL, request: HttpRequest
) -> Awaitable[aiohttp.ClientResponse | DirectReply]:
    proxy, proxy_headers = proxy_for(url)
    headers = request.headers
    if proxy is None and isinstance(headers, RequestHeaders) and 0 < len(request.body) < _LARGE_REQUEST:
        opening = opening_of(session, url, tls_context() if url.scheme == "https" else True)
        return ask_directly(session, url, headers, request.body, opening)
    return session.request(
        request.method,
        url,
        # aiohttp wants long bodies as a file, which it writes in pieces.
        data=(request.body or None) if len(request.body) < _LARGE_REQUEST else io.BytesIO(request.body),
        headers=headers,
        allow_redirects=False,
        proxy=proxy,
        proxy_headers=proxy_headers,
        ssl=tls_context() if url.scheme == "https" else True,
    )


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a reply says that the thing is somewhere else."""
    return 300 <= status < 400 and "location" in headers


def redirect_target(url: URL, status: int, location: str, redirects: int, request: HttpRequest) -> URL:
    """Return where a redirect leads.

    Raises:
        TryFailed: the key and the messages may not go there.
    """
    target = url.join(parsed_url(location))
    said = ""
    if status == 303 or not _may_follow(url, target):
        said = f"it redirects to {target.scheme}://{target.host}; if that is the right address, give it as base_url"
    elif redirects > _MOST_REDIRECTS:
        said = "it redirects too often"
    if said:
        error = BadRequest(request.model, status=status, body=redact(said), tries=request.tries)
        raise TryFailed(error, again="never")
    return target


def _may_follow(url: URL, target: URL) -> bool:
    """Whether the key and the messages may go to `target`: the same host, and never from https to http."""
    if target.host != url.host:
        return False
    return target.origin() == url.origin() or (url.scheme == "http" and target.scheme == "https")


def now() -> float:
    """Return the seconds since the epoch, which dates in headers are compared with."""
    return time.time()


def user_agent() -> str:
    """Return the name and version that requests carry."""
    return f"SimpleLLMFunc/{__version__}"
