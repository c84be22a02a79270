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
        self._copies: PerLoop[Any] = PerLoop(self._copy, _close, lambda copy: not copy.is_closed())

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


async def _close(client: Any) -> None:
    await client.close()


async def _close_all(clients: weakref.WeakSet[Any]) -> None:
    for client in list(clients):
        await client.close()


_ours: PerLoop[weakref.WeakSet[Any]] = PerLoop(weakref.WeakSet, _close_all, lambda _: True)


def _has_its_own_connections(client: Any) -> bool:
    """Whether the package made the client's `http_client`, so that another one can be made alike."""
    return type(getattr(client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"
