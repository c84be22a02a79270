"""One HTTP exchange: bytes out, bytes in. Nothing is tried again here.

Requests go out over aiohttp, or through an `openai.AsyncOpenAI` that the user brought (`openai_client`). What goes wrong
there becomes an error of ours in `error_mapping`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.errors import BadReply, BadRequest, ConfigError
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http.content_decoding import CODINGS, Unpacker, unpacker_for
from SimpleLLMFunc.interface.http.environment import proxy_for
from SimpleLLMFunc.interface.http.error_mapping import BodyBroken, translated
from SimpleLLMFunc.interface.http.timeouts import TryTimeout
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.runtime import import_module

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

LARGEST_BODY = 256 * 1024 * 1024
"""Bytes of a reply, unpacked; a service that sends more is not answering a question."""

_MOST_REDIRECTS = 5
_LARGE_REQUEST = 64 * 1024
_SESSION = "SimpleLLMFunc.interface.http.session"


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


class HttpReply:
    """What comes back: the head at once, the body in pieces, which are read in time and not without end.

    Attributes:
        headers: found by lower-case name.
        request: what went out.
        url: that was asked.
        timeout: the clock of this try; the reader notes progress on it.
        is_checked: whether the pieces so far stand as they are; not amid a packed body, whose checksum comes at its end.
    """

    status: int
    headers: Mapping[str, str]

    def __init__(self, request: HttpRequest, timeout: TryTimeout) -> None:
        self.request, self.url = request, request.url
        self.timeout = timeout
        self.is_checked = True
        self._size = 0
        self._unpacker: Unpacker | None = None

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers
        self._unpacker = unpacker_for(headers.get("content-encoding", ""))

    async def piece(self) -> bytes:
        """Return the next bytes of the body as they come, empty at its end.

        Raises:
            AttemptFailed: the connection broke, or fell silent, or the body is too large.
            DeadlineExceeded: the call took too long.
        """
        self.timeout.deadline.check("reading the answer")
        piece = await translated(self._next(), self.request.model, self.request.tries)
        self._size += len(piece)
        if self._size > LARGEST_BODY:
            problem = f"it is longer than {LARGEST_BODY} bytes"
            error = BadReply(self.request.model, problem=problem, status=self.status, tries=self.request.tries)
            raise AttemptFailed(error, again="never")
        return piece

    async def _next(self) -> bytes:
        unpacker = self._unpacker
        if unpacker is None:
            return await self._read()
        while True:
            if unpacker.has_more:
                # A kilobyte may hold a megabyte: others have their turn in between, and the deadline holds.
                self.timeout.deadline.check("reading the answer")
                await asyncio.sleep(0)
                packed = b""
            elif not (packed := await self._read()):
                if unpacker.is_amid:
                    raise BodyBroken("what it packs is not whole")
                return b""
            try:
                piece = unpacker.feed(packed)
            except ValueError as error:
                raise BodyBroken(str(error)) from None
            self.is_checked = not unpacker.is_amid
            if piece:
                return piece

    async def _read(self) -> bytes:
        """Return the next bytes as they came over the wire, empty at the end."""
        raise NotImplementedError


async def read_all(reply: HttpReply, start: bytes = b"") -> bytes:
    """Return the whole body, `start` being what has been read of it; raises what `HttpReply.piece` does."""
    pieces = [start] if start else []
    while piece := await reply.piece():
        # Some services send white space while a request waits in their queue.
        if pieces or not piece.isspace():
            reply.timeout.progress()
            pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Exchange(HttpReply):
    """Sends a request over this event loop's session and is its reply; leaving the context closes what is not read.

    Entering it raises:
        AttemptFailed: no reply came.
        DeadlineExceeded: the call took too long.
        ConfigError: the address cannot be asked.
    """

    def __init__(self, request: HttpRequest, timeout: TryTimeout) -> None:
        super().__init__(request, timeout)
        self._answer: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> HttpReply:
        await import_module(_SESSION)
        asking = self.timeout.wait(self._asked())
        self._answer = await translated(asking, self.request.model, self.request.tries, self.request.url)
        self._begin(self._answer.status, self._answer.headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        # After the end of the body the connection rests already; before it, it is closed now.
        if self._answer is not None:
            # No import here: a stream may be closed while the interpreter shuts down.
            connection = self._answer.connection
            if connection is not None and connection.transport is not None:
                connection.transport.abort()
            self._answer.close()

    async def _asked(self) -> aiohttp.ClientResponse:
        import aiohttp
        from multidict import CIMultiDict

        from SimpleLLMFunc.interface.http.session import StaleConnection, session_of_this_loop

        request, redirects, url = self.request, 0, whole_address(self.request.url)
        session = await session_of_this_loop()
        headers = CIMultiDict({"Accept-Encoding": CODINGS, "User-Agent": f"SimpleLLMFunc/{__version__}"})
        headers.update(request.headers)  # replaces names in any case
        while True:
            # A long body is written piece by piece, as fast as the other side takes it.
            body = io.BytesIO(request.body) if len(request.body) > _LARGE_REQUEST else request.body or None
            proxy = proxy_for(str(url))
            try:
                answer = await session.request(
                    request.method, url, data=body, headers=headers, proxy=proxy, allow_redirects=False
                )
            except StaleConnection:
                continue  # it is closed by now
            except aiohttp.ServerTimeoutError:
                raise TimeoutError(f"connecting to {url.host} took too long") from None
            if not is_redirect(answer.status, answer.headers):
                return answer
            answer.close()
            redirects += 1
            url = redirect_target(url, answer.status, answer.headers["location"], redirects, request)

    async def _read(self) -> bytes:
        assert self._answer is not None, "the reply has begun"
        body = self._answer.content
        error = body.exception()
        if error is not None:
            # aiohttp forgets what had come before a connection broke; it may be all of the answer.
            body.set_exception(None)  # type: ignore[arg-type]
        rest = body.read_nowait()
        if error is not None:
            body.set_exception(error)
        if rest or body.at_eof():
            return rest
        try:
            return await self.timeout.wait(body.readany(), "reading the answer")
        except RuntimeError as gone:
            raise BodyBroken(str(gone)) from None


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a reply says that the thing is somewhere else."""
    return 300 <= status < 400 and "location" in headers


def redirect_target(url: URL, status: int, location: str, redirects: int, request: HttpRequest) -> URL:
    """Return where a redirect leads.

    Raises:
        AttemptFailed: the key and the messages may not go there.
    """
    target = None
    with contextlib.suppress(ConfigError, ValueError):
        target = whole_address(urljoin(str(url), location))
    if target is None:
        said = "it redirects to what is no http or https address"
    elif status == 303 or not _may_follow(url, target):
        said = f"it redirects to {target.origin()}; if that is the right address, give it as base_url"
    elif redirects > _MOST_REDIRECTS:
        said = "it redirects too often"
    else:
        return target
    error = BadRequest(request.model, status=status, body=redact(said), tries=request.tries)
    raise AttemptFailed(error, again="never")


def _may_follow(url: URL, target: URL) -> bool:
    """Whether the key and the messages may go to `target`: the same host, and never from https to http."""
    is_safer = url.scheme == "http" and target.scheme == "https"
    return target.host == url.host and (is_safer or target.origin() == url.origin())


def whole_address(text: str) -> URL:
    """Return an address that can be asked, without a login.

    Raises:
        ConfigError: it is not an http or https address.
    """
    from yarl import URL

    try:
        url = URL(text)
        host = url.host or ""
        if url.scheme in {"http", "https"} and host and url.port and min(host) > " ":
            return url.with_user(None).with_fragment(None)
    except ValueError:
        pass
    raise ConfigError("base_url is incomplete. Give an http or https address.")
