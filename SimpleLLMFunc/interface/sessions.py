"""One HTTP session per event loop, kept open, closed with its loop, never shared with a forked child."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from SimpleLLMFunc.sync import ForkSafeLock

if TYPE_CHECKING:
    import aiohttp

__all__ = ["session_of_this_loop"]

_KEEP_ALIVE_SECONDS = 30.0
_LONGEST_HEADER = 64 * 1024

_sessions: dict[
    asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[aiohttp.ClientSession, None]]
] = {}
_abandoned: list[Any] = []
"""Sessions of a parent process: a child must neither use nor close them, so it keeps them as they are."""
_lock = ForkSafeLock()


async def session_of_this_loop() -> aiohttp.ClientSession:
    """Return the session of the running event loop; the first call opens it."""
    loop = asyncio.get_running_loop()
    known = _sessions.get(loop)
    if known is not None and not known[0].closed:
        return known[0]
    keeper = _keep_session(loop)
    # The loop notes every async generator that began on it and closes it at its own end (shutdown_asyncgens):
    # that is the one hook that asyncio.run, a Runner and most servers share.
    session = await anext(keeper)
    with _lock:
        _sessions[loop] = (session, keeper)
    _close_with(loop)
    return session


async def _keep_session(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[aiohttp.ClientSession, None]:
    session = _open_session()
    try:
        yield session
    finally:
        with _lock:
            _sessions.pop(loop, None)
        await session.close()


def _open_session() -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        # No limit: how many calls are in flight is decided above, by rate limits and keys.
        connector=_connector_class()(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS),
        timeout=aiohttp.ClientTimeout(total=None, connect=10.0),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=_LONGEST_HEADER,
        max_field_size=_LONGEST_HEADER,
        trust_env=False,
    )


def _seen(end: asyncio.Future[None]) -> None:
    if not end.cancelled():
        end.exception()


@lru_cache(maxsize=1)
def _connector_class() -> type[aiohttp.TCPConnector]:
    import aiohttp

    known: WeakSet[Any] = WeakSet()

    class Connector(aiohttp.TCPConnector):
        """Gives out no kept connection on which something came that nobody had asked for.

        aiohttp would take it for the answer to the next request: the silently wrong answer of somebody else's question.
        """

        async def connect(self, *args: Any, **kwargs: Any) -> aiohttp.connector.Connection:
            while True:
                connection = await super().connect(*args, **kwargs)
                protocol = connection.protocol
                assert protocol is not None, "a connection that was just given out"
                if protocol not in known:
                    known.add(protocol)
                    if protocol.closed is not None:  # who only watches for the end need not ask how it came
                        protocol.closed.add_done_callback(_seen)
                    return connection  # a new one: whatever comes on it is for the one who opened it
                try:
                    await asyncio.sleep(0)  # one round of the loop, to see what waits in the socket's buffer
                except BaseException:
                    connection.close()
                    raise
                if protocol.is_connected() and not protocol.should_close:
                    return connection
                connection.close()

    return Connector


def _close_with(loop: asyncio.AbstractEventLoop) -> None:
    """Close the session also where somebody closes `loop` without asking it to shut its generators down."""
    close: Callable[[], None] = loop.close

    def closing() -> None:
        if loop in _sessions and not loop.is_running() and not loop.is_closed():
            loop.run_until_complete(_close(loop))
        close()

    with contextlib.suppress(AttributeError):  # a loop that takes no attributes has only the first hook
        loop.close = closing  # type: ignore[method-assign]


async def _close(loop: asyncio.AbstractEventLoop) -> None:
    known = _sessions.get(loop)
    if known is not None:
        await known[1].aclose()


@atexit.register
def _close_all() -> None:
    """Close what is still open when the interpreter ends: loops that nobody closed."""
    for loop in list(_sessions):
        if loop.is_closed():
            continue
        with contextlib.suppress(RuntimeError, TimeoutError):  # a loop that stops meanwhile needs nothing more
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(_close(loop), loop).result(1.0)
            else:
                loop.run_until_complete(_close(loop))


def _begin_anew() -> None:
    _abandoned.extend(_sessions.values())
    _sessions.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
