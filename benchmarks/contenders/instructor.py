"""instructor around the openai package's client, with native JSON schemas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

import instructor
from openai import AsyncOpenAI, OpenAI

from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, serve


class Client:
    lacks: ClassVar = {"tool": "runs no tools"}

    def __init__(self, url: str) -> None:
        mode = instructor.Mode.JSON_SCHEMA
        self._client: Any = instructor.from_openai(AsyncOpenAI(base_url=url, api_key="sk-bench"), mode=mode)
        self._sync: Any = instructor.from_openai(OpenAI(base_url=url, api_key="sk-bench"), mode=mode)

    async def _ask(self, messages: Any, response_model: Any = None, **more: Any) -> Any:
        return await self._client.chat.completions.create(
            model=MODEL, messages=messages, response_model=response_model, **more
        )

    async def plain(self, text: str) -> str:
        reply = await self._ask([{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}])
        return reply.choices[0].message.content

    async def typed(self, text: str) -> Order:
        return await self._ask([{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}], Order)

    async def history(self, _: str) -> str:
        return (await self._ask(list(TURNS))).choices[0].message.content

    async def stream(self, text: str) -> AsyncIterator[str]:
        async for chunk in await self._ask([{"role": "user", "content": text}], stream=True):
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                yield piece

    def sync(self, text: str) -> str:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
        reply = self._sync.chat.completions.create(model=MODEL, messages=messages, response_model=None)
        return reply.choices[0].message.content


if __name__ == "__main__":
    serve(Client)
