"""MCP: the tools of a running MCP server, as tools of ours (`tools_from_mcp`).

`server` says how a server is reached, `connection` keeps one session with it, `result` reads what a tool answered.
"""
