"""Bare aiohttp, and pydantic for the typed answer: the least that one could write by hand, and never would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import aiohttp

from benchmarks.contenders._order import RESPONSE_FORMAT, TOOLS, Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, lookup, serve


class Client:
    lacks: ClassVar = {"sync": "has no plain functions"}

    def __init__(self, url: str) -> None:
        self._url = url + "/chat/completions"
        self._headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench"}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None, connect=60.0)
        )

    async def _ask(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        body = json.dumps({"model": MODEL, "messages": messages, **more}).encode()
        async with self._session.post(self._url, data=body, headers=self._headers) as response:
            response.raise_for_status()
            message: dict[str, Any] = json.loads(await response.read())["choices"][0]["message"]
        return message

    async def plain(self, text: str) -> str:
        return (await self._ask([{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]))["content"]

    async def typed(self, text: str) -> Order:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        return Order.model_validate_json((await self._ask(messages, response_format=RESPONSE_FORMAT))["content"])

    async def tool(self, text: str) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
        while True:
            message = await self._ask(messages, tools=TOOLS)
            if not message.get("tool_calls"):
                return message["content"]
            messages.append(message)
            for call in message["tool_calls"]:
                result = lookup(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def history(self, _: str) -> str:
        return (await self._ask(TURNS))["content"]

    async def stream(self, text: str) -> AsyncIterator[str]:
        messages = [{"role": "user", "content": text}]
        body = json.dumps({"model": MODEL, "messages": messages, "stream": True}).encode()
        async with self._session.post(self._url, data=body, headers=self._headers) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    if choices and (piece := choices[0]["delta"].get("content")):
                        yield piece


if __name__ == "__main__":
    serve(Client)
