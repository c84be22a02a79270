"""`TavilySearch`: the web search of Tavily, through its own package (extra: search)."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import AsyncIterator
from typing import Any, Final

from SimpleLLMFunc.assistant.search.search import SearchReply, read_reply
from SimpleLLMFunc.config import clean_key
from SimpleLLMFunc.errors import ConfigError, ConnectionFailed, ProviderError, RateLimited, SimpleLLMFuncError
from SimpleLLMFunc.extras import check_extra, load_extra
from SimpleLLMFunc.interface.attempts import MAX_BYTES, now
from SimpleLLMFunc.interface.http import proxy_for, tls_context
from SimpleLLMFunc.interface.http.openai_client import warm_up_clients
from SimpleLLMFunc.interface.wires import Received, failure_of, read_error
from SimpleLLMFunc.logger import remember_secret, shown_error
from SimpleLLMFunc.runtime import importing, in_thread

_SERVICE: Final = "Tavily"
_VARIABLE: Final = "TAVILY_API_KEY"
_PLAN_USED_UP = frozenset({432, 433})


class TavilySearch:
    """Searches the web through Tavily.

    Args:
        api_key: None reads TAVILY_API_KEY, at each search.
        max_results: hits of one search.
        timeout: seconds for one search.
        endpoint: where the service is; None is its public address.
        **options: go to the package's `search`: `search_depth`, `topic`, `include_domains` …

    Raises:
        ConfigError: no key, or the extra `search` is not installed.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        max_results: int = 5,
        timeout: float = 10.0,
        endpoint: str | None = None,
        **options: Any,
    ) -> None:
        check_extra("tavily", "search", purpose="TavilySearch")
        self.max_results = max_results
        self.timeout = timeout
        self.endpoint = (endpoint or "https://api.tavily.com").rstrip("/")
        self.options = {"include_answer": True, **options}
        self._own_key = None if api_key is None else clean_key(api_key, "api_key")
        self._key()

    async def search(self, query: str) -> SearchReply:
        """Return Tavily's short answer and its hits.

        Raises:
            ConfigError: there is no key.
            AuthenticationError: the key was refused.
            RateLimited: too many searches, or the plan is used up (`kind="quota"`).
            ProviderError: the service failed, or its reply cannot be read.
        """
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                # Loading the package takes a third of a second.
                package = await importing(lambda: load_extra("tavily", "search", purpose="TavilySearch"))
                http = await in_thread(self._open)
                await warm_up_clients()
                async with http:
                    client = package.AsyncTavilyClient(self._key(), client=http)
                    found = await client.search(
                        query, max_results=self.max_results, timeout=self.timeout, **self.options
                    )
        except SimpleLLMFuncError:
            raise
        except Exception as error:  # noqa: BLE001 - no foreign exception may pass
            raise self._ours(error, late=limit.expired()) from None
        return read_reply(found, service=_SERVICE)

    def _key(self) -> str:
        key = self._own_key or os.environ.get(_VARIABLE, "").strip()
        if not key:
            raise ConfigError(
                f"TavilySearch has no key. Write TavilySearch(api_key=…), or set {_VARIABLE}. Without a key: "
                "WikipediaSearch()."
            )
        key = clean_key(key, _VARIABLE)
        remember_secret(key)
        return key

    def _open(self) -> Any:
        """Return the HTTP client that the package works with, its replies judged and limited by us."""
        httpx = load_extra("httpx", "search", purpose="TavilySearch")
        return httpx.AsyncClient(
            base_url=self.endpoint,
            headers={"accept-encoding": "identity"},
            timeout=self.timeout,
            verify=tls_context(),
            proxy=proxy_for(self.endpoint),
            trust_env=False,
            event_hooks={"response": [functools.partial(_judged, httpx)]},
        )

    def _ours(self, error: Exception, *, late: bool) -> ProviderError:
        """Return the error that one of the package, or of the HTTP client below it, is among ours."""
        said = shown_error(error, 300)
        if late or isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
            return ConnectionFailed(_SERVICE, reason=f"no reply within {self.timeout:g} s", advice="Try again later.")
        if type(error).__module__.partition(".")[0] in {"httpx", "httpcore"}:
            return ConnectionFailed(_SERVICE, reason=said)
        return ProviderError(f"the search failed: {said}", model=_SERVICE)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_own_key": None}


async def _judged(httpx: Any, response: Any) -> None:
    """Look at a reply before its body is read: limit the body, and raise our error for a refusal.

    The package's own errors keep neither the status nor how long to wait.
    """
    status = response.status_code
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ProviderError(
            "the reply is compressed, and the request did not allow that.", model=_SERVICE, status=status
        )
    response.stream = _limited(httpx, response.stream)
    if status == 200:
        return
    said = read_error(await response.aread())
    if status in _PLAN_USED_UP:
        raise RateLimited(_SERVICE, kind="quota", status=status, body=said.message)
    if status < 400:
        raise ProviderError(f"the status is {status}, expected 200.", model=_SERVICE, status=status)
    raise failure_of(said, Received(_SERVICE, 1, status, response.headers, now())).error


def _limited(httpx: Any, stream: Any) -> Any:
    """Return the stream of a body, ended by an error where it grows too long."""

    class Limited(httpx.AsyncByteStream):  # type: ignore[misc]  # the client takes no other class
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in stream:
                size += len(piece)
                if size > MAX_BYTES:
                    raise ProviderError(f"the reply is longer than {MAX_BYTES} bytes.", model=_SERVICE)
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()
