# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""A dialogue with history: the text streams, and the history is yours to keep, store and hand to the next call.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import asyncio
from collections.abc import AsyncIterator

from SimpleLLMFunc import ChatPair, Message, llm_chat
from SimpleLLMFunc.testing import ScriptedLLM

# A real model: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(
    "The old town of Bern stands on a bend of the river Aare, and it is small enough to walk.",
    "In two hours: the Clock Tower, the Minster, and the view from the Rose Garden.",
)


@llm_chat(llm_interface=llm, stream=True)
async def guide(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
    """You are a guide to Swiss cities. Answer in one sentence."""
    raise NotImplementedError


async def main() -> None:
    history: list[Message] = []
    for question in ("What is Bern like?", "And if I have two hours?"):
        print(f"> {question}")
        # The last history of one call goes into the next one.
        async for text, history in guide(history, question):  # noqa: B007, B020 - read after the loop, and meant
            print(text, end="", flush=True)
        print()
    print(f"The history now holds {len(history)} messages:", [message["role"] for message in history])


asyncio.run(main())
