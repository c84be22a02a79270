# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[mcp]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""MCP in both directions: functions offered to other programs, and the tools of another program in a function.

This file is two programs. Run it, and it starts itself once more as a server (`simplellmfunc mcp serve`), which offers
`rate` and `keywords` as MCP tools. Then it connects to that server and lets a model use them. Any other MCP server
would do: put its command, or its `url=`, in the place of ours. Needs `pip install ".[mcp]"`.

Model: answers written down (`ScriptedLLM`). For a real one change the lines `@llm_function(llm_interface=…`.
"""

import asyncio
import sys

from pydantic import BaseModel

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools.mcp import tools_from_mcp


class Rating(BaseModel):
    stars: int
    reason: str


# What models say here is written down.
# A real model: from SimpleLLMFunc import OpenAICompatible; llm_interface=OpenAICompatible("gpt-5-mini")


@llm_function(llm_interface=ScriptedLLM('{"stars": 4, "reason": "good tea, long wait"}', repeat=True))
async def rate(review: str) -> Rating:
    """Rate a review of a restaurant.

    Args:
        review: What the guest wrote.
    """
    raise NotImplementedError


@llm_function(llm_interface=ScriptedLLM('["tea", "wait"]', repeat=True))
def keywords(text: str) -> list[str]:
    """Find the keywords of a text."""
    raise NotImplementedError


async def main() -> None:
    review = "The tea was good, but we waited for an hour."
    llm = ScriptedLLM(
        tool_calls(("rate", {"review": review}), ("keywords", {"text": review})),
        "Four stars: good tea, long wait.",
    )
    command = [sys.executable, "-m", "SimpleLLMFunc", "mcp", "serve", __file__]
    async with tools_from_mcp(command=command) as tools:
        for tool in tools:
            print(f"the server offers {tool.name}: {tool.description}")

        @llm_function(llm_interface=llm, toolkit=[*tools])
        async def sum_up(review: str) -> str:
            """Sum up the review in one line. Use the tools."""
            raise NotImplementedError

        result = await sum_up.call(review)
    for message in result.messages:
        if message["role"] == "tool":
            # What comes from outside stands between two marks, so that the model takes it for data.
            print(f"the model read: {str(message['content']).splitlines()[2]}")
    print(result.value)


if __name__ == "__main__":
    asyncio.run(main())
