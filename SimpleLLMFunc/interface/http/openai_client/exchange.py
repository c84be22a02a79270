"""Through a client of the openai package that the user brought: one exchange, and objects of the package's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.http.content_decoding import unpacker_for
from SimpleLLMFunc.interface.http.error_mapping import translated
from SimpleLLMFunc.interface.http.exchange import (
    HttpReply,
    HttpRequest,
    Reading,
    is_redirect,
    redirect_target,
    whole_address,
)
from SimpleLLMFunc.interface.http.secret_parts import Address
from SimpleLLMFunc.interface.http.timeouts import CONNECT_SECONDS, Patience
from SimpleLLMFunc.logger import HTTP_LOGGERS, redact_logs_of
from SimpleLLMFunc.runtime import import_module
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk

__all__ = ["ClientExchange", "check_client", "to_openai", "warm_up_clients"]

_RAW = "X-Stainless-Raw-Response"
"""The header by which the openai package knows that its answer is wanted as it comes."""


class _ClientReply(Reading):
    """A reply through the openai package."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        url: str,
        pieces: AsyncIterator[bytes],
        request: HttpRequest,
        patience: Patience,
    ) -> None:
        super().__init__(request, patience)
        self.status = status
        self.headers = headers
        self.url = url
        self._pieces = pieces
        # The client unpacks, and tells of a wrong checksum; how far it has come it does not tell before the end.
        self.is_checked = unpacker_for(headers.get("content-encoding", "")) is None

    async def _next(self) -> bytes:
        while True:
            piece = await self.patience.wait(_next(self._pieces), "reading the answer")
            if piece is None:
                self.is_checked = True
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

    def __init__(
        self, client: Any, path: str, body: Mapping[str, Any], request: HttpRequest, patience: Patience
    ) -> None:
        self._client = client
        self._path = path
        self._body = body
        self._request = request
        self._patience = patience
        self._opened: Any = None

    async def __aenter__(self) -> HttpReply:
        opening = self._patience.wait(self._open())
        return await translated(opening, self._request.model, self._request.tries, self._request.url)

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> HttpReply:
        import openai

        await warm_up_clients()
        quiet = self._client.with_options(max_retries=0, timeout=openai.Timeout(None, connect=CONNECT_SECONDS))
        # The key that a chat takes; the package's default would take an administrator's if there is one.
        options = {"headers": {_RAW: "stream"}, "follow_redirects": False, "security": {"bearer_auth": True}}
        place, redirects = self._path, 0
        while True:
            try:
                opened = self._opened = await quiet.post(place, cast_to=object, body=self._body, options=options)
                return self._reply(opened, opened.iter_bytes())
            except openai.APIStatusError as error:
                answer = error.response  # the package has read the body already
            if not is_redirect(answer.status_code, answer.headers):
                return self._reply(answer, _one(answer.content))
            redirects += 1
            url = whole_address(str(answer.url))
            place = str(redirect_target(url, answer.status_code, answer.headers["location"], redirects, self._request))

    def _reply(self, answer: Any, pieces: AsyncIterator[bytes]) -> HttpReply:
        url = Address(str(answer.url))  # Azure's clients write another path
        return _ClientReply(answer.status_code, answer.headers, url, pieces, self._request, self._patience)


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
        data["usage"] = item.raw["usage"]
    return (OpenAICompletion if isinstance(item, ChatCompletion) else OpenAIChunk).construct(**data)
