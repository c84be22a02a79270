"""The seam: what a wire is asked for, and that `HttpModel` asks it for all of that."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from SimpleLLMFunc.errors import AuthenticationError, BadReply, StreamInterrupted
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.profile import find_profile
from SimpleLLMFunc.interface.wires import CHAT, Asked, ChatCompletionsWire, Received, Wire
from tests.support.server import LoopbackServer

HELLO = [{"role": "user", "content": "hello"}]
PROFILE = find_profile("openai", "")
WHOLE = {
    "id": "1",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
}
EVENTS = (
    b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"h"}}]}\n\n'
    b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"i"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def test_it_is_a_wire():
    wire: Wire = CHAT
    assert (wire.name, wire.models_path) == ("chat", "/models")
    assert wire.path("m", stream=False) == wire.path("m", stream=True) == "/chat/completions"
    assert wire.auth("sk-one") == {"Authorization": "Bearer sk-one"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_data(stream):
    asked = Asked(HELLO, params={"temperature": 0})
    request = CHAT.request(asked, "m", PROFILE, stream=stream)
    assert request.path == "/chat/completions"
    assert not request.headers
    assert request.body["messages"] == HELLO
    assert request.body["temperature"] == 0
    assert request.body.get("stream", False) is stream


def test_replies_errors_and_events_are_read_from_bytes():
    received = Received("m", tries=2)
    reply = CHAT.reply(json.dumps(WHOLE).encode(), received)
    assert (reply.text, reply.tries) == ("hi", 2)
    refused = CHAT.error(b'{"error":{"message":"no"}}', Received("m", status=401))
    assert isinstance(refused.error, AuthenticationError)
    with pytest.raises(AttemptFailed) as broken:
        CHAT.reply(b'{"choices": [', received)
    assert isinstance(broken.value.error, BadReply)
    decoder = CHAT.decoder(received)
    assert (
        "".join(chunk.text for cut in range(0, len(EVENTS), 7) for chunk in decoder.feed(EVENTS[cut : cut + 7])) == "hi"
    )
    assert decoder.is_done
    assert decoder.is_complete


def test_a_stream_that_breaks_is_a_failed_attempt_until_it_has_shown_text():
    assert isinstance(CHAT.decoder(Received("m")).broken("reset"), AttemptFailed)
    decoder = CHAT.decoder(Received("m"))
    assert list(decoder.feed(EVENTS[:70]))
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
