"""What can go wrong on a connection; `foreign` makes errors for users of it."""

from __future__ import annotations

import os
import ssl

__all__ = ["BodyBroken", "ConnectFailed", "Disconnected", "NotHttp", "ProxyRefused", "WireError"]


class WireError(Exception):
    """What can go wrong between two ends of a connection, beyond what the system and TLS have errors for."""


class NotHttp(WireError):
    """What came is not HTTP as we know it; `.head` is its beginning."""

    def __init__(self, problem: str, head: str = "") -> None:
        self.head = head
        super().__init__(problem)


class Disconnected(WireError):
    """The connection ended before the reply began."""


class BodyBroken(WireError):
    """The body of a reply ended before its end, or is not in the form that its head says."""


class ConnectFailed(WireError):
    """Nobody could be reached; its cause is the system's or TLS's error."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        reason = (
            os.strerror(error.errno)
            if error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError)
            else error.strerror
        )
        super().__init__(f"{host}:{port}: {reason or str(error) or type(error).__name__}")


class ProxyRefused(WireError):
    """The proxy opened no tunnel; `.status` is what it answered."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the proxy answered {status}")
