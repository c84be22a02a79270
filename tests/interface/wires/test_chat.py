"""A wire of a user's own: `HttpModel` asks it for the path, the headers and the key."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from SimpleLLMFunc.errors import StreamInterrupted
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.wires import CHAT, ChatCompletionsWire, Received, Wire
from tests.support.server import LoopbackServer

HELLO = [{"role": "user", "content": "hello"}]


def test_it_is_a_wire():
    wire: Wire = CHAT
    assert (wire.name, wire.models_path) == ("chat", "/models")
    assert wire.path("m", stream=False) == wire.path("m", stream=True) == "/chat/completions"
    assert wire.auth("sk-one") == {"Authorization": "Bearer sk-one"}


def test_a_stream_that_breaks_is_a_failed_attempt_until_it_has_shown_text():
    decoder = CHAT.decoder(Received("m"))
    assert isinstance(decoder.broken("reset"), AttemptFailed)
    assert list(decoder.feed(b'data: {"choices":[{"index":0,"delta":{"content":"h"}}]}\n\n'))
    assert isinstance(decoder.broken("reset"), StreamInterrupted)


@dataclass(frozen=True)
class Elsewhere(ChatCompletionsWire):
    """The same body at another place, under another key."""

    def path(self, model_name, *, stream):
        return f"/models/{model_name}:{'stream' if stream else 'whole'}"

    def request(self, asked, model_name, profile, *, stream):
        request = super().request(asked, model_name, profile, stream=stream)
        return type(request)(self.path(model_name, stream=stream), request.body, {"x-version": "7"})

    def auth(self, key):
        return {"x-api-key": key}


class OtherModel(OpenAICompatible):
    wire = Elsewhere()


async def test_the_wire_says_where_with_which_headers_and_which_key():
    async with LoopbackServer() as server:
        llm = OtherModel("m", base_url=server.base_url, api_key="sk-one", max_retries=0)
        assert llm.url() == f"{server.base_url}/models/m:whole"
        assert llm.url(stream=True) == f"{server.base_url}/models/m:stream"
        server.reply_status(500)  # of any path
        with pytest.raises(Exception, match="500"):
            await llm.chat(HELLO)
        request = server.requests[0]
        assert request.path.endswith("/models/m:whole")
        assert request.headers["x-api-key"] == "sk-one"
        assert request.headers["x-version"] == "7"
        assert "authorization" not in request.headers
