# /// script
# dependencies = ["respx", "openai<3"]
# ///
"""With `client=` on openai 2: a mocked reply and a mocked stream."""

import asyncio
import json

import httpx
import openai
import respx
from scene import asked, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function

REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "mocked"}, "finish_reason": "stop"}]}
CHUNK = {"choices": [{"index": 0, "delta": {"content": "streamed"}, "finish_reason": "stop"}]}


async def main() -> None:
    async with openai.AsyncOpenAI() as client:

        @llm_function(OpenAICompatible("m", client=client))
        async def tell(text: str) -> str:
            """Tell."""

        with respx.mock(base_url=str(client.base_url)) as mocked:
            route = mocked.post("chat/completions").mock(return_value=httpx.Response(200, json=REPLY))
            check("whole", await tell("a"), "mocked")
            events = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n"
            headers = {"content-type": "text/event-stream"}
            route.mock(return_value=httpx.Response(200, headers=headers, text=events))
            check("streamed", [piece async for piece in tell.stream("a")], ["streamed"])
            check("bodies", [json.loads(call.request.content)["model"] for call in route.calls], ["m"] * 2)


asyncio.run(main())
check("requests on the network", len(asked()), 0)
seen("2 requests mocked, with their bodies; none on the network")
