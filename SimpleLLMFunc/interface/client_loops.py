"""Clients of the openai package, whose connections serve one event loop only: the user's, and our own."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from SimpleLLMFunc.interface.per_loop import PerLoop

__all__ = ["ClientPerLoop", "closed_with_loop"]

_first_loops: weakref.WeakKeyDictionary[Any, weakref.ref[asyncio.AbstractEventLoop]] = weakref.WeakKeyDictionary()
"""The loop that each client serves itself, whichever of several models asks."""


class ClientPerLoop:
    """An `openai.AsyncOpenAI` and copies of it: its connections serve one event loop only.

    The first loop that asks has the client itself, each other one a copy with connections of its own, which are
    closed with the loop. A client with an `http_client` of the user's cannot be copied so, and serves all of them.
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
        return self.client.copy(http_client=connections)


def closed_with_loop(client: Any) -> Any:
    """Return `client`, which is closed at the end of the running event loop, if somebody still has it then."""
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
