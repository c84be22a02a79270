"""The client of the user on many event loops: the first one has it, the others have copies, closed with their loops."""

import asyncio
import gc
import threading

import openai
import pytest

from SimpleLLMFunc import ConfigError, OpenAICompatible, llm_function
from SimpleLLMFunc.interface.http.openai_client.loops import ClientPerLoop
from tests.support.server import serving_in_thread

CANARY = "sk-CANARY-client-0123456789"
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def served():
    with serving_in_thread(until_closed=True) as server:
        yield server


def client_for(server, kind=openai.AsyncOpenAI, **options):
    if kind is openai.AsyncAzureOpenAI:
        return kind(api_key=CANARY, azure_endpoint=server.base_url.removesuffix("/v1"), api_version="1", **options)
    return kind(api_key=CANARY, base_url=server.base_url, **options)


def asking(llm):
    @llm_function(llm)
    async def echo(text: str) -> str:
        """Echo."""
        raise NotImplementedError

    @llm_function(llm)
    def plain(text: str) -> str:
        """Echo."""
        raise NotImplementedError

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


async def test_the_first_loop_has_the_client_itself(served):
    async with client_for(served) as client:
        clients = ClientPerLoop(client)
        assert clients.here() is client
        copy = await asyncio.to_thread(asyncio.run, here(clients))
        assert copy is not client
        assert copy.is_closed()
        assert not client.is_closed()
        assert clients.here() is client


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
    llm = OpenAICompatible("m", api_key=CANARY, base_url=served.base_url)

    async def ask():
        async with llm.client as client:
            assert llm.client is client
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
