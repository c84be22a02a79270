# /// script
# dependencies = ["vcrpy"]
# ///
"""Through aiohttp, without `client=`: two calls recorded, one of them streamed, and played again."""

import asyncio
from pathlib import Path

import vcr
from scene import answers, asked, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


@llm_function(OpenAICompatible("m"))
async def tell(text: str) -> str:
    """Tell."""


async def main() -> list[str]:
    with recorder.use_cassette("calls.yaml"):
        return [await tell("a"), "".join([piece async for piece in tell.stream("b")])]


recorder = vcr.VCR(match_on=["method", "uri", "body"], filter_headers=["authorization"])
answers("one", "two")
check("recorded", asyncio.run(main()), ["one", "two"])
check("requests", len(asked()), 2)
check("played", asyncio.run(main()), ["one", "two"])
check("requests", len(asked()), 2)
check("the key", "sk-of-nobody" in Path("calls.yaml").read_text(), False)
seen("2 requests recorded, 2 played; none on the network the second time, no key in the cassette")
