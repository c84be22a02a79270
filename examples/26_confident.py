# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Ask five times and vote field by field; where the votes do not agree, a stronger model votes again.

The small model here reads a blurred receipt differently each time; the strong one always reads the same.

Model: answers written down (`ScriptedLLM`). For real ones change the lines `… = ScriptedLLM(…`.
"""

import asyncio
import json

from pydantic import BaseModel

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import Confident


class Receipt(BaseModel):
    shop: str
    total: float


def reading(shop: str, total: float) -> str:
    return json.dumps({"shop": shop, "total": total})


# Real ones: from SimpleLLMFunc import OpenAICompatible; clear = blurred = OpenAICompatible("gpt-5-nano");
# and strong = OpenAICompatible("gpt-5")
clear = ScriptedLLM(*[reading("Tea House", total) for total in (12.5, 12.5, 17.5, 12.5, 12.5)])
blurred = ScriptedLLM(*[reading("Tea House", total) for total in (12.5, 72.5, 17.5, 12.9, 12.6)])
strong = ScriptedLLM(reading("Tea House", 12.9), repeat=True)


@llm_function(escalate_to=strong)
async def read(receipt: str) -> Confident[Receipt]:
    """Read the receipt."""
    raise NotImplementedError


async def main() -> None:
    for llm in (clear, blurred):
        result = await read.with_options(llm_interface=llm).call("a photo, as text")
        found = result.value
        told = "escalated" if found.escalated else "agreed"
        print(f"{found.value!r} ({told} after {len(result.attempts)} answers)")
        for field, share in found.agreement.items():
            print(f"    {field}: {share:.0%}")
        assert not found.abstained


if __name__ == "__main__":
    asyncio.run(main())
