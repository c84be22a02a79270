"""The openai package as its documentation shows it; the round with a tool is a loop by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI, OpenAI

from benchmarks.contenders._order import TOOLS, Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, lookup, serve


class Client:
    def __init__(self, url: str) -> None:
        self._client = AsyncOpenAI(base_url=url, api_key="sk-bench")
        self._sync = OpenAI(base_url=url, api_key="sk-bench")

    async def plain(self, text: str) -> str:
        messages: Any = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        reply = await self._client.chat.completions.create(model=MODEL, messages=messages)
        return reply.choices[0].message.content or ""

    async def typed(self, text: str) -> Order | None:
        messages: Any = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        reply = await self._client.chat.completions.parse(model=MODEL, messages=messages, response_format=Order)
        return reply.choices[0].message.parsed

    async def tool(self, text: str) -> str:
        messages: list[Any] = [{"role": "user", "content": text}]
        tools: Any = TOOLS
        while True:
            reply = await self._client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
            message: Any = reply.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                result = lookup(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    async def history(self, _: str) -> str:
        turns: Any = TURNS
        reply = await self._client.chat.completions.create(model=MODEL, messages=turns)
        return reply.choices[0].message.content or ""

    async def stream(self, text: str) -> AsyncIterator[str]:
        chunks = await self._client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": text}], stream=True
        )
        async for chunk in chunks:
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                yield piece

    def sync(self, text: str) -> str:
        messages: Any = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        return self._sync.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content or ""


if __name__ == "__main__":
    serve(Client)
