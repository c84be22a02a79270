"""What the type checkers see of tools; checked, not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

from SimpleLLMFunc.tools import Tool, ToolContext, ToolRegistry, tool


@tool
def add(a: int, b: int = 2) -> int:
    return a + b


@tool(name="web.search", timeout=30, untrusted=True)
async def search(query: str, ctx: ToolContext[dict[str, str]]) -> list[str]:
    assert_type(ctx.context, dict[str, str])
    return [query]


@tool
def bare(ctx: ToolContext) -> None:
    ctx.emit("half way")


class Weather(Tool):
    """Tell the weather."""

    name = "weather"
    timeout = 5.0

    def run(self, city: str, days: int = 1) -> str:
        return city * days


class Remote(Tool):
    async def run(self, *, path: str) -> bytes:
        return path.encode()


class Shop:
    @tool
    def price(self, amount: int) -> float:
        return amount * 1.5

    @tool(name="shop.close")
    async def close(self, *, hard: bool) -> str:
        return str(hard)


def plain(a: int) -> int:
    return a


async def main() -> None:
    assert_type(add(1), int)
    assert_type(add(a=1, b=2), int)
    assert_type(await search("x", ToolContext(context={"a": "b"})), list[str])
    assert_type(Weather().run("Rome", days=2), str)
    assert_type(await Remote().run(path="a"), bytes)
    shop = Shop()
    assert_type(shop.price(3), float)
    assert_type(await shop.close(hard=True), str)
    toolkit: list[Tool | Callable[..., Any]] = [add, search, bare, Weather(), Remote(), shop.price, shop.close, plain]
    registry = ToolRegistry(*toolkit)
    assert_type(registry.names(), list[str])
    assert_type(await registry.invoke("add", a=1), Any)
    assert_type(Tool(func=plain, name="p", description="d", parameters={"type": "object"}), Tool)
