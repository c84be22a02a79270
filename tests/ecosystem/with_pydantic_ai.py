# /// script
# dependencies = ["pydantic-ai-slim"]
# ///
"""Its `Tool` with a model for a parameter, in `toolkit=`; one that wants its `RunContext` is refused."""

from pydantic import BaseModel
from pydantic_ai import RunContext, Tool
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, ToolDefinitionError, llm_function


class Place(BaseModel):
    city: str


def weather(place: Place, days: int = 1) -> str:
    """Tell the weather."""
    return f"rain in {place.city} for {days}"


def private(context: RunContext[int], a: int) -> int:
    """Add to what is known."""
    return context.deps + a


@llm_function(OpenAICompatible("m"), toolkit=[Tool(weather)])
def ask(question: str) -> str:
    """Answer."""


answers({"calls": [["weather", {"place": {"city": "Oslo"}, "days": 2}]]}, "done")
said = [message["content"] for message in ask.call("?").messages if message["role"] == "tool"]
check("results", said, ["rain in Oslo for 2"])
try:
    ask.with_options(toolkit=[Tool(private)])
except ToolDefinitionError as error:
    check("refused", "RunContext" in str(error), True)
else:
    raise SystemExit("a tool with a RunContext was taken")
seen("the tool ran with its own model; the other is a ToolDefinitionError that names RunContext")
