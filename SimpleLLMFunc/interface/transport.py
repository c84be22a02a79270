"""One HTTP exchange: bytes out, bytes in. The only file that knows an HTTP client, and whose exceptions are foreign.

Requests go out over aiohttp, or through an `openai.AsyncOpenAI` that the user brought. Nothing is tried again here.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from SimpleLLMFunc.errors import BadReply, BadRequest, ConfigError, ConnectionFailed, UsageError
from SimpleLLMFunc.interface.network import load_tls_context, parsed_url, proxy_for, tls_context
from SimpleLLMFunc.interface.patience import Patience, Silence
from SimpleLLMFunc.interface.retry import Again, TryFailed
from SimpleLLMFunc.interface.sessions import CONNECT_SECONDS, seen, session_of_this_loop
from SimpleLLMFunc.logger.redact import HTTP_LOGGERS, redact, redact_logs_of, redacted_cause
from SimpleLLMFunc.type.completion import ChatCompletion, ChatCompletionChunk

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

__all__ = [
    "LARGEST_BODY",
    "ClientExchange",
    "Exchange",
    "HttpReply",
    "HttpRequest",
    "check_client",
    "failure_of_exception",
    "now",
    "read_all",
    "to_openai",
    "user_agent",
]

T = TypeVar("T")

LARGEST_BODY = 256 * 1024 * 1024
"""Bytes of a reply, unpacked; whatever sends more is not answering a question."""

_MOST_REDIRECTS = 5
_LARGE_REQUEST = 1024 * 1024
_RAW = "X-Stainless-Raw-Response"
"""The header by which the openai package knows that its answer is wanted as it comes."""


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


# --- our own way out -------------------------------------------------------------------------------------


class _OwnReply:
    """A reply over aiohttp."""

    __slots__ = ("_content", "_request", "headers", "patience", "status")

    def __init__(self, response: aiohttp.ClientResponse, request: HttpRequest, patience: Patience) -> None:
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
                    if not _is_redirect(sent.status, sent.headers):
                        break
                    sent.close()
                    redirects += 1
                    url = _target(url, sent.status, sent.headers["location"], redirects, request)
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


def _asked(session: aiohttp.ClientSession, url: URL, request: HttpRequest) -> Awaitable[aiohttp.ClientResponse]:
    proxy, proxy_headers = proxy_for(url)
    return session.request(
        request.method,
        url,
        # aiohttp wants long bodies as a file, which it writes in pieces.
        data=(request.body or None) if len(request.body) < _LARGE_REQUEST else io.BytesIO(request.body),
        headers=request.headers,
        allow_redirects=False,
        proxy=proxy,
        proxy_headers=proxy_headers,
        ssl=tls_context() if url.scheme == "https" else True,
    )


def _is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    return 300 <= status < 400 and "location" in headers


def _target(url: URL, status: int, location: str, redirects: int, request: HttpRequest) -> URL:
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


# --- through the user's own client -----------------------------------------------------------------------


class _ClientReply:
    """A reply through the openai package."""

    __slots__ = ("_pieces", "_request", "headers", "patience", "status")

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncIterator[bytes],
        request: HttpRequest,
        patience: Patience,
    ) -> None:
        self.status = status
        self.headers = headers
        self.patience = patience
        self._pieces = pieces
        self._request = request

    async def piece(self) -> bytes:
        return await translated(self._read(), self._request)

    async def _read(self) -> bytes:
        while True:
            piece = await self.patience.wait(_next(self._pieces), "reading the answer")
            if piece is None:
                return b""
            if piece:
                return piece


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


class ClientExchange:
    """Sends a request through an `openai.AsyncOpenAI` or `AsyncAzureOpenAI`; as `Exchange` otherwise.

    The client's own retries are off, and its reply is read as bytes: the package hides what a broken reply looks like.
    So are its redirects: it would take the messages, and every header but one, to any host.
    """

    def __init__(self, client: Any, body: Mapping[str, Any], request: HttpRequest, patience: Patience) -> None:
        self._client = client
        self._body = body
        self._request = request
        self._patience = patience
        self._opened: Any = None

    async def __aenter__(self) -> HttpReply:
        return await translated(self._patience.wait(self._open()), self._request)

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> HttpReply:
        import openai

        quiet = self._client.with_options(max_retries=0, timeout=openai.Timeout(None, connect=CONNECT_SECONDS))
        # The key that a chat takes; the package's default would take an administrator's if there is one.
        options = {"headers": {_RAW: "stream"}, "follow_redirects": False, "security": {"bearer_auth": True}}
        place, redirects = "/chat/completions", 0
        while True:
            try:
                opened = self._opened = await quiet.post(place, cast_to=object, body=self._body, options=options)
                return self._reply(opened, opened.iter_bytes())
            except openai.APIStatusError as error:
                answer = error.response  # the package has read the body already
            if not _is_redirect(answer.status_code, answer.headers):
                return self._reply(answer, _one(answer.content))
            redirects += 1
            url = parsed_url(str(answer.url))
            place = str(_target(url, answer.status_code, answer.headers["location"], redirects, self._request))

    def _reply(self, answer: Any, pieces: AsyncIterator[bytes]) -> HttpReply:
        return _ClientReply(answer.status_code, answer.headers, pieces, self._request, self._patience)


def check_client(client: Any) -> None:
    """Return if `client` can send requests for us.

    Raises:
        ConfigError: it is no asynchronous client of the openai package.
    """
    import openai

    if not isinstance(client, openai.AsyncOpenAI):
        raise ConfigError(
            f"client= is a {type(client).__name__}; it must be an openai.AsyncOpenAI or an openai.AsyncAzureOpenAI."
        )
    redact_logs_of("openai._base_client", *HTTP_LOGGERS)


def to_openai(item: ChatCompletion | ChatCompletionChunk) -> Any:
    """Return a reply or chunk as the openai package's object of the same name.

    Built without validation, which would refuse finish reasons that the package does not know.
    """
    from openai.types.chat import ChatCompletion as OpenAICompletion
    from openai.types.chat import ChatCompletionChunk as OpenAIChunk

    # What the service sent beyond the protocol stays; what we have put right stands as we have it.
    data = {**item.raw, **item.to_dict()}
    if item.raw.get("usage"):
        data["usage"] = item.raw["usage"]
    return (OpenAICompletion if isinstance(item, ChatCompletion) else OpenAIChunk).construct(**data)


# --- foreign exceptions ----------------------------------------------------------------------------------


async def translated(work: Awaitable[T], request: HttpRequest) -> T:
    """Return what `work` gives; what it raises becomes ours here, at the one gate for foreign exceptions."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - nothing foreign may pass, whatever its class
        failure = failure_of_exception(error, request.model, request.tries)
    # Not inside the block above: the foreign one would stay as the context of ours, secrets and all.
    raise failure


def failure_of_exception(error: Exception, model: str, tries: int) -> Exception:
    """Return what a foreign exception is among ours: a `TryFailed`, or one of our errors that no further try cures.

    Its cause is the foreign one, or a copy without the secret that this holds. Ours come back as they are.
    """
    failure = _among_ours(error, model, tries)
    if failure is not error:
        failure.__cause__ = _without_frames(redacted_cause(error))
    return failure


def _without_frames(error: BaseException) -> BaseException:
    """Return `error` without its traceback: the frames of an HTTP client hold the headers of the request.

    Programs that report errors send the variables of every frame along.
    """
    part: BaseException | None = error
    for _ in range(8):
        if part is None:
            break
        part.__traceback__ = None
        part = part.__cause__ or part.__context__
    return error


def _among_ours(error: Exception, model: str, tries: int) -> Exception:
    if isinstance(error, (TryFailed, UsageError)) or type(error).__module__.startswith("SimpleLLMFunc."):
        return _silence(error, model, tries) if isinstance(error, Silence) else error
    import aiohttp
    from aiohttp import http_exceptions

    text = redact(str(error)) or type(error).__name__
    if isinstance(error, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)):
        return ConfigError(f"base_url cannot be asked: {text}. Give an http or https address.")
    if is_about_tls(error):
        return _failed(f"TLS: {text}", model, tries, again="never")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        final = error.status < 500 and error.status not in {408, 429}
        return _failed(f"the proxy answered {error.status}", model, tries, again="never" if final else "always")
    if isinstance(error, (aiohttp.ClientResponseError, http_exceptions.HttpProcessingError)):
        return TryFailed(BadReply(model, problem="it is not HTTP as we know it", head=text, tries=tries), again="once")
    if isinstance(error, (aiohttp.ClientError, OSError)):
        return _failed(_reason(error, text), model, tries)
    return _failure_of_client(error, text, model, tries)


def _failure_of_client(error: Exception, text: str, model: str, tries: int) -> Exception:
    """Translate what `client=` raises: the openai package's exceptions, and those of the HTTP client below it."""
    family = type(error).__module__.partition(".")[0]
    if family == "openai":
        import openai

        if isinstance(error, openai.APIConnectionError):
            return _failed(_reason(error, text), model, tries)
        if isinstance(error, openai.APIResponseValidationError):
            return TryFailed(BadReply(model, problem="the client cannot read it", head=text, tries=tries), again="once")
        if isinstance(error, openai.APIError):
            return TryFailed(BadReply(model, problem="the client refused it", head=text, tries=tries), again="never")
        return ConfigError(f"the client given as client= cannot send the request: {text}")
    if family in {"httpx", "httpx2", "httpcore", "httpcore2"}:
        return _failed(_reason(error, text), model, tries)
    if isinstance(error, (TypeError, ValueError)):
        return UsageError(f"the request cannot be sent: {text}")
    if isinstance(error, RuntimeError) and "loop" in text:
        return ConfigError(
            "the client given as client= has connections of another event loop, and an http_client of its own, which "
            "cannot serve two. Leave that out, or make a model for each loop."
        )
    return _failed(f"{type(error).__name__}: {text}", model, tries, again="never")


def _silence(error: Silence, model: str, tries: int) -> TryFailed:
    return _failed(str(error), model, tries)


def _failed(reason: str, model: str, tries: int, *, again: Again = "always") -> TryFailed:
    return TryFailed(ConnectionFailed(model, reason=reason, tries=tries), again=again)


def _reason(error: BaseException, text: str) -> str:
    """Return what went wrong, with the cause where the client only says that something did."""
    cause = error.__cause__ or error.__context__
    more = f": {redact(str(cause))}" if cause is not None and str(cause) and str(cause) not in text else ""
    name = "" if text.startswith(type(error).__name__) else f"{type(error).__name__}: "
    return f"{name}{text}{more}"


def is_about_tls(error: BaseException) -> bool:
    """Whether a certificate or a handshake failed, which no further try cures."""
    import aiohttp

    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        if isinstance(
            seen, (ssl.SSLError, ssl.CertificateError, aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch)
        ):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def now() -> float:
    """Return the seconds since the epoch, which dates in headers are compared with."""
    return time.time()


@lru_cache(maxsize=1)
def user_agent() -> str:
    """Return the name and version that requests carry."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"SimpleLLMFunc/{version('SimpleLLMFunc')}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "SimpleLLMFunc"
