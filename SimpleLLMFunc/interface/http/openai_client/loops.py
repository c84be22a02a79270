"""Clients of the openai package, whose connections serve one event loop only: the user's, and our own."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

from SimpleLLMFunc.interface.http.openai_client.sent import is_wrapped
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.runtime import PerLoop

_first_loops: weakref.WeakKeyDictionary[Any, weakref.ref[asyncio.AbstractEventLoop]] = weakref.WeakKeyDictionary()
"""The loop that each client serves itself, whichever of several models asks."""


class ClientPerLoop:
    """An `openai.AsyncOpenAI` and copies of it: its connections serve one event loop only.

    The first loop that asks gets the client itself, every other loop gets a copy with separate connections, which are
    closed with the loop. A client with the user's `http_client` cannot be copied like that, and serves all loops.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._copies: PerLoop[Any] = own_clients(self._copy)

    def here(self) -> Any:
        """Return the client for the running loop."""
        loop = asyncio.get_running_loop()
        first = _first_loops.setdefault(self.client, weakref.ref(loop))
        if first() is loop or self.client.is_closed() or not _has_its_own_connections(self.client):
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


def own_clients(make: Callable[[], Any]) -> PerLoop[Any]:
    """Return the clients that we make for one model, one for each event loop; each is closed at the end of its loop."""
    return PerLoop(make, _close, _is_open)


async def _close(client: Any) -> None:
    await client.close()


def _is_open(client: Any) -> bool:
    return not client.is_closed()


def _has_its_own_connections(client: Any) -> bool:
    """Whether the package made the client's `http_client`, so that another one can be made alike."""
    return type(getattr(client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"
