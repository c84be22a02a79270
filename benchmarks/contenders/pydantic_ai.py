"""pydantic-ai with agents made once, and native JSON schemas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent, NativeOutput
from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, lookup, serve


class Client:
    def __init__(self, url: str) -> None:
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=url, api_key="sk-bench"))
        self._plain: Agent[None, str] = Agent(model, system_prompt=SYSTEM)
        self._typed: Agent[None, Order] = Agent(model, system_prompt=SYSTEM, output_type=NativeOutput(Order))
        self._tool: Agent[None, str] = Agent(model, tools=[lookup])
        self._turns: list[Any] = []
        for turn in TURNS[1:-1]:
            if turn["role"] == "assistant":
                self._turns.append(ModelResponse(parts=[TextPart(turn["content"])]))
            else:
                parts: list[Any] = [] if self._turns else [SystemPromptPart(SYSTEM)]
                self._turns.append(ModelRequest(parts=[*parts, UserPromptPart(turn["content"])]))

    async def plain(self, text: str) -> str:
        return (await self._plain.run(text)).output

    async def typed(self, text: str) -> Order:
        return (await self._typed.run(text)).output

    async def tool(self, text: str) -> str:
        return (await self._tool.run(text)).output

    async def history(self, _: str) -> str:
        return (await self._plain.run(TURNS[-1]["content"], message_history=self._turns)).output

    async def stream(self, text: str) -> AsyncIterator[str]:
        async with self._plain.run_stream(text) as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                yield piece

    def sync(self, text: str) -> str:
        return self._plain.run_sync(text).output


if __name__ == "__main__":
    serve(Client)
