"""litellm's completions; the round with a tool is a loop by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import litellm

from benchmarks.contenders._order import TOOLS, Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, lookup, serve


class Client:
    def __init__(self, url: str) -> None:
        self._given: dict[str, Any] = {"model": f"openai/{MODEL}", "base_url": url, "api_key": "sk-bench"}

    async def _ask(self, messages: list[Any], **more: Any) -> Any:
        reply: Any = await litellm.acompletion(messages=messages, **self._given, **more)
        return reply if "stream" in more else reply.choices[0].message

    async def plain(self, text: str) -> str:
        return (await self._ask([{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}])).content

    async def typed(self, text: str) -> Order:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        return Order.model_validate_json((await self._ask(messages, response_format=Order)).content)

    async def tool(self, text: str) -> str:
        messages: list[Any] = [{"role": "user", "content": text}]
        while True:
            message = await self._ask(messages, tools=TOOLS)
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                result = lookup(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    async def history(self, _: str) -> str:
        return (await self._ask(list(TURNS))).content

    async def stream(self, text: str) -> AsyncIterator[str]:
        async for chunk in await self._ask([{"role": "user", "content": text}], stream=True):
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                yield piece

    def sync(self, text: str) -> str:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        reply: Any = litellm.completion(messages=messages, **self._given)
        return reply.choices[0].message.content


if __name__ == "__main__":
    serve(Client)
