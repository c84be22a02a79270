"""langchain-openai: the chat model itself; the round with a tool is a loop by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI

from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, lookup, serve

SYSTEM_TURN = SystemMessage(SYSTEM)
KINDS: dict[str, Any] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
HISTORY = [KINDS[turn["role"]](turn["content"]) for turn in TURNS]


class Client:
    def __init__(self, url: str) -> None:
        self._llm = ChatOpenAI(model=MODEL, base_url=url, api_key="sk-bench")
        self._typed = self._llm.with_structured_output(Order, method="json_schema")
        self._tool = self._llm.bind_tools([lookup])

    async def plain(self, text: str) -> str:
        return str((await self._llm.ainvoke([SYSTEM_TURN, HumanMessage(text)])).content)

    async def typed(self, text: str) -> Any:
        return await self._typed.ainvoke([SYSTEM_TURN, HumanMessage(text)])

    async def tool(self, text: str) -> str:
        messages: list[Any] = [HumanMessage(text)]
        while True:
            reply: Any = await self._tool.ainvoke(messages)
            if not reply.tool_calls:
                return str(reply.content)
            messages.append(reply)
            messages += [ToolMessage(lookup(**call["args"]), tool_call_id=call["id"]) for call in reply.tool_calls]

    async def history(self, _: str) -> str:
        return str((await self._llm.ainvoke(HISTORY)).content)

    async def stream(self, text: str) -> AsyncIterator[str]:
        async for chunk in self._llm.astream([HumanMessage(text)]):
            if chunk.content:
                yield str(chunk.content)

    def sync(self, text: str) -> str:
        return str(self._llm.invoke([SYSTEM_TURN, HumanMessage(text)]).content)


if __name__ == "__main__":
    serve(Client)
