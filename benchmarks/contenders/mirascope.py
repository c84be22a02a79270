"""mirascope with decorated functions, and strict JSON schemas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from mirascope import llm

from benchmarks.contenders import _worker
from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, serve


@llm.tool
async def lookup(token: str) -> str:
    """Look up a ticket.

    Args:
        token: the name of the ticket.
    """
    return _worker.lookup(token)


# The ending asks for chat completions; without it, it would be the responses API.
NAME = f"openai/{MODEL}:completions"


def assistant(text: str) -> Any:
    return llm.messages.assistant(text, model_id=NAME, provider_id="openai")


class Client:
    def __init__(self, url: str) -> None:
        # One registry for the process: each client puts its own provider in, before it is used.
        self._provider = llm.providers.OpenAIProvider(api_key="sk-bench", base_url=url)
        llm.register_provider(self._provider, scope="openai/")
        system = llm.messages.system(SYSTEM)
        kinds = {"system": llm.messages.system, "user": llm.messages.user, "assistant": assistant}
        turns = [kinds[turn["role"]](turn["content"]) for turn in TURNS]

        @llm.call(NAME)
        async def plain(question: str) -> Any:
            return [system, llm.messages.user(question)]

        @llm.call(NAME, format=llm.format(Order, mode="strict"))
        async def typed(question: str) -> Any:
            return [system, llm.messages.user(question)]

        @llm.call(NAME, tools=[lookup])
        async def tool(question: str) -> Any:
            return [llm.messages.user(question)]

        @llm.call(NAME)
        async def history() -> Any:
            return turns

        @llm.call(NAME)
        def sync(question: str) -> Any:
            return [system, llm.messages.user(question)]

        self._plain, self._typed, self._tool, self._history, self._sync = plain, typed, tool, history, sync

    def _use(self) -> None:
        llm.register_provider(self._provider, scope="openai/")

    async def plain(self, text: str) -> str:
        self._use()
        return (await self._plain(text)).text()

    async def typed(self, text: str) -> Order:
        self._use()
        return (await self._typed(text)).parse()

    async def tool(self, text: str) -> str:
        self._use()
        response = await self._tool(text)
        while response.tool_calls:
            response = await response.resume(await response.execute_tools())
        return response.text()

    async def history(self, _: str) -> str:
        self._use()
        return (await self._history()).text()

    async def stream(self, text: str) -> AsyncIterator[str]:
        self._use()
        response = await self._plain.stream(text)
        async for piece in response.text_stream():
            # It ends a text with a line break of its own.
            if piece != "\n":
                yield piece

    def sync(self, text: str) -> str:
        self._use()
        return self._sync(text).text()


if __name__ == "__main__":
    serve(Client)
