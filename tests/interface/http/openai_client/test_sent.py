"""What wraps the user's client sees each call once, as users make it; and the spans of ours do not tell of it again."""

import functools

import openai
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from SimpleLLMFunc import ConfigError, OpenAICompatible, RateLimited, llm_function
from SimpleLLMFunc.observability.otel.span_sink import SpanSink
from tests.support.server import LoopbackServer
from tests.support.services import ChatService, ResponsesService


def look(place: int) -> str:
    """Look.

    Args:
        place: Where.
    """
    return "nothing"


class Wrapped:
    """Puts itself around a method, as tools that trace do, and keeps what it returned."""

    def __init__(self, owner, name):
        self.calls, self.seen = [], []
        inner = getattr(owner, name)

        @functools.wraps(inner)
        async def around(*args, **kwargs):
            self.calls.append(kwargs)
            answer = await inner(*args, **kwargs)
            if not hasattr(answer, "__aiter__"):
                self.seen.append(answer)
                return answer
            return self.followed(answer)

        setattr(owner, name, around)

    async def followed(self, answer):
        async for chunk in answer:
            self.seen.append(chunk)
            yield chunk


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("where", ["create", "request"])
async def test_what_wraps_the_client_sees_each_call_once_with_its_tokens(wire, where):
    service = {"chat": ChatService, "responses": ResponsesService}[wire]
    replies = [{"calls": [("look", {"place": 1})]}, {"texts": ["fine"]}]
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with LoopbackServer(service(*replies, *replies)) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
            resource = client.chat.completions if wire == "chat" else client.responses
            wrapped = Wrapped(*((resource, "create") if where == "create" else (client, "request")))

            @llm_function(
                OpenAICompatible("m", client=client, wire=wire),
                toolkit=[look],
                watching=SpanSink(tracer_provider=provider),
                temperature=0.5,
                extra_body={"of_the_service": 1},
            )
            async def tell(text: str) -> str:
                """Tell."""
                raise NotImplementedError

            result = await tell.call("a")
            assert result.value == "fine"
            assert len(wrapped.calls) == len(wrapped.seen) == len(server.requests) == 2
            assert [each.usage.total_tokens for each in wrapped.seen] == [7, 7]
            assert [request.body["of_the_service"] for request in server.requests] == [1, 1]
            if where == "create":
                assert [(each["model"], each["temperature"]) for each in wrapped.calls] == [("m", 0.5)] * 2
            assert "".join([piece async for piece in tell.stream("a")]) == "fine"
            assert len(wrapped.calls) == len(server.requests) == 4
            chunks = [each for each in wrapped.seen[2:] if getattr(each, "type", "completed").endswith("completed")]
            ended = [getattr(each, "response", each).usage for each in chunks]
            assert [usage.total_tokens for usage in ended if usage] == [7, 7]
            names = [span.name for span in exporter.get_finished_spans()]
            assert names == ["execute_tool look", "invoke_agent tell"] * 2


async def test_ours_are_the_tries_and_the_wrapper_sees_each():
    async with LoopbackServer() as server, openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
        wrapped = Wrapped(client.chat.completions, "create")
        llm = OpenAICompatible("m", client=client, max_retries=1, retry_delay=0.001)
        for _ in range(2):
            server.reply_status(429, headers={"retry-after": "0"})
        with pytest.raises(RateLimited) as caught:
            await llm.chat([{"role": "user", "content": "hi"}])
        assert (caught.value.tries, len(server.requests), len(wrapped.calls), wrapped.seen) == (2, 2, 2, [])
        server.reply_status(500)  # the client's own calls have its own tries
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "b"}])
        assert len(server.requests) == 4


async def test_a_client_that_asks_no_one_is_named():
    async with openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k") as client:

        async def create(**_):
            return openai.types.chat.ChatCompletion.construct()

        client.chat.completions.create = create
        with pytest.raises(ConfigError, match="without sending a request"):
            await OpenAICompatible("m", client=client).chat([{"role": "user", "content": "hi"}])


async def test_where_it_is_not_wrapped_nothing_is_parsed_twice(monkeypatch):
    monkeypatch.setattr(openai.AsyncStream, "__aiter__", lambda _: pytest.fail("parsed"))
    async with LoopbackServer() as server, openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
        llm = OpenAICompatible("m", client=client)
        assert "".join([chunk.text async for chunk in llm.chat_stream([{"role": "user", "content": "hi"}])]) == "hi"
