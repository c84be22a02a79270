# /// script
# dependencies = ["pytest-httpx", "openai<3"]
# ///
"""With `client=` on openai 2: a test of pytest that uses the fixture `httpx_mock`, for a reply and a stream."""

import subprocess
import sys
from pathlib import Path

from scene import asked, check, seen

Path("test_it.py").write_text('''
import asyncio
import json

import openai
from SimpleLLMFunc import OpenAICompatible, llm_function

REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "mocked"}, "finish_reason": "stop"}]}
CHUNK = {"choices": [{"index": 0, "delta": {"content": "streamed"}, "finish_reason": "stop"}]}


def test_a_mocked_reply(httpx_mock):
    async def main():
        async with openai.AsyncOpenAI() as client:

            @llm_function(OpenAICompatible("m", client=client))
            async def tell(text: str) -> str:
                """Tell."""

            httpx_mock.add_response(json=REPLY)
            assert await tell("a") == "mocked"
            events = f"data: {json.dumps(CHUNK)}\\n\\ndata: [DONE]\\n\\n"
            httpx_mock.add_response(text=events, headers={"content-type": "text/event-stream"})
            assert [piece async for piece in tell.stream("a")] == ["streamed"]
            assert [json.loads(request.content)["model"] for request in httpx_mock.get_requests()] == ["m", "m"]

    asyncio.run(main())
''')
check(
    "exit code",
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], check=False).returncode,
    0,
)
check("requests on the network", len(asked()), 0)
seen("2 requests mocked, with their bodies; none on the network")
