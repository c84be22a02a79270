"""One HTTP exchange: bytes out, bytes in. Nothing is tried again here.

Requests go out over connections of our own, or through an `openai.AsyncOpenAI` that the user brought
(`client_exchange`). What goes wrong there becomes an error of ours in `foreign`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.errors import BadReply, BadRequest, ConfigError
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http.environment import Proxy
from SimpleLLMFunc.interface.http.error_mapping import failure_of_exception
from SimpleLLMFunc.interface.http.request_head import RequestHeaders, request_head
from SimpleLLMFunc.interface.http.response_body import Incoming
from SimpleLLMFunc.interface.http.sessions import open_session, session_of_this_loop
from SimpleLLMFunc.interface.http.timeouts import Patience
from SimpleLLMFunc.interface.http.url import Url, parsed_url
from SimpleLLMFunc.logger import redact

__all__ = [
    "LARGEST_BODY",
    "Exchange",
    "HttpReply",
    "HttpRequest",
    "is_redirect",
    "read_all",
    "redirect_target",
    "user_agent",
]

LARGEST_BODY = 256 * 1024 * 1024
"""Bytes of a reply, unpacked; whatever sends more is not answering a question."""

_MOST_REDIRECTS = 5


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

    @property
    def is_checked(self) -> bool:
        """Whether the pieces so far stand as they are; not amid a packed body, whose checksum comes at its end."""
        ...

    async def piece(self) -> bytes:
        """Return the next bytes of the body as they come, empty at its end."""
        ...


async def read_all(reply: HttpReply, model: str, tries: int) -> bytes:
    """Return the whole body.

    Raises:
        AttemptFailed: the connection broke, or fell silent, or the body is too large.
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
                raise AttemptFailed(BadReply(model, problem=problem, status=reply.status, tries=tries), again="never")
            pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Exchange:
    """Sends a request over this event loop's session and is its reply; leaving the context closes what is not read.

    Entering it raises:
        AttemptFailed: no reply came.
        DeadlineExceeded: the call took too long.
        ConfigError: the address cannot be asked.
    """

    __slots__ = ("_incoming", "_request", "headers", "patience", "status")

    def __init__(self, request: HttpRequest, patience: Patience) -> None:
        self._request = request
        self._incoming: Incoming | None = None
        self.patience = patience
        self.status = 0
        self.headers: Mapping[str, str] = {}

    async def __aenter__(self) -> HttpReply:
        request, redirects = self._request, 0
        try:
            # One coroutine does it all: there are as many of them as calls in flight.
            with self.patience.waiting():
                session = open_session() or await session_of_this_loop()
                url = parsed_url(request.url)
                while True:
                    connection = await session.connection_to(url)
                    head = _head(url, request, connection.place.proxy)
                    self._incoming = incoming = await connection.ask(head, request.body)
                    if incoming.status < 300 or not is_redirect(incoming.status, incoming.headers):
                        break
                    incoming.close()
                    redirects += 1
                    url = redirect_target(url, incoming.status, incoming.headers["location"], redirects, request)
        except Exception as error:  # noqa: BLE001 - as in `translated`
            failure = failure_of_exception(error, request.model, request.tries)
        else:
            self.status = incoming.status
            self.headers = incoming.headers
            return self
        try:
            raise failure
        finally:
            del failure  # the traceback holds this frame, which would hold the traceback

    @property
    def is_checked(self) -> bool:
        """Whether the pieces so far stand as they are; not amid a packed body, whose checksum comes at its end."""
        return self._incoming is None or self._incoming.is_checked

    async def piece(self) -> bytes:
        """Return the next bytes of the body as they come, empty at its end."""
        incoming = self._incoming
        assert incoming is not None, "the reply has begun"
        try:
            # What has arrived already costs no timer.
            piece = incoming.take()
            if piece is None:
                with self.patience.waiting("reading the answer"):
                    while piece is None:
                        await incoming.news()
                        piece = incoming.take()
        except Exception as error:  # noqa: BLE001 - as in `translated`, without a coroutine more for each wait
            failure = failure_of_exception(error, self._request.model, self._request.tries)
        else:
            return piece
        try:
            raise failure
        finally:
            del failure  # the traceback holds this frame, which would hold the traceback

    async def __aexit__(self, *_: object) -> None:
        # After the end of the body the connection rests already; before it, it is closed now.
        if self._incoming is not None:
            self._incoming.close()


def _head(url: Url, request: HttpRequest, proxy: Proxy | None) -> bytes:
    headers, body = request.headers, request.body
    if proxy is not None and url.scheme == "http":
        whole = f"http://{url.authority}{url.target}"
        head = request_head(request.method, whole, url, {**headers, **proxy.headers})
    elif isinstance(headers, RequestHeaders) and request.method == "POST":
        head = headers.head(url)
    else:
        head = request_head(request.method, url.target, url, headers)
    return b"%bContent-Length: %d\r\n\r\n" % (head, len(body)) if body else head + b"\r\n"


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a reply says that the thing is somewhere else."""
    return 300 <= status < 400 and "location" in headers


def redirect_target(url: Url, status: int, location: str, redirects: int, request: HttpRequest) -> Url:
    """Return where a redirect leads.

    Raises:
        AttemptFailed: the key and the messages may not go there.
    """
    said, target = "", url
    try:
        target = url.join(location)
    except ConfigError:
        said = "it redirects to what is no http or https address"
    if not said and (status == 303 or not _may_follow(url, target)):
        said = f"it redirects to {target.scheme}://{target.host}; if that is the right address, give it as base_url"
    elif not said and redirects > _MOST_REDIRECTS:
        said = "it redirects too often"
    if said:
        error = BadRequest(request.model, status=status, body=redact(said), tries=request.tries)
        raise AttemptFailed(error, again="never")
    return target


def _may_follow(url: Url, target: Url) -> bool:
    """Whether the key and the messages may go to `target`: the same host, and never from https to http."""
    if target.host != url.host:
        return False
    return target.origin == url.origin or (url.scheme == "http" and target.scheme == "https")


def user_agent() -> str:
    """Return the name and version that requests carry."""
    return f"SimpleLLMFunc/{__version__}"
