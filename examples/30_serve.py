# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[view]", "aiohttp"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""A decorated function over HTTP: keys, a rate, streaming, and an OpenAPI document from its signature.

On the command line: `simplellmfunc serve shop --callers callers.json`. This program starts the same server on a free port of this
machine and calls it. Needs `pip install ".[view]" aiohttp`.

Model: answers written down (`ScriptedLLM`). For a real one change the line `@llm_function(llm_interface=…`.
"""

import asyncio
import contextlib

import aiohttp
from pydantic import BaseModel

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.serve.http import serve_functions
from SimpleLLMFunc.serve.http_callers import CallerEntry, Callers, hash_of, new_key
from SimpleLLMFunc.testing import ScriptedLLM


class Rating(BaseModel):
    stars: int
    reason: str


# What the model says is written down here.
# A real one: from SimpleLLMFunc import OpenAICompatible; llm_interface=OpenAICompatible("gpt-5-mini")
@llm_function(llm_interface=ScriptedLLM('{"stars": 4, "reason": "good tea, long wait"}', repeat=True, chunk_size=12))
async def rate(review: str) -> Rating:
    """Rate a review of a restaurant.

    Args:
        review: What the guest wrote.
    """
    raise NotImplementedError


async def use(address: str, key: str) -> None:
    arguments = {"review": "The tea was good. We waited for an hour."}
    async with aiohttp.ClientSession(address) as session:
        async with session.post("/functions/rate", json=arguments) as response:
            print("without a key:", response.status)
        session.headers["Authorization"] = f"Bearer {key}"
        async with session.get("/openapi.json") as response:
            print("described at:", *(await response.json())["paths"])
        async with session.post("/functions/rate", json=arguments) as response:
            print("whole:", (await response.json())["value"])
        async with session.post("/functions/rate/stream", json=arguments) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    print("streamed:", line.decode().strip()[:80])
        async with session.post("/functions/rate", json={"review": 3}) as response:
            print("wrong:", response.status, (await response.json(content_type=None))["detail"])


async def main() -> None:
    key = new_key()
    callers = Callers([CallerEntry(name="alice", sha256=hash_of(key), requests_per_minute=60)])
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve_functions({"rate": rate}, port=0, callers=callers, announce=address.set_result))
    try:
        await use(await address, key)
    finally:
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server


if __name__ == "__main__":
    asyncio.run(main())
