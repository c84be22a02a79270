"""Tavily through its own package, against a loopback server that answers in the service's shapes."""

import asyncio
import json
import logging
import pickle
import re

import pytest

from SimpleLLMFunc.assistant.search.search import search_web
from SimpleLLMFunc.assistant.search.tavily_search import TavilySearch
from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadRequest,
    ConfigError,
    ConnectionFailed,
    ProviderError,
    RateLimited,
    ServerUnavailable,
    SimpleLLMFuncError,
)
from SimpleLLMFunc.extras import install_line
from tests.support.server import Answer, LoopbackServer, json_answer

KEY = "tvly-CANARY-0123456789abcdef"
HIT = {"title": "Final", "url": "https://news.example/final", "content": "Team A beat team B."}
RECORDED = {"answer": "Team A won.", "images": [], "results": [{**HIT, "score": 0.98, "raw_content": None}]}


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)


async def ask(*answers, query="who won?", **options):
    async with LoopbackServer() as server:
        for answer in answers:
            server.answer(answer)
        client = TavilySearch(KEY, endpoint=f"http://127.0.0.1:{server.port}", **options)
        try:
            return await search_web(client, query), server.requests
        finally:
            await server.all_closed()


async def test_the_answer_and_the_hits():
    found, requests = await ask(json_answer(RECORDED), max_results=3, topic="news")
    assert found == {"answer": "Team A won.", "results": [HIT]}
    (request,) = requests
    assert (request.path, request.key) == ("/search", KEY)
    sent = {"query": "who won?", "max_results": 3, "include_answer": True, "topic": "news"}
    assert sent.items() <= json.loads(request.raw).items()


async def test_the_key_of_the_environment_is_read_at_each_search(monkeypatch):
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-first-0123456789")
    async with LoopbackServer() as server:
        client = TavilySearch(endpoint=server.base_url)
        monkeypatch.setenv("TAVILY_API_KEY", " tvly-second-0123456789 ")
        server.reply_json(RECORDED)
        await client.search("q")
        assert server.requests[0].key == "tvly-second-0123456789"
        monkeypatch.delenv("TAVILY_API_KEY")
        with pytest.raises(ConfigError, match="TAVILY_API_KEY"):
            await client.search("q")


@pytest.mark.parametrize("key", ["", "  ", "a b", "schlüssel"])
def test_a_key_that_is_none(key):
    with pytest.raises(ConfigError):
        TavilySearch(key)


def test_a_missing_extra_names_the_install_line(monkeypatch):
    monkeypatch.setattr("SimpleLLMFunc.extras.find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=re.escape(install_line("search"))):
        TavilySearch(KEY)


def error(status, said="no", **headers):
    return json_answer({"detail": {"error": said}}, status=status, headers=headers)


@pytest.mark.parametrize(("answer", "kind"), [
    (error(401, "Unauthorized: missing or invalid API key."), AuthenticationError),
    (error(403), AuthenticationError), (error(400, "Query is too long."), BadRequest),
    (error(429), RateLimited), (error(432, "This request exceeds your plan's set usage limit."), RateLimited),
    (error(500), ServerUnavailable),
    (Answer(502, {"content-type": "text/html"}, body=b"<h1>Bad gateway</h1>"), ServerUnavailable),
    (Answer(302, {"location": "http://127.0.0.1:9/"}, body=b""), ProviderError), (Answer(204, body=b""), ProviderError),
    (Answer(200, {"content-type": "text/html"}, body=b"<html>Log in</html>"), ProviderError),
    (Answer(200, body=b""), ProviderError), (Answer(200, body=b"[" * 100_000), ProviderError),
    (json_answer([]), ProviderError), (json_answer("x"), ProviderError),
    (json_answer({"answer": None, "results": "none"}), ProviderError),
    (Answer(raw=b"garbage\r\n\r\n"), ProviderError), (Answer(raw=b"", reset=True), ConnectionFailed),
    (Answer(200, {"content-encoding": "gzip"}, body=b"\x1f\x8b"), ProviderError),
])  # fmt: skip
async def test_every_failure_is_one_of_ours_and_names_the_service(answer, kind):
    with pytest.raises(kind, match="Tavily") as caught:
        await ask(answer)
    assert isinstance(caught.value, SimpleLLMFuncError)
    assert "CANARY" not in f"{caught.value!r}{caught.value}{caught.value.__cause__}"


async def test_a_used_up_plan_and_a_busy_service_are_told_apart():
    with pytest.raises(RateLimited) as used_up:
        await ask(error(433))
    assert used_up.value.kind == "quota"
    with pytest.raises(RateLimited) as busy:
        await ask(error(429, **{"retry-after": "7"}))
    assert (busy.value.kind, busy.value.retry_after) == ("rate", 7.0)


async def test_a_body_without_end_is_not_read():
    endless = Answer(pieces=[b"x" * 65536] * 64, hold=asyncio.Event(), hold_after=64)
    with pytest.raises(ProviderError, match="longer than"):
        await ask(endless)


async def test_silence_ends_and_leaves_no_connection():
    with pytest.raises(ConnectionFailed, match=r"0\.2 s"):
        await ask(Answer(hold=asyncio.Event()), timeout=0.2)


async def test_the_key_shows_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    client = TavilySearch(KEY)
    assert KEY not in repr(client)
    assert KEY.encode() not in pickle.dumps(client)
    with pytest.raises(AuthenticationError) as caught:
        await ask(error(401, f"invalid key {KEY}"))
    assert KEY not in str(caught.value)
    assert KEY not in caplog.text


async def test_a_pickled_client_takes_the_key_of_the_environment(monkeypatch):
    again = pickle.loads(pickle.dumps(TavilySearch(KEY)))
    with pytest.raises(ConfigError):
        await again.search("q")
