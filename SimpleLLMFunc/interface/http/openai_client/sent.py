"""A request that the user's own client sends: what wraps the client sees the call as users make it; the bytes are ours.

Tools that trace the openai package wrap ``create``, or the ``request`` below it, of its classes or of one client, and
read the tokens off what these return: a parsed reply, or a stream of parsed chunks. So each request is a ``create`` on
the client itself, in a second task. We take the stream out of the response and read it; then we hand the bytes on to
the package, which parses them for the tools.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.http.content_decoding import CODINGS
from SimpleLLMFunc.interface.http.timeouts import CONNECT_SECONDS

_FOLLOW_SECONDS = 5.0
"""How long the package, and what wraps it, may take to read what we have read already."""


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
