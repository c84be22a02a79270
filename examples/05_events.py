# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Watch a run as it happens: every view of a function reads the same stream of events.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import asyncio

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.base.events import (
    ReActEvent,
    ReplyDelta,
    ReplyReceived,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
)
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls


def search(query: str) -> list[str]:
    """Search the library's catalogue."""
    return [f"'{query}' by A. Author, shelf 12"]


# A real model: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(
    tool_calls(("search", {"query": "tides"}), ("search", {"query": "moon"})),
    "Both books stand on shelf 12.",
)


@llm_function(llm_interface=llm, toolkit=[search])
async def librarian(question: str) -> str:
    """Help a reader to find a book."""
    raise NotImplementedError


def line(event: ReActEvent) -> str | None:
    """Return what a reader of the log wants to see of an event; None for nothing."""
    match event:
        case RunStarted(messages=messages):
            return f"run      {len(messages)} messages to begin with"
        case TurnStarted(turn=turn):
            return f"turn {turn}   asking the model"
        case ReplyDelta(text=text) if text:
            return f"         … {text!r}"
        case ReplyReceived(reply=reply, usage=usage):
            return f"         reply: {reply.finish_reason}, {usage.output_tokens} tokens"
        case ToolCallStarted(call=call):
            return f"         act: {call.function.name}({call.function.arguments})"
        case ToolCallFinished(content=content, failed=failed):
            return f"         {'failed' if failed else 'observe'}: {content}"
        case RunFinished(turns=turns, usage=usage):
            return f"done     {turns} turns, {usage.total_tokens} tokens"
        case _:
            return None


async def main() -> None:
    async for event in librarian.events("Where do I find something about tides and the moon?"):
        if shown := line(event):
            print(shown)


asyncio.run(main())
