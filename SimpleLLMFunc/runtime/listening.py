"""Listening at an address of this machine, and serving there until cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.runtime.threads import import_module
from SimpleLLMFunc.utils import cancelled

if TYPE_CHECKING:
    from starlette.types import ASGIApp

THIS_MACHINE: Final = ("127.0.0.1", "::1", "localhost")
"""The names by which only this machine is reached."""

_REQUEST_SECONDS: Final = 30.0
"""How long a request may take to arrive, head and body; then its connection is closed."""


def require_web(purpose: str, *modules: str) -> None:
    """Import the web framework of the extra `view`, and further modules of it; it takes its time.

    Raises:
        ConfigError: one is missing; `purpose` needs it.
    """
    for module in ("starlette.applications", *modules):
        load_extra(module, "view", purpose=purpose)
    with contextlib.suppress(ImportError):
        import anyio._backends._asyncio  # noqa: F401 - else the first request imports it, and waits


@contextlib.contextmanager
def listening(
    host: str, port: int, *, others: str = "", offered: str = "the functions are offered"
) -> Iterator[socket.socket]:
    """Yield a socket that clients can connect to.

    Args:
        host: an address of this machine.
        port: 0 for any that is free.
        others: why no other machine may call, and what to do; empty where it may.
        offered: what is there, with its verb: the beginning of the error for another machine's address.

    Raises:
        ConfigError: other machines could call, and may not; or the port is taken.
    """
    if others and host not in THIS_MACHINE:
        raise ConfigError(f"{offered} on this machine only ({', '.join(THIS_MACHINE)}), not at {host!r}: {others}")
    if not 0 <= port <= 65_535:
        raise ConfigError(f"{host}:{port} cannot be used. A port is a number up to 65535; 0 takes any free one.")
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(
            f"{host}:{port} cannot be used ({error.strerror or error}). Choose another port, or 0 for any free one."
        ) from error
    with listener:
        yield listener


def address_of(host: str, listener: socket.socket) -> str:
    """Return the address that clients use."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


async def serve_until_cancelled(app: ASGIApp, listener: socket.socket, *, grace: int = 1, **options: Any) -> None:
    """Serve an application with uvicorn until cancelled, or until Ctrl-C.

    Args:
        app: what answers.
        listener: where clients connect.
        grace: seconds that answers under way have left when it ends.
        **options: of `uvicorn.Config`.
    """
    await import_module("uvicorn")  # takes its time
    import uvicorn

    async def quiet(scope: Any, receive: Any, send: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # the server ends: uvicorn would show a traceback
            await app(scope, receive, send)

    config = uvicorn.Config(
        quiet,
        http=_timeout_protocol(),
        log_config=None,
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=grace,
        **options,
    )
    web = uvicorn.Server(config)
    # Signals are for the program to handle: Ctrl-C cancels us, as it does everything that asyncio.run runs.
    web.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    serving = asyncio.ensure_future(web.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    finally:
        # Not cancelled: it would leave its connections open.
        web.should_exit = True
        await asyncio.wait({serving})


async def unless_gone(task: asyncio.Task[Any], receive: Callable[[], Awaitable[Any]]) -> bool:
    """Wait for the task, and return True; or cancel it because the caller has gone, and return False."""
    gone = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        await cancelled(gone)
        await cancelled(task)


async def _gone(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _timeout_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with a time limit for a request to arrive, which uvicorn itself does not have."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol  # the strict one of the two parsers that uvicorn may find

    class TimeoutProtocol(H11Protocol):
        """Closes a connection whose request is half sent for too long."""

        limit: asyncio.TimerHandle | None = None
        was_paused = False
        """The application made the client wait since the timer began: that time is not the client's."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.was_paused = self.was_paused or self.flow.read_paused
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self.unwatch()
            super().connection_lost(exc)

        def watch(self) -> None:
            """Let the timer run while a request arrives."""
            if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
                self.unwatch()
            elif self.limit is None and not self.transport.is_closing():
                self.limit = self.loop.call_later(_REQUEST_SECONDS, self.give_up)

        def unwatch(self) -> None:
            if self.limit is not None:
                self.limit.cancel()
                self.limit = None

        def give_up(self) -> None:
            self.limit = None
            if self.was_paused:
                self.was_paused = self.flow.read_paused
                self.watch()
            else:
                self.transport.close()

    return TimeoutProtocol
