"""MCP: the tools of a running MCP server, as tools of ours (`tools_from_mcp`).

`server` says how a server is reached, `connection` keeps one session with it, `messages` reads what it asks and answers.
"""

from SimpleLLMFunc.tools.mcp.client import tools_from_mcp
from SimpleLLMFunc.tools.mcp.server import require_mcp

__all__ = ["require_mcp", "tools_from_mcp"]
