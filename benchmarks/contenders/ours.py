"""SimpleLLMFunc, as its tutorial shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, TURNS, lookup, serve
from SimpleLLMFunc import OpenAICompatible, llm_chat, llm_function, tool


class Client:
    def __init__(self, url: str) -> None:
        llm = OpenAICompatible(MODEL, base_url=url, api_key="sk-bench", profile="openai")

        @llm_function(llm_interface=llm)
        async def plain(question: str) -> str:
            """You are a helpful assistant who answers briefly."""
            raise NotImplementedError

        @llm_function(llm_interface=llm)
        async def typed(text: str) -> Order:
            """You are a helpful assistant who answers briefly."""
            raise NotImplementedError

        @llm_function(llm_interface=llm, toolkit=[tool(lookup)])
        async def ticket(question: str) -> str:
            """Answer the question."""
            raise NotImplementedError

        @llm_chat(llm_interface=llm)
        async def chat(history: list[Any], message: str) -> AsyncIterator[tuple[str, list[Any]]]:
            """You are a helpful assistant who answers briefly."""
            raise NotImplementedError

        @llm_function(llm_interface=llm)
        def sync(question: str) -> str:
            """You are a helpful assistant who answers briefly."""
            raise NotImplementedError

        self.plain, self.typed, self.tool, self.sync = plain, typed, ticket, sync
        self.stream = plain.stream
        self._chat, self._turns, self._question = chat, TURNS[1:-1], TURNS[-1]["content"]

    async def mapped(self, questions: list[str], width: int) -> list[str]:
        report = await self.plain.map(questions, concurrency=width)
        return [row.value for row in report.rows]

    async def history(self, _: str) -> str:
        text = ""
        async for piece, _history in self._chat(self._turns, self._question):
            text += piece
        return text


if __name__ == "__main__":
    serve(Client)
