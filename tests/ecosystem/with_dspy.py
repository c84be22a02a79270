# /// script
# dependencies = ["dspy"]
# ///
"""Its `Tool` in `toolkit=`; `dspy.Tool(f.as_tool())`, sync and async."""

import asyncio

import dspy
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"rain in {city} for {days}"


@llm_function(OpenAICompatible("m"), toolkit=[dspy.Tool(weather)])
def ask(question: str) -> str:
    """Answer."""


@llm_function(OpenAICompatible("m"))
async def shout(text: str) -> str:
    """Shout."""


answers({"calls": [["weather", {"city": "Oslo"}]]}, "done")
said = [message["content"] for message in ask.call("?").messages if message["role"] == "tool"]
check("results", said, ["rain in Oslo for 1"])
ours, other = dspy.Tool(ask.as_tool()), dspy.Tool(shout.as_tool())
check("as theirs", (ours.name, ours.desc, ours.args), ("ask", "Answer.", {"question": {"type": "string"}}))
answers("fine", "loud")
check("called by theirs", [ours(question="a"), asyncio.run(other.acall(text="b"))], ["fine", "loud"])
seen("the tool ran; ours ran by `()` and `acall`")
