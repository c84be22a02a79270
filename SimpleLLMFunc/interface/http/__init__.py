"""One HTTP exchange: bytes out, bytes in. Over aiohttp, which only this room knows.

It keeps a session for each event loop, holds time limits and a size cap, and turns every foreign exception into one of
ours. Nothing is tried again here.
"""

from __future__ import annotations

from SimpleLLMFunc.interface.http.environment import proxy_for, tls_context
from SimpleLLMFunc.interface.http.error_mapping import failure_of_exception, without_frames
from SimpleLLMFunc.interface.http.exchange import Exchange, HttpReply, HttpRequest, read_all
from SimpleLLMFunc.interface.http.secret_parts import Address, Headers, Hidden
from SimpleLLMFunc.interface.http.timeouts import Silence, TryTimeout

__all__ = [
    "Address", "Exchange", "Headers", "Hidden", "HttpReply", "HttpRequest", "Silence", "TryTimeout",
    "failure_of_exception", "openai_client", "proxy_for", "read_all", "tls_context", "without_frames",
]  # fmt: skip
