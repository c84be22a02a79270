# /// script
# dependencies = ["llama-index-core"]
# ///
"""Its `FunctionTool`, sync, async and failing, in `toolkit=`; `f.as_tool()` through `FunctionTool.from_defaults`."""

import asyncio

from llama_index.core.tools import FunctionTool
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


def weather(city: str) -> str:
    """Tell the weather."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"rain in {city}"


async def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


tools = [FunctionTool.from_defaults(fn=weather), FunctionTool.from_defaults(async_fn=add)]


@llm_function(OpenAICompatible("m"), toolkit=tools)
def ask(question: str) -> str:
    """Answer."""


answers({"calls": [["weather", {"city": "Oslo"}], ["add", {"a": 1}], ["weather", {"city": "Atlantis"}]]}, "done")
said = [message["content"] for message in ask.call("?").messages if message["role"] == "tool"]
check("results", said[:2], ["rain in Oslo", "3"])
check("the failure", said[2], "The tool weather failed: LookupError: no such city")
ours = FunctionTool.from_defaults(fn=ask.as_tool())
check("as theirs", (ours.metadata.name, list(ours.metadata.get_parameters_dict()["properties"])), ("ask", ["question"]))
answers("fine", "fine")
check("called by theirs", [str(ours.call(question="a")), str(asyncio.run(ours.acall(question="b")))], ["fine", "fine"])
seen("both tools ran, a failing one was told; ours ran by `call` and `acall`")
