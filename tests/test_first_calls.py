"""The first call of each kind in a fresh process: what is imported, opened or read then is not done on the event loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BEGIN = """
import asyncio
from collections.abc import AsyncIterator
from pydantic import BaseModel
from SimpleLLMFunc import *
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.loop_guard import collecting
from tests.support.server import LoopbackServer

class Order(BaseModel):
    number: int
    note: str

async def text(question: str) -> str:
    "Answer."

async def order(question: str) -> Order:
    "Answer."

async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
    "Answer."

async def main(server):
"""
END = """
async def run():
    async with LoopbackServer() as server:
        await main(server)

with collecting() as found:
    asyncio.run(run())
for offence in found:
    print(offence)
"""

KINDS = {
    "text": """
        llm = OpenAICompatible("m", base_url=server.base_url)
        assert "rain" in await llm_function(llm_interface=llm)(text)("rain")
    """,
    "typed, with a price and a repair": """
        server.reply('{"number": 3, "note": "so he said "wait" and left",}')
        llm = OpenAICompatible("gpt-4o", base_url=server.base_url, api_key="sk-x")
        result = await llm_function(llm_interface=llm)(order).call("?")
        assert (result.value.number, bool(result.repairs)) == (3, True)
    """,
    "chat": """
        llm = OpenAICompatible("m", base_url=server.base_url)
        pairs = [pair async for pair in llm_chat(llm_interface=llm, stream=True)(chat)([], "rain")]
        assert pairs[-1][1][-1]["role"] == "assistant"
    """,
    "chat in openai's objects": """
        llm = OpenAICompatible("m", base_url=server.base_url)
        function = llm_chat(llm_interface=llm, stream=True, return_mode="raw")(chat)
        assert [type(item).__module__.partition(".")[0] async for item, _ in function([], "rain")][0] == "openai"
    """,
    "a tool with a schema": """
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        weather = Tool(func=lambda city: f"rain in {city}", name="weather", description="The weather.", parameters=schema)
        server.reply_tool_calls([("weather", {"city": "Paris"})])
        llm = OpenAICompatible("m", base_url=server.base_url)
        assert "Paris" in await llm_function(llm_interface=llm, toolkit=[weather])(text)("?")
    """,
    "an image from a file": """
        import tempfile, pathlib
        picture = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(19_000_000)
        async def seen(picture: ImgPath) -> str:
            "Say what it shows."
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.png"
            await asyncio.to_thread(path.write_bytes, picture)
            llm = OpenAICompatible("m", base_url=server.base_url)
            server.reply("nothing")
            assert await llm_function(llm_interface=llm)(seen)(await asyncio.to_thread(ImgPath, path)) == "nothing"
    """,
    "the assistant": """
        assistant = AIAssistant(llm=OpenAICompatible("m", base_url=server.base_url))
        assert (await assistant.process_query("rain?"))["response"]
    """,
}


@pytest.mark.heavy
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_call_leaves_the_event_loop_free(kind):
    code = BEGIN + KINDS[kind].replace("\n    ", "\n") + END
    # Under a name among the tests, so that the guard knows whose the code is.
    start = f"import sys; exec(compile(sys.stdin.read(), {str(ROOT / 'tests' / 'first_call.py')!r}, 'exec'))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", start], input=code, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
