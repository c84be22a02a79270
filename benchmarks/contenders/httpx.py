"""Bare httpx with the limits and time-outs of the openai package, which sits on it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from benchmarks.contenders._order import RESPONSE_FORMAT, TOOLS, Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, lookup, serve

try:
    import httpx2 as httpx  # what the openai package 3.x sits on
except ImportError:
    import httpx  # type: ignore[no-redef]

TIMEOUT = httpx.Timeout(timeout=600, connect=5.0)
LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=100)


class Client:
    def __init__(self, url: str) -> None:
        self._url = url + "/chat/completions"
        headers = {"Authorization": "Bearer sk-bench"}
        self._client = httpx.AsyncClient(timeout=TIMEOUT, limits=LIMITS, headers=headers, follow_redirects=True)
        self._sync = httpx.Client(timeout=TIMEOUT, limits=LIMITS, headers=headers, follow_redirects=True)

    async def _ask(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        response = await self._client.post(self._url, json={"model": MODEL, "messages": messages, **more})
        response.raise_for_status()
        message: dict[str, Any] = response.json()["choices"][0]["message"]
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
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "stream": True}
        async with self._client.stream("POST", self._url, json=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    choices = json.loads(line[6:])["choices"]
                    if choices and (piece := choices[0]["delta"].get("content")):
                        yield piece

    def sync(self, text: str) -> str:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        response = self._sync.post(self._url, json={"model": MODEL, "messages": messages})
        response.raise_for_status()
        return response.json()["choices"][0]["message"]["content"]


if __name__ == "__main__":
    serve(Client)
