"""A client of the user's on the Responses wire: whole and streamed, its headers, its errors."""

from __future__ import annotations

import openai
import pytest

from SimpleLLMFunc import OpenAICompatible, llm_function
from SimpleLLMFunc.errors import BadRequest
from tests.support.server import LoopbackServer
from tests.support.services import ResponsesService


@pytest.mark.parametrize("kind", ["openai", "azure"])
async def test_it_sends_what_the_wire_says(kind):
    service = ResponsesService(*[{"texts": ["hello"], "thinking": "hm"}] * 2)
    async with LoopbackServer(service) as server:
        own = {"api_key": "sk-of-the-client", "default_headers": {"x-mine": "1"}}
        client = (
            openai.AsyncOpenAI(base_url=server.base_url, **own)
            if kind == "openai"
            else openai.AsyncAzureOpenAI(base_url=server.base_url, api_version="2025-04-01-preview", **own)
        )
        llm = OpenAICompatible("gpt-5.6", wire="responses", client=client)

        @llm_function(llm)
        async def greet(name: str) -> str:
            """Greet."""
            raise NotImplementedError

        assert await greet("Bo") == "hello"
        assert "".join([piece async for piece in greet.stream("Bo")]) == "hello"
        first, second = server.requests
        assert first.path.partition("?")[0] == second.path.partition("?")[0] == "/v1/responses"
        assert first.body == greet.preview("Bo").body
        assert second.body["stream"] is True
        assert first.headers["x-mine"] == "1"
        assert "sk-of-the-client" in {first.key, first.headers.get("api-key")}
        with pytest.raises(BadRequest, match="store=false"):
            await llm.chat([{"role": "user", "content": "hi"}], extra_body={"store": True})
        await client.close()


async def test_the_address_of_the_client_chooses_the_wire():
    for address, path in (("https://api.openai.com/v1", "/responses"), ("https://h/v1", "/chat/completions")):
        async with openai.AsyncOpenAI(base_url=address, api_key="k") as client:
            assert OpenAICompatible("m", client=client).url().endswith(path)
