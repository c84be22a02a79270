"""An MCP server on the official package, of either major version, to be run as a process: ``mcp_server.py [transport [port]]``.

Its tools do what tests need: values of several kinds, errors, slowness, death.
"""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

try:
    from mcp.server.mcpserver import Context, MCPServer  # mcp 2

    OPTIONS_AT_RUN = True
except ImportError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer  # mcp 1

    OPTIONS_AT_RUN = False

from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

transport = sys.argv[1] if len(sys.argv) > 1 else "stdio"
port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
server: Any = MCPServer("test") if OPTIONS_AT_RUN else MCPServer("test", port=port)  # type: ignore[call-arg]


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def hello(name: str) -> str:
    """Greet."""
    return f"hello {name}"


@server.tool()
def person() -> dict[str, Any]:
    """A person."""
    return {"name": "Anna", "age": 34}


@server.tool()
def squares(count: int) -> list[int]:
    """Square numbers."""
    return [number * number for number in range(count)]


@server.tool()
def fails(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@server.tool()
def environment(name: str) -> str:
    """Look up a variable."""
    return os.environ.get(name, "(not set)")


@server.tool()
async def slow(seconds: float, note: str = "") -> str:
    """Take a while; writes "cancelled" to the file `note` if it is."""
    if note:
        Path(note).write_text("started")
    try:
        await asyncio.sleep(seconds)
    except BaseException:
        if note:
            Path(note).write_text("cancelled")
        raise
    return "slept"


@server.tool()
async def count(note: str, seconds: float) -> str:
    """Count in the file `note` how often this was called, then take a while."""
    path = Path(note)
    written = path.with_suffix(".new")
    written.write_text(str(int(path.read_text()) + 1 if path.exists() else 1))
    written.replace(path)  # whole at once: a test kills this process as soon as the file is there
    await asyncio.sleep(seconds)
    return path.read_text()


@server.tool()
def die(note: str = "") -> str:
    """End the whole process without an answer."""
    print("fatal: out of luck, password=hunter2hunter2", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def grow() -> str:
    """Offer another tool from now on, and describe this one anew."""
    server.add_tool(lambda: "new", name="later", description="A new tool.")
    return "grown"


class Seat(BaseModel):
    row: int
    by_window: bool = True


@server.tool()
async def sample(text: str, times: int, ctx: Context) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    for _ in range(times):
        answer = await ctx.session.create_message([message], max_tokens=50, system_prompt="Be short.", temperature=0.5)
    return f"it said {answer.content.text}; {answer.model}, {answer.role}"


@server.tool()
async def book(ctx: Context) -> str:
    """Ask the client's user."""
    answer = await ctx.elicit("Which seat?", Seat)
    return f"{answer.action} {getattr(answer, 'data', None)}"


def _end_with_parent() -> None:
    while os.getppid() != 1:
        time.sleep(0.2)
    os._exit(0)


if __name__ == "__main__":
    if transport != "stdio":
        threading.Thread(target=_end_with_parent, daemon=True).start()
    if OPTIONS_AT_RUN and transport != "stdio":
        server.run(transport, port=port)
    else:
        server.run(transport)
