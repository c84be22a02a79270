"""The same exchange through a client of the openai package that the user brought (`client=`), and its copies per event loop.

What wraps the client sees each call as users make it; the bytes are ours. Tools that trace the openai package wrap
``create``, or the ``request`` below it, of its classes or of one client, and read the tokens off what these return: a
parsed reply, or a stream of parsed chunks. So each request is a ``create`` on the client itself, in a second task. We
take the stream out of the response and read it; then we hand the bytes on to the package, which parses them for the tools.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from operator import methodcaller
from pathlib import Path
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.http.content_decoding import CODINGS
from SimpleLLMFunc.interface.http.error_mapping import translated
from SimpleLLMFunc.interface.http.exchange import HttpReply, HttpRequest, is_redirect, redirect_target, whole_address
from SimpleLLMFunc.interface.http.secret_parts import Address
from SimpleLLMFunc.interface.http.timeouts import CONNECT_SECONDS, TryTimeout
from SimpleLLMFunc.logger import HTTP_LOGGERS, push_warning, redact_logs_of
from SimpleLLMFunc.runtime import PerLoop, import_module, importing, off_loop_if_large
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, mapping

_FOLLOW_SECONDS = 5.0
"""How long the package, and what wraps it, may take to read what we have read already."""


class ClientExchange(HttpReply):
    """Sends a request through an `openai.AsyncOpenAI` or `AsyncAzureOpenAI`; as `Exchange` otherwise.

    The client's own retries are off, and its reply is read as bytes: the package hides what a broken reply looks like.
    So are its redirects: it would take the messages, and every header but one, to any host.
    """

    def __init__(self, client: Any, path: str, request: HttpRequest, timeout: TryTimeout) -> None:
        super().__init__(request, timeout)
        self._client, self._path = client, path
        self._sent: Sent | None = None

    async def __aenter__(self) -> HttpReply:
        await warm_up_clients()
        await importing(resource_of, self._client, self._path)  # the package loads a second's worth of modules
        # Read back, so that it holds nothing that JSON cannot say.
        body = await off_loop_if_large(len(self.request.body), lambda: decode(self.request.body))
        opening = self.timeout.wait(self._open(body))
        try:
            await translated(opening, self.request.model, self.request.tries, self.request.url)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sent is not None:
            await self._sent.end()

    async def _open(self, body: Mapping[str, Any]) -> None:
        place, redirects = self._path, 0
        while True:
            self._sent = Sent(self._client, self._path, body, place)
            answer = await self._sent.answer()
            if not is_redirect(answer.status_code, answer.headers):
                break
            await self._sent.end()
            redirects += 1
            url = whole_address(str(answer.url))
            place = str(redirect_target(url, answer.status_code, answer.headers["location"], redirects, self.request))
        self.url: str = Address(str(answer.url))  # Azure's clients write another path
        self._begin(answer.status_code, answer.headers)

    async def _read(self) -> bytes:
        assert self._sent is not None, "the reply has begun"
        return await self.timeout.wait(self._sent.piece(), "reading the answer")


async def warm_up_clients() -> None:
    """Import off the event loop what the HTTP client of the openai package would import on it, at its first request."""
    with suppress(ImportError):
        await import_module("anyio._backends._asyncio")


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
        # Of another wire it has other names, which stay next to ours.
        data["usage"] = {**mapping(data["usage"]), **mapping(item.raw["usage"])}
    return (OpenAICompletion if isinstance(item, ChatCompletion) else OpenAIChunk).construct(**data)


# --- one client on many event loops ---------------------------------------------------------------------------

_first_loops: weakref.WeakKeyDictionary[Any, weakref.ref[asyncio.AbstractEventLoop]] = weakref.WeakKeyDictionary()
"""The loop that each client serves itself, whichever of several models asks."""


class ClientPerLoop:
    """An `openai.AsyncOpenAI` and copies of it: its connections serve one event loop only.

    The first loop that asks gets the client itself, every other loop gets a copy with separate connections, which are
    closed with the loop. A client with the user's `http_client` cannot be copied like that, and serves all loops.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._copies: PerLoop[Any] = PerLoop(self._copy, methodcaller("close"), lambda copy: not copy.is_closed())

    def here(self) -> Any:
        """Return the client for the running loop."""
        loop = asyncio.get_running_loop()
        first = _first_loops.setdefault(self.client, weakref.ref(loop))
        # Another `http_client` can be made like the package's own, and like no other.
        is_own = type(getattr(self.client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"
        if first() is loop or self.client.is_closed() or not is_own:
            return self.client
        return self._copies.here()

    def _copy(self) -> Any:
        import openai

        timeout = getattr(self.client, "timeout", None)
        connections = openai.DefaultAsyncHttpxClient(base_url=self.client.base_url, timeout=timeout)
        copy = self.client.copy(http_client=connections)
        if is_wrapped(self.client) and not is_wrapped(copy):
            push_warning(
                "client= is wrapped, and used from a second event loop, whose copy is not wrapped: the wrapper does "
                "not see these calls. Wrap the classes of the package instead, or make all calls on one loop."
            )
        return copy


class OwnClients:
    """Clients that we make for one model, one for each event loop; each is closed at the end of its loop."""

    def __init__(self) -> None:
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()

    def here(self, make: Callable[[], Any]) -> Any:
        """Return the client of the running loop, made by `make` at the first call; outside of a loop, a new one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return make()  # outside of a loop: it may serve any loop later
        client = self._clients.get(loop)
        if client is None or client.is_closed():
            client = self._clients[loop] = make()
            _ours.here().add(client)
        return client


async def _close_all(clients: weakref.WeakSet[Any]) -> None:
    for client in list(clients):
        await client.close()


_ours: PerLoop[weakref.WeakSet[Any]] = PerLoop(weakref.WeakSet, _close_all, lambda _: True)


# --- one request ----------------------------------------------------------------------------------------------


class Sent:
    """One request through a client.

    Args:
        client: of the openai package.
        path: what is asked: chat completions, or Responses.
        body: what goes out, exactly.
        place: where it goes; another one than `path` after a redirect.
    """

    def __init__(self, client: Any, path: str, body: Mapping[str, Any], place: str) -> None:
        self._client, self._path, self.body, self.place = client, path, body, place
        self._head: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._stream: Any = None
        self._pieces: AsyncIterator[bytes] | None = None
        self._copies: asyncio.Queue[bytes] = asyncio.Queue()
        self._following = asyncio.create_task(self._follow())

    async def answer(self) -> Any:
        """Return the response of the HTTP client, of which only the head has been read; raises what the client does."""
        await asyncio.wait({self._following, self._head}, return_when=asyncio.FIRST_COMPLETED)
        if not self._head.done():
            await self._following
            raise ConfigError(
                "client= answered without sending a request. A mock, or a client with a cache, does not work with "
                "OpenAICompatible: use SimpleLLMFunc.testing.ScriptedLLM, or CachedLLM."
            )
        if not is_wrapped(self._client, self._path):
            self._following.cancel()  # no tool waits for the parsed reply
        return await self._head

    async def piece(self) -> bytes:
        """Return the next bytes of the body as they came, empty at its end."""
        assert self._pieces is not None, "the answer has begun"
        async for piece in self._pieces:
            if piece:
                if not self._following.done():
                    self._copies.put_nowait(piece)
                return piece
        return b""

    async def end(self) -> None:
        """Close what has not been read, and let the package come to its end with what has."""
        self._copies.put_nowait(b"")
        try:
            if not self._head.done():
                self._following.cancel()
            await asyncio.wait({self._following}, timeout=_FOLLOW_SECONDS)
        finally:
            self._following.cancel()
            for each in (self._pieces, self._stream):
                with suppress(Exception):  # broken, or not there
                    await each.aclose()  # type: ignore[union-attr]

    async def _follow(self) -> None:
        """Ask as a user does."""
        _sending.set(self)
        resource = resource_of(self._client, self._path)
        # The one way to have no tries and no redirects but ours, on the client itself and for these requests only.
        if not isinstance(resource._post, _Post):  # noqa: SLF001
            resource._post = _Post(resource._post)  # noqa: SLF001
        hooks = self._client._client.event_hooks["response"]  # noqa: SLF001
        if _take not in hooks:
            hooks.append(_take)
        kind: Any = type(resource)
        known = _parameters(kind)
        answer = await resource.create(**{name: value for name, value in self.body.items() if name in known})
        if self.body.get("stream"):
            async for _ in answer:
                pass

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the request: the tries and the redirects are ours."""
        import openai

        return {
            **options,
            "headers": {**(options.get("headers") or {}), "Accept-Encoding": CODINGS},
            "timeout": openai.Timeout(None, connect=CONNECT_SECONDS),
            "max_retries": 0,
            "follow_redirects": False,
            # The key that a chat takes; the package's default would take an administrator's if there is one.
            "security": {"bearer_auth": True},
        }

    def take(self, response: Any) -> None:
        """Take the stream out of a response, and leave one that follows it."""
        self._stream = response.stream
        self._pieces = aiter(self._stream)
        (kind,) = (kind for kind in type(self._stream).__mro__ if kind.__name__ == "AsyncByteStream")
        response.stream = _following_stream(kind)(self._copies)
        self._head.set_result(response)


_sending: ContextVar[Sent | None] = ContextVar("sending", default=None)
"""The request of ours that a client is about to send."""


async def _take(response: Any) -> None:
    """Hook of an HTTP client, for the requests that are ours."""
    sent = _sending.get()
    if sent is not None:
        sent.take(response)


class _Post:
    """The method by which a resource of the package posts; for requests of ours with our body, to our place."""

    def __init__(self, post: Any) -> None:
        self._post = post

    def __call__(self, path: str, **given: Any) -> Any:
        sent = _sending.get()
        if sent is None:
            return self._post(path, **given)
        given.update(body=sent.body, options=sent.options(given.get("options") or {}))
        return self._post(sent.place, **given)


@cache
def _following_stream(kind: type) -> type:
    """Return a stream of the HTTP client's kind that holds what has been read elsewhere."""

    class Following(kind):  # type: ignore[misc]
        def __init__(self, copies: asyncio.Queue[bytes]) -> None:
            self.copies = copies

        async def __aiter__(self) -> AsyncIterator[bytes]:
            while piece := await self.copies.get():
                yield piece
            self.copies.put_nowait(b"")

        async def aclose(self) -> None:
            pass

    return Following


_MODULES = {
    "chat": "openai.resources.chat.completions",
    "responses": "openai.resources.responses.responses",
    "embeddings": "openai.resources.embeddings",
}
"""The package's modules by the part of a client that is made of them."""


def _part(path: str) -> str:
    """Return the name of the part of a client that asks for a path."""
    last = path.partition("?")[0].rpartition("/")[2]
    return last if last in _MODULES else "chat"


def resource_of(client: Any, path: str) -> Any:
    """Return the part of the client that asks for a path."""
    part = getattr(client, _part(path))
    return part.completions if _part(path) == "chat" else part


@cache
def _parameters(kind: type) -> frozenset[str]:
    return frozenset(inspect.signature(kind.create).parameters)  # type: ignore[attr-defined]


def is_wrapped(client: Any, path: str = "") -> bool:
    """Whether something, such as a tool that traces, has put itself around the calls of a client."""
    import openai

    home = str(Path(openai.__file__).parent)
    # What is not loaded yet is not wrapped, and is not loaded here: that takes its time.
    loaded = [resource_of(client, path).create] if _MODULES[_part(path)] in sys.modules else []
    for call in (*loaded, client.request):
        # What proxies a method, as some wrappers do, says that it is of its class; its type tells.
        function = call.__func__ if type(call).__name__ == "method" else call
        if type(function).__name__ != "function" or not function.__code__.co_filename.startswith(home):
            return True
    return False
