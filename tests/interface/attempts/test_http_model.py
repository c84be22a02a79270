"""The tries of a call; what a failed one leaves behind. What they do is tested through `OpenAICompatible`."""

import itertools
from functools import partial

import openai
import pytest

from SimpleLLMFunc.errors import BadReply, BadRequest, ConnectionFailed, ServerUnavailable
from SimpleLLMFunc.interface.attempts.http_model import HttpModel
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.kept import watching_calls
from tests.support.server import Answer, LoopbackServer

HELLO = [{"role": "user", "content": "hello"}]


def model(server, **options):
    return OpenAICompatible("m", base_url=server.base_url, api_key="sk-one", retry_delay=0.001, **options)


async def chat(llm):
    await llm.chat(HELLO)


async def stream(llm):
    async for _ in llm.chat_stream(HELLO):
        pass


@pytest.fixture
def kept():
    """Tells what there is of calls that was not there before."""
    with watching_calls() as kept:
        yield kept


def test_it_is_what_openai_compatible_is():
    assert issubclass(OpenAICompatible, HttpModel)
    assert HttpModel.pays_requests


async def test_a_failed_call_is_gone_when_its_error_is(kept):
    cases = [
        (lambda server: server.reply_status(500), ServerUnavailable),
        (lambda server: server.reply_status(400), BadRequest),
        (lambda server: server.reply_reset(), ConnectionFailed),
        (lambda server: server.answer(Answer(body=b"{")), BadReply),
    ]
    told: list[str] = []
    for (fails, error), ask in itertools.product(cases, (chat, stream)):
        async with LoopbackServer() as server:
            for _ in range(2):
                fails(server)
            try:
                await ask(model(server, max_retries=1))
            except error as caught:
                told.append(str(caught))
                if len(told) == 1:
                    assert kept(), "as long as somebody has the error, its traceback shows the call"
    assert len(told) == 2 * len(cases)
    assert kept() == []


async def test_a_call_that_succeeds_in_the_end_leaves_nothing_of_its_failed_try(kept):
    async with LoopbackServer() as server:
        llm = model(server, max_retries=1)
        for fails, ask in itertools.product((partial(server.reply_status, 500), server.reply_reset), (chat, stream)):
            fails()
            await ask(llm)
        assert len(server.requests) == 8
        assert kept() == []


async def test_a_failed_call_through_a_client_is_gone_too(kept):
    async with LoopbackServer() as server, openai.AsyncOpenAI(api_key="sk-one", base_url=server.base_url) as client:
        llm = OpenAICompatible("m", client=client, max_retries=0)
        server.reply_status(500)
        with pytest.raises(ServerUnavailable) as caught:
            await llm.chat(HELLO)
        del caught
        assert kept() == []
