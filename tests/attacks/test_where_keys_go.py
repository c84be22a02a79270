"""Attack 15: no argument of a call changes where the key goes, with which headers, or with which key."""

import pytest

from SimpleLLMFunc import CachedLLM, FallbackLLM, OpenAICompatible, llm_chat
from SimpleLLMFunc.errors import UsageError
from tests.support.functions import async_function_of, drained
from tests.support.server import LoopbackServer

KEY = "sk-CANARY-0123456789abcdef"
NAMES = [
    "api_base", "base_url", "api_key", "api_key_pool", "extra_headers", "headers", "default_headers", "extra_query",
    "default_query", "organization", "project", "client", "http_client", "azure_endpoint", "api_version", "proxy", "proxies",
    "webhook_secret", "websocket_base_url",
]  # fmt: skip


@pytest.fixture
async def servers():
    async with LoopbackServer() as server, LoopbackServer() as evil:
        yield server, evil


def value_of(name, evil):
    if "header" in name or "query" in name:
        return {"Authorization": "Bearer sk-other", "Host": "evil.example"}
    return evil.base_url


def ways(llm, name, value):
    """How an argument of a call reaches a model."""
    messages = [{"role": "user", "content": "x"}]

    say = async_function_of(llm)

    @llm_chat(llm, stream=True)
    async def chat(text: str):
        """Talk."""
        yield

    for given in ({name: value}, {"extra_body": {name: value}}):
        yield lambda given=given: llm.chat(messages, **given)
        yield lambda given=given: drained(llm.chat_stream(messages, **given))
        yield lambda given=given: say.with_options(**given)("x")
        yield lambda given=given: drained(say.with_options(**given).stream("x"))
        yield lambda given=given: drained(chat.with_options(**given)("x"))


@pytest.mark.parametrize("name", NAMES)
async def test_attack_15_what_a_call_brings_is_refused_before_the_request(name, servers, tmp_path):
    server, evil = servers
    own = OpenAICompatible("m", api_key=KEY, base_url=server.base_url)
    for llm in (own, FallbackLLM(own), CachedLLM(own, tmp_path / "a.sqlite")):
        for ask in ways(llm, name, value_of(name, evil)):
            with pytest.raises(UsageError, match=name):
                await ask()
        with pytest.raises(UsageError, match=name):
            llm.render([{"role": "user", "content": "x"}], **{name: value_of(name, evil)})
    assert server.requests == evil.requests == []


async def test_attack_15_ordinary_parameters_change_only_the_body(servers):
    server, evil = servers
    llm = OpenAICompatible("m", api_key=KEY, base_url=server.base_url)
    body = {
        "url": evil.base_url,
        "endpoint": evil.base_url,
        "metadata": {"base_url": evil.base_url},
        "user": "\r\nHost: evil",
    }
    await llm.chat([{"role": "user", "content": "x"}], model=evil.base_url, **body)
    (request,) = server.requests
    assert request.key == KEY
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.path == "/v1/chat/completions"
    assert request.body["url"] == evil.base_url
    assert evil.requests == []
