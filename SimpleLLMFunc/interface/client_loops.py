"""The client that a user brought with `client=`, for whichever event loop asks."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from SimpleLLMFunc.interface.per_loop import PerLoop

__all__ = ["ClientPerLoop"]


class ClientPerLoop:
    """An `openai.AsyncOpenAI` and copies of it: its connections serve one event loop only.

    The first loop that asks has the client itself, each other one a copy with connections of its own, which are
    closed with the loop. A client with an `http_client` of the user's cannot be copied so, and serves all of them.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._first: weakref.ref[asyncio.AbstractEventLoop] | None = None
        self._copies: PerLoop[Any] = PerLoop(self._copy, _closed, lambda copy: not copy.is_closed())

    def here(self) -> Any:
        """Return the client for the running loop."""
        loop = asyncio.get_running_loop()
        if self._first is None:
            self._first = weakref.ref(loop)
        if self._first() is loop or self.client.is_closed() or not _has_its_own_connections(self.client):
            return self.client
        return self._copies.here()

    def _copy(self) -> Any:
        import openai

        timeout = getattr(self.client, "timeout", None)
        connections = openai.DefaultAsyncHttpxClient(base_url=self.client.base_url, timeout=timeout)
        return self.client.copy(http_client=connections)


async def _closed(client: Any) -> None:
    await client.close()


def _has_its_own_connections(client: Any) -> bool:
    """Whether the package made the client's `http_client`, so that another one can be made alike."""
    return type(getattr(client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"
