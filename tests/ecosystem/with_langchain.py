# /// script
# dependencies = ["langchain-core"]
# ///
"""Its tools, sync and async, in `toolkit=`; `f.as_tool()` through its `tool()`, and as the tool of a model."""

import asyncio

from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


@tool
def weather(city: str, days: int = 1) -> str:
    """Tell the weather.

    Args:
        city: the name.
        days: how many.
    """
    return f"rain in {city} for {days}"


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@llm_function(OpenAICompatible("m"), toolkit=[weather, add])
async def ask(question: str) -> str:
    """Answer."""


answers({"calls": [["weather", {"city": "Oslo"}], ["add", {"a": 1, "b": 2}], ["add", {"a": "x"}]]}, "done")
result = asyncio.run(ask.call("?"))
said = [message["content"] for message in result.messages if message["role"] == "tool"]
check("results", said[:2], ["rain in Oslo for 1", "3"])
check("what does not fit", said[2].startswith("The arguments do not fit"), True)
ours = tool(ask.as_tool())
check("as theirs", (ours.name, list(ours.args)), ("ask", ["question"]))
answers("fine")
check("called by theirs", asyncio.run(ours.ainvoke({"question": "well?"})), "fine")
check("bound", convert_to_openai_tool(ask.as_tool("query"))["function"]["name"], "query")
seen("both tools ran, bad arguments were sent back; ours ran by `ainvoke`")
