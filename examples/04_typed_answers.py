# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Any type can come back; an answer that does not fit is sent back with the reasons, and never passed on.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

from datetime import date
from enum import Enum

from pydantic import BaseModel, Field

from SimpleLLMFunc import ResponseParseError, llm_function
from SimpleLLMFunc.testing import ScriptedLLM


class Urgency(Enum):
    LOW = "low"
    HIGH = "high"


class Item(BaseModel):
    article: str
    count: int = Field(gt=0)


class Order(BaseModel):
    customer: str
    due: date
    urgency: Urgency
    items: list[Item]


GOOD = """{"customer": "Meyer", "due": "2026-11-30", "urgency": "high",
 "items": [{"article": "lamp", "count": 3}, {"article": "bulb", "count": 12}]}"""

# Three answers of a model: one with an impossible count and date, the right one, and none at all.
# A real model: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(
    GOOD.replace("2026-11-30", "November").replace("12", "0"),
    GOOD,
    "I am sorry, I cannot read this order.",
)


@llm_function(llm_interface=llm)
def read_order(letter: str) -> Order:
    """Read the order out of a letter."""
    raise NotImplementedError


result = read_order.call("Dear all, Meyer needs 3 lamps and 12 bulbs by the end of November, urgently!")
order = result.value
print(f"{order.customer}, due {order.due:%d.%m.%Y}, {order.urgency.name}:", *order.items)

for number, attempt in enumerate(result.attempts, 1):
    print(f"attempt {number}:", "accepted" if not attempt.violations else "sent back")
    for path, expected, got in attempt.violations:
        print(f"  {path}: expected {expected}, got {got}")

try:
    read_order.with_options(max_reasks=0)("???")
except ResponseParseError as error:
    print("No value, but an error:", error)
