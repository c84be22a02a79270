# /// script
# dependencies = ["aioresponses", "aiohttp<3.14"]
# ///
"""Without `client=`: a mocked reply, a mocked stream, a mocked 429 and the try after it; nothing reaches the network."""

import asyncio
import json
import os

from aioresponses import aioresponses
from scene import asked, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


@llm_function(OpenAICompatible("m", max_retries=1, retry_delay=0.01))
async def tell(text: str) -> str:
    """Tell."""


URL = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "mocked"}, "finish_reason": "stop"}]}
CHUNK = {"choices": [{"index": 0, "delta": {"content": "streamed"}, "finish_reason": "stop"}]}


async def main() -> None:
    with aioresponses() as mocked:
        mocked.post(URL, payload=REPLY)
        check("whole", await tell("a"), "mocked")
        events = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n"
        mocked.post(URL, body=events, content_type="text/event-stream")
        check("streamed", [piece async for piece in tell.stream("a")], ["streamed"])
        mocked.post(URL, status=429, headers={"retry-after": "0"})
        mocked.post(URL, payload=REPLY)
        check("after a 429", await tell("a"), "mocked")
        (calls,) = mocked.requests.values()
        check("bodies", [json.loads(call.kwargs["data"])["model"] for call in calls], ["m"] * 4)


asyncio.run(main())
check("requests on the network", len(asked()), 0)
seen("4 requests mocked, with their bodies; none on the network")
