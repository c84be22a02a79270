"""The real server of the local model, asked on the three wires that it speaks.

What it does with a schema differs by wire, and is told by a test of its own: on chat completions it keeps to it, on the
others it passes over it in silence, so that the type is described in the prompt there.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from SimpleLLMFunc import Anthropic, OpenAICompatible, llm_chat, llm_function
from SimpleLLMFunc.errors import OutputTruncated, ResponseParseError
from SimpleLLMFunc.interface.local.server import LocalServer, ServerOptions, start_server
from SimpleLLMFunc.interface.local.weights import SMOLLM2_135M, fetch_weights
from SimpleLLMFunc.type import ChatPair, Message

pytestmark = [pytest.mark.heavy, pytest.mark.local_model, pytest.mark.timeout(120)]

WIRES = ("chat", "responses", "messages")
HELLO: list[Message] = [{"role": "user", "content": "Name a colour."}]
MODES = {"chat": "native", "responses": "prompt", "messages": "prompt"}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    started = start_server(ServerOptions("m", fetch_weights(SMOLLM2_135M), 1, 512))
    yield started
    started.stop()


def model(server: LocalServer, wire: str, *, max_tokens: int = 12, **options: Any) -> Any:
    options = {"api_key": server.key, "api_params": {"max_tokens": max_tokens, "temperature": 0}, **options}
    if wire == "messages":
        return Anthropic("m", base_url=server.base_url.removesuffix("/v1"), **options)
    return OpenAICompatible("m", base_url=server.base_url, wire=wire, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_says_what_the_whole_reply_says(server: LocalServer, wire: str) -> None:
    llm = model(server, wire, max_tokens=16)
    chunks = [chunk async for chunk in llm.chat_stream(HELLO)]
    assert len([chunk for chunk in chunks if chunk.text]) > 3
    assert "".join(chunk.text for chunk in chunks) == (await llm.chat(HELLO)).text
    assert sum(chunk.usage.completion_tokens for chunk in chunks if chunk.usage) == 16


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_answer_is_a_cut_answer(server: LocalServer, wire: str, stream: bool) -> None:
    """Its Responses calls a cut reply completed; as many tokens as were allowed tell."""

    @llm_function(model(server, wire, max_tokens=4), max_reasks=0)
    async def numbers(text: str) -> list[int]:
        """List the numbers from one to one hundred."""
        raise NotImplementedError

    with pytest.raises(OutputTruncated):
        if stream:
            [value async for value in numbers.stream("x")]
        else:
            await numbers("x")


@pytest.mark.parametrize("wire", WIRES)
async def test_a_typed_value_in_the_mode_that_holds_there(server: LocalServer, wire: str) -> None:
    @llm_function(model(server, wire, max_tokens=40), max_reasks=1)
    async def legs(text: str) -> int:
        """Say 4."""
        raise NotImplementedError

    assert legs.preview("A dog has 4 legs.").output_mode == MODES[wire]
    # So small a model answers with JSON only where it is made to; elsewhere it may fail, and not in silence.
    with (
        contextlib.nullcontext()
        if MODES[wire] == "native"
        else contextlib.suppress(OutputTruncated, ResponseParseError)
    ):
        assert isinstance(await legs("A dog has 4 legs."), int)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_chat_goes_on_from_a_stored_history(server: LocalServer, wire: str, stream: bool) -> None:
    @llm_chat(model(server, wire, max_tokens=24), stream=stream)
    async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
        """Talk."""
        raise NotImplementedError

    told: list[Message] = [
        {"role": "user", "content": "My name is Bob."},
        {"role": "assistant", "content": "Hello Bob."},
    ]
    first = [pair async for pair in chat(told, "What is my name?")][-1][1]
    assert "Bob" in first[-1]["content"]
    stored = json.loads(json.dumps(first))
    again = [pair async for pair in chat(stored, "Say it again.")][-1][1]
    assert [message["role"] for message in again[-4:]] == ["user", "assistant", "user", "assistant"]
    assert again[-4:-2] == stored[-2:]
