"""Our loopback services are no easier than the real ones: the official SDKs speak to them, and they refuse what those do."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
from google import genai

from tests.support.referees import is_of_today
from tests.support.server import LoopbackServer
from tests.support.services import GeminiService, MessagesService, ResponsesService

NEW = ("messages", "responses", "gemini")


async def test_anthropics_sdk_speaks_to_our_service():
    service = MessagesService({"texts": ["hello"], "thinking": "hm"}, {"texts": ["hello again"]})
    async with LoopbackServer(service) as server:
        client = anthropic.AsyncAnthropic(base_url=server.base_url.removesuffix("/v1"), api_key="k", max_retries=0)
        question: Any = [{"role": "user", "content": "hi"}]
        reply = await client.messages.create(model="m", max_tokens=10, messages=question)
        assert [block.type for block in reply.content] == ["thinking", "text"]
        history = [*question, {"role": "assistant", "content": reply.content}, {"role": "user", "content": "and?"}]
        async with client.messages.stream(model="m", max_tokens=10, messages=history) as stream:
            assert await stream.get_final_text() == "hello again"
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            await client.messages.create(model="m", max_tokens=10, messages=history, system="new")
        await client.close()


async def test_openais_sdk_speaks_to_our_service():
    service = ResponsesService({"calls": [("f", {"a": 1})], "thinking": "hm"}, {"texts": ["hello"]})
    async with LoopbackServer(service) as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0)
        history: list[Any] = [{"role": "user", "content": "hi"}]
        reply = await client.responses.create(model="m", input=history, store=False)
        assert [item.type for item in reply.output] == ["reasoning", "function_call"]
        result = {"type": "function_call_output", "call_id": "call_0_0", "output": "r"}
        items = [item.to_dict() for item in reply.output]
        stream = await client.responses.create(model="m", input=[*history, *items, result], store=False, stream=True)
        events = [event async for event in stream]
        assert events[-1].response.output_text == "hello"
        for bad, said in (([items[1], result], "required 'reasoning' item"), (items, "No tool output found")):
            with pytest.raises(openai.BadRequestError, match=said):
                await client.responses.create(model="m", input=[*history, *bad], store=False)
        await client.close()


@pytest.mark.skipif(not is_of_today("google-genai", 3), reason="it knows less than the service does")
@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
async def test_googles_sdk_speaks_to_our_service():
    service = GeminiService({"calls": [("f", {"a": 1})]}, {"texts": ["hello"]})
    async with LoopbackServer(service) as server:
        options = genai.types.HttpOptions(base_url=server.base_url.removesuffix("/v1"))
        client = genai.Client(api_key="k", http_options=options)
        history: list[Any] = [{"role": "user", "parts": [{"text": "hi"}]}]
        reply = await client.aio.models.generate_content(model="m", contents=history)
        call = reply.candidates[0].content
        answer = {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"output": "r"}}}]}
        stream = await client.aio.models.generate_content_stream(model="m", contents=[*history, call, answer])
        assert "".join([chunk.text or "" async for chunk in stream]) == "hello"
        unsigned = {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"a": 1}}}]}
        with pytest.raises(genai.errors.ClientError, match="missing a thought_signature"):
            await client.aio.models.generate_content(model="m", contents=[*history, unsigned, answer])
        with pytest.raises(genai.errors.ClientError, match="number of function response parts"):
            await client.aio.models.generate_content(model="m", contents=[*history, call, *history])
        await client.aio.aclose()
