# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Typed Python functions as tools: the model asks, your code answers, the types are checked in between.

The schema that the model reads comes from the signature and the docstring. Arguments are validated before
a tool runs: `fare` below receives a `Route`, not a dictionary.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

from typing import Literal

from pydantic import BaseModel

from SimpleLLMFunc import ModelRetry, llm_function, tool
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

CITIES = {"Bern": 0, "Basel": 95, "Geneva": 155}


class Route(BaseModel):
    start: str
    end: str
    seat: Literal["first", "second"] = "second"


def distance(start: str, end: str) -> int:
    """Look up the distance between two cities in kilometres.

    Args:
        start: Where the train leaves.
        end: Where it arrives.
    """
    for city in (start, end):
        if city not in CITIES:
            raise ModelRetry(f"There is no city {city!r}. Known cities: {', '.join(CITIES)}.")
    return abs(CITIES[start] - CITIES[end])


@tool(description="Price of a ticket in francs.", timeout=5)
async def fare(route: Route) -> float:
    kilometres = distance(route.start, route.end)
    return round(kilometres * (0.5 if route.seat == "first" else 0.3), 2)


# What a model does here, written down: it misspells a city, reads why that is wrong, asks again, and answers.
# A real model: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(
    tool_calls(("distance", {"start": "Bern", "end": "Genf"})),
    tool_calls(
        ("distance", {"start": "Bern", "end": "Geneva"}),
        ("fare", {"route": {"start": "Bern", "end": "Geneva", "seat": "first"}}),
    ),
    "From Bern to Geneva it is 155 km; first class costs 77.50 francs.",
)


@llm_function(llm_interface=llm, toolkit=[distance, fare], max_tool_calls=3)
def plan(question: str) -> str:
    """Answer questions about train journeys. Look facts up, never guess them."""
    raise NotImplementedError


result = plan.call("How far is Geneva from Bern, and what does first class cost?")
for call in result.tool_calls:
    print(f"the model called {call.function.name}({call.function.arguments})")
for message in result.messages:
    if message["role"] == "tool":
        print(f"it read: {message['content']}")
print(result.value)
