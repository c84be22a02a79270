"""Through a client of the openai package that the user brought: one exchange, and objects of the package's own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.http.error_mapping import translated
from SimpleLLMFunc.interface.http.exchange import (
    HttpReply,
    HttpRequest,
    is_redirect,
    redirect_target,
    whole_address,
)
from SimpleLLMFunc.interface.http.openai_client.sent import Sent, resource_of
from SimpleLLMFunc.interface.http.secret_parts import Address
from SimpleLLMFunc.interface.http.timeouts import Patience
from SimpleLLMFunc.logger import HTTP_LOGGERS, redact_logs_of
from SimpleLLMFunc.runtime import import_module, importing
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk


class ClientExchange(HttpReply):
    """Sends a request through an `openai.AsyncOpenAI` or `AsyncAzureOpenAI`; as `Exchange` otherwise.

    The client's own retries are off, and its reply is read as bytes: the package hides what a broken reply looks like.
    So are its redirects: it would take the messages, and every header but one, to any host.
    """

    def __init__(
        self, client: Any, path: str, body: Mapping[str, Any], request: HttpRequest, patience: Patience
    ) -> None:
        super().__init__(request, patience)
        self._client = client
        self._path = path
        self._body = body
        self._sent: Sent | None = None

    async def __aenter__(self) -> HttpReply:
        await warm_up_clients()
        await importing(resource_of, self._client, self._path)  # the package loads a second's worth of modules
        opening = self.patience.wait(self._open())
        try:
            await translated(opening, self._request.model, self._request.tries, self._request.url)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sent is not None:
            await self._sent.end()

    async def _open(self) -> None:
        place, redirects = self._path, 0
        while True:
            self._sent = Sent(self._client, self._path, self._body, place)
            answer = await self._sent.answer()
            if not is_redirect(answer.status_code, answer.headers):
                break
            await self._sent.end()
            redirects += 1
            url = whole_address(str(answer.url))
            place = str(redirect_target(url, answer.status_code, answer.headers["location"], redirects, self._request))
        self.url: str = Address(str(answer.url))  # Azure's clients write another path
        self._begin(answer.status_code, answer.headers)

    async def _read(self) -> bytes:
        assert self._sent is not None, "the reply has begun"
        return await self.patience.wait(self._sent.piece(), "reading the answer")


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
