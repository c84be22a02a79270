"""What a wire leaves out is told: by results, errors, events and, once, the log."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from SimpleLLMFunc import BadRequest, OpenAICompatible
from SimpleLLMFunc.base.events import RunFinished, to_dict
from SimpleLLMFunc.base.run import watching
from tests.support.functions import async_decorated, chat
from tests.support.server import LoopbackServer
from tests.support.services import ResponsesService

LEFT_OUT = ("sampling: temperature is left out", "a model that reasons takes none")


@pytest.fixture
async def server():
    async with LoopbackServer(ResponsesService()) as server:
        yield server


@pytest.fixture
def llm(server):
    return OpenAICompatible("gpt-5.6", base_url=server.base_url, api_key="k", wire="responses", max_retries=0)


def asker(llm, **options):
    return async_decorated(str, llm, temperature=0, **options)


def warnings_in(caplog):
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


async def test_a_result_tells_each_time_and_the_log_once(server, llm, caplog):
    with caplog.at_level("WARNING", "SimpleLLMFunc"):
        results = [await asker(llm).call("x"), await asker(llm).call("y"), *await asyncio.gather(asker(llm).call("z"))]
    assert [each.downgrades for each in results] == [[LEFT_OUT]] * 3
    (warning,) = warnings_in(caplog)
    assert "gpt-5.6" in warning
    assert LEFT_OUT[0] in warning
    assert all("temperature" not in each.body for each in server.requests)


async def test_errors_streams_and_chats_tell_it_too(server, llm):
    finished: list[Any] = []
    talk = chat(llm, temperature=0, stream=True)
    with watching(lambda _, event: finished.append(event) if isinstance(event, RunFinished) else None):
        assert "".join([piece async for piece in asker(llm).stream("x")]) == "ok"
        assert "".join([text async for text, _ in talk([], "hi")]) == "ok"
    assert [to_dict(each)["downgrades"] for each in finished] == [[list(LEFT_OUT)]] * 2
    server.answer(ResponsesService().error(400, "no"))
    with pytest.raises(BadRequest) as caught:
        await asker(llm)("x")
    assert caught.value.downgrades == [LEFT_OUT]
