"""A client that the user brought: what wraps it sees each call once, and each event loop has connections of its own."""

import asyncio
import functools
import gc
import threading

import openai
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from SimpleLLMFunc import ConfigError, OpenAICompatible, RateLimited
from SimpleLLMFunc.interface.http.openai_client import ClientPerLoop
from SimpleLLMFunc.observability.otel.span_sink import SpanSink
from tests.support.asking import HELLO
from tests.support.functions import async_function_of, function_of
from tests.support.server import LoopbackServer, serving_in_thread
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

            llm, watched = OpenAICompatible("m", client=client, wire=wire), SpanSink(tracer_provider=provider)
            assert llm.is_traced
            options = {"watching": watched, "temperature": 0.5, "extra_body": {"of_the_service": 1}}
            tell = async_function_of(llm, name="tell", toolkit=[look], **options)
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


async def test_ours_are_the_tries_and_the_wrapper_sees_each(server):
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
        wrapped = Wrapped(client.chat.completions, "create")
        llm = OpenAICompatible("m", client=client, max_retries=1, retry_delay=0.001)
        for _ in range(2):
            server.reply_status(429, headers={"retry-after": "0"})
        with pytest.raises(RateLimited) as caught:
            await llm.chat(HELLO)
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
            await OpenAICompatible("m", client=client).chat(HELLO)


async def test_where_it_is_not_wrapped_nothing_is_parsed_twice(server, monkeypatch):
    parsed = []
    monkeypatch.setattr(openai.AsyncStream, "__aiter__", parsed.append)
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
        llm = OpenAICompatible("m", client=client)
        assert "".join([chunk.text async for chunk in llm.chat_stream(HELLO)]) == "hello"
        own = OpenAICompatible("m", base_url="https://h/v1?v=1", api_key="k")
        assert (parsed, llm.is_traced, own.is_traced) == ([], False, False)
        async with llm.lent_client() as lent, own.lent_client() as made:
            assert (lent, made.default_query) == (client, {"v": "1"})
        assert (client.is_closed(), made.is_closed()) == (False, True)


# --- many event loops --------------------------------------------------------------------------------------

CANARY = "sk-CANARY-client-0123456789"


@pytest.fixture
def served():
    with serving_in_thread(until_closed=True) as server:
        yield server


def client_for(server, kind=openai.AsyncOpenAI, **options):
    if kind is openai.AsyncAzureOpenAI:
        return kind(api_key=CANARY, azure_endpoint=server.base_url.removesuffix("/v1"), api_version="1", **options)
    return kind(api_key=CANARY, base_url=server.base_url, **options)


def asking(llm):
    echo, plain = async_function_of(llm), function_of(llm)

    async def ask():
        replies = await asyncio.gather(*(echo(f"hi {number}") for number in range(3)))
        assert all(f"hi {number}" in reply for number, reply in enumerate(replies))
        assert "hi" in plain("hi")

    return ask


@pytest.mark.parametrize("kind", [openai.AsyncOpenAI, openai.AsyncAzureOpenAI])
def test_one_client_serves_loops_one_after_another_and_at_once(served, kind):
    serve_many_loops(served, kind)
    gc.collect()  # what serves the loop of synchronous calls goes with the model


def serve_many_loops(served, kind):
    client = client_for(served, kind, default_headers={"x-mine": "kept"})
    ask = asking(OpenAICompatible("m", client=client, max_retries=0))
    with asyncio.Runner() as first:
        first.run(ask())
        for _ in range(4):
            asyncio.run(ask())
        first.run(ask())
        failed = []

        def in_thread():
            try:
                asyncio.run(ask())
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=in_thread) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        # Whoever made it closes it, on the loop that it was used on.
        first.run(client.close())
    assert len(served.requests) == 4 * 10
    keys = {request.headers.get("authorization") or request.headers["api-key"] for request in served.requests}
    assert keys <= {CANARY, f"Bearer {CANARY}"}
    assert {request.headers["x-mine"] for request in served.requests} == {"kept"}


async def test_the_first_loop_has_the_client_itself_and_a_wrapper_that_sees_no_other_is_told(served, caplog):
    async with client_for(served) as client:
        clients = ClientPerLoop(client)
        assert clients.here() is client
        copy = await asyncio.to_thread(asyncio.run, here(clients))
        assert copy is not client
        assert copy.is_closed()
        assert not client.is_closed()
        assert clients.here() is client
        assert "WARNING" not in caplog.text
        Wrapped(client, "request")
        await asyncio.to_thread(asyncio.run, here(clients))
        assert "client= is wrapped, and used from a second event loop" in caplog.text


async def here(clients):
    copy = clients.here()
    assert clients.here() is copy
    assert not copy.is_closed()
    return copy


async def test_connections_of_the_users_own_are_not_copied(served):
    async with client_for(served, http_client=openai.DefaultAsyncHttpxClient(headers={"x-mine": "1"})) as client:
        clients = ClientPerLoop(client)
        assert clients.here() is client
        assert await asyncio.to_thread(asyncio.run, here(clients)) is client


def test_connections_of_another_loop_are_named(served):
    client = client_for(served, http_client=openai.DefaultAsyncHttpxClient())
    llm = OpenAICompatible("m", client=client, max_retries=0)
    with asyncio.Runner() as first:
        first.run(llm.chat(HELLO))
        with asyncio.Runner() as second, pytest.raises(ConfigError, match=r"client=.*http_client"):
            second.run(llm.chat(HELLO))
        first.run(client.close())


async def test_a_client_that_was_closed_stays_closed(served):
    client = client_for(served)
    await client.close()
    clients = ClientPerLoop(client)
    assert clients.here() is client
    assert await asyncio.to_thread(asyncio.run, here_even_closed(clients)) is client


async def here_even_closed(clients):
    return clients.here()


def test_the_client_that_we_build_is_one_per_loop_and_again_after_it_was_closed(served):
    llm = OpenAICompatible("m", api_key=CANARY, base_url=served.base_url, max_retries=4)

    async def ask():
        async with llm.client as client:
            assert llm.client is client
            assert (client.api_key, client.max_retries, str(client.base_url)) == (CANARY, 4, f"{served.base_url}/")
            await client.chat.completions.create(model="m", messages=HELLO)
        assert llm.client is not client
        async with llm.client as another:
            await another.chat.completions.create(model="m", messages=HELLO)
        return client

    assert asyncio.run(ask()) is not asyncio.run(ask())


def test_the_client_that_we_build_is_closed_with_its_loop(served):
    llm = OpenAICompatible("m", api_key=CANARY, base_url=served.base_url)
    built = []

    async def ask():
        built.append(llm.client)
        stream = await llm.client.chat.completions.create(model="m", messages=HELLO, stream=True)
        assert [chunk async for chunk in stream]

    for _ in range(2):
        asyncio.run(ask())
        gc.collect()  # a connection that is left open complains here
    assert built[0] is not built[1]
    assert all(client.is_closed() for client in built)


def test_models_that_share_a_client_know_which_loop_it_serves(served):
    client = client_for(served)
    with asyncio.Runner() as first:
        first.run(asking(OpenAICompatible("m", client=client, max_retries=0))())
        for _ in range(2):
            asyncio.run(asking(OpenAICompatible("m", client=client, max_retries=0))())
        first.run(client.close())
    gc.collect()  # what serves the loop of synchronous calls goes with the models
