"""Decorated functions offered to others: as MCP tools."""

from SimpleLLMFunc.serve.mcp import decorated_functions, serve_mcp

__all__ = ["decorated_functions", "serve_mcp"]
