"""openai-agents over chat completions, with tracing off (it would send what it sees)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI

from benchmarks.contenders import _worker
from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, serve

lookup = function_tool(_worker.lookup)


class Client:
    def __init__(self, url: str) -> None:
        model = OpenAIChatCompletionsModel(MODEL, AsyncOpenAI(base_url=url, api_key="sk-bench"))
        self._plain: Agent[Any] = Agent(name="plain", instructions=SYSTEM, model=model)
        self._typed: Agent[Any] = Agent(name="typed", instructions=SYSTEM, model=model, output_type=Order)
        self._tool: Agent[Any] = Agent(name="tool", model=model, tools=[lookup])

    async def plain(self, text: str) -> str:
        return (await Runner.run(self._plain, text)).final_output

    async def typed(self, text: str) -> Order:
        return (await Runner.run(self._typed, text)).final_output

    async def tool(self, text: str) -> str:
        return (await Runner.run(self._tool, text)).final_output

    async def history(self, _: str) -> str:
        turns: Any = TURNS[1:]
        return (await Runner.run(self._plain, turns)).final_output

    async def stream(self, text: str) -> AsyncIterator[str]:
        async for event in Runner.run_streamed(self._plain, text).stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                yield event.data.delta

    def sync(self, text: str) -> str:
        return Runner.run_sync(self._plain, text).final_output


if __name__ == "__main__":
    serve(Client)
