"""magentic with decorated functions; it streams every answer, and asks for typed ones as tool calls."""

from collections.abc import AsyncIterator
from typing import Any

from magentic import (
    AssistantMessage,
    AsyncStreamedStr,
    OpenaiChatModel,
    SystemMessage,
    UserMessage,
    chatprompt,
    prompt_chain,
)

from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, lookup, serve

SYSTEM_TURN, USER_TURN = SystemMessage(SYSTEM), UserMessage("{question}")
KINDS: dict[str, Any] = {"system": SystemMessage, "user": UserMessage, "assistant": AssistantMessage}


class Client:
    def __init__(self, url: str) -> None:
        model = OpenaiChatModel(MODEL, base_url=url, api_key="sk-bench")

        @chatprompt(SYSTEM_TURN, USER_TURN, model=model)
        async def plain(question: str) -> str: ...  # type: ignore[empty-body]

        @chatprompt(SYSTEM_TURN, USER_TURN, model=model)
        async def typed(question: str) -> Order: ...  # type: ignore[empty-body]

        @prompt_chain("{question}", functions=[lookup], model=model)
        async def tool(question: str) -> str: ...  # type: ignore[empty-body]

        @chatprompt(*(KINDS[turn["role"]](turn["content"]) for turn in TURNS), model=model)
        async def history() -> str: ...  # type: ignore[empty-body]

        @chatprompt(SYSTEM_TURN, USER_TURN, model=model)
        async def stream(question: str) -> AsyncStreamedStr: ...  # type: ignore[empty-body]

        @chatprompt(SYSTEM_TURN, USER_TURN, model=model)
        def sync(question: str) -> str: ...  # type: ignore[empty-body]

        self.plain, self.typed, self.tool, self.sync = plain, typed, tool, sync
        self._history, self._stream = history, stream

    async def history(self, _: str) -> str:
        return await self._history()

    async def stream(self, text: str) -> AsyncIterator[str]:
        async for piece in await self._stream(text):
            yield piece


if __name__ == "__main__":
    serve(Client)
