"""Decorated functions offered to others: as MCP tools."""

from SimpleLLMFunc.serve.browser import BrowserStream
from SimpleLLMFunc.serve.http import fastapi_errors, serve_functions
from SimpleLLMFunc.serve.http_callers import KEYS_VARIABLE, CallerEntry, Callers, hash_of, new_key
from SimpleLLMFunc.serve.mcp import protocol_streams, serve_http, serve_mcp, serve_stdio
from SimpleLLMFunc.serve.offer import Decorated, decorated_functions

__all__ = ["BrowserStream", "decorated_functions", "fastapi_errors", "serve_mcp"]
__all__ += [
    "KEYS_VARIABLE", "CallerEntry", "Callers", "Decorated", "hash_of", "new_key", "protocol_streams", "serve_functions",
    "serve_http", "serve_stdio",
]  # for other rooms  # fmt: skip
