"""One HTTP exchange: bytes out, bytes in. The only room that knows the HTTP client.

It keeps connections for each event loop, holds time limits and a size cap, and turns every foreign exception into one of
ours. Nothing is tried again here.
"""

from __future__ import annotations

from SimpleLLMFunc.interface.http.environment import proxy_for, tls_context
from SimpleLLMFunc.interface.http.error_mapping import failure_of_exception, without_frames
from SimpleLLMFunc.interface.http.exchange import LARGEST_BODY, Exchange, HttpReply, HttpRequest, read_all, user_agent
from SimpleLLMFunc.interface.http.request_head import RequestHeaders
from SimpleLLMFunc.interface.http.secret_parts import Address, Headers, Hidden
from SimpleLLMFunc.interface.http.timeouts import Patience, Silence
from SimpleLLMFunc.interface.http.url import parsed_url

__all__ = [
    "LARGEST_BODY",
    "Address",
    "Exchange",
    "Headers",
    "Hidden",
    "HttpReply",
    "HttpRequest",
    "Patience",
    "RequestHeaders",
    "Silence",
    "failure_of_exception",
    "openai_client",
    "parsed_url",
    "proxy_for",
    "read_all",
    "tls_context",
    "user_agent",
    "without_frames",
]
