"""`get_json`: plain requests over the library's own sessions, and every way in which they can go wrong."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from SimpleLLMFunc import AuthenticationError, BadRequest
from SimpleLLMFunc.errors import ConfigError, ConnectionFailed, DeadlineExceeded, ProviderError, ServerUnavailable
from SimpleLLMFunc.interface.attempts.json_document import get_json
from SimpleLLMFunc.interface.spending.deadline import deadline_scope
from tests.support.server import Answer, LoopbackServer


def html(text: str, status: int = 200) -> Answer:
    return Answer(status, {"content-type": "text/html"}, body=text.encode())


async def test_the_reply_is_data_and_the_parameters_are_escaped(server):
    server.reply_json({"答": [1, None]})
    params = {"q": "北京 & a=b?", "n": 3, "none": None, "odd": "a\ud800b"}
    assert await get_json(f"{server.base_url}/x?fixed=1", params, service="s") == {"答": [1, None]}
    (request,) = server.requests
    assert request.method == "GET"
    assert request.raw == b""
    assert parse_qs(urlsplit(request.path).query) == {"fixed": ["1"], "q": ["北京 & a=b?"], "n": ["3"], "odd": ["a?b"]}
    assert request.headers["accept"] == "application/json"
    assert request.headers["user-agent"].startswith("SimpleLLMFunc")
    assert "content-length" not in request.headers
    assert "authorization" not in request.headers


@pytest.mark.parametrize("url", ["file:///etc/passwd", "host/x", "http://", "http://[::1"])
async def test_an_address_that_cannot_be_asked(url):
    with pytest.raises(ConfigError, match="Give an http or https address"):
        await get_json(url, service="s")


@pytest.mark.parametrize(
    ("status", "kind"), [(400, BadRequest), (401, AuthenticationError), (403, AuthenticationError), (404, BadRequest)]
)
async def test_a_refusal_is_not_tried_again(server, status, kind):
    server.reply_json({"error": True, "reason": "no such place"}, status=status)
    with pytest.raises(kind, match="no such place") as caught:
        await get_json(server.base_url, service="the weather")
    assert len(server.requests) == 1
    assert str(caught.value).startswith("the weather: ")
    assert caught.value.status == status


async def test_a_5xx_is_tried_once_more(server):
    server.reply_status(502)
    server.reply_json("here")
    assert await get_json(server.base_url, service="s") == "here"
    server.reply_status(500)
    server.reply_status(500)
    with pytest.raises(ServerUnavailable):
        await get_json(server.base_url, service="s")
    assert len(server.requests) == 4


@pytest.mark.parametrize("body", ["<html>Log in first</html>", "", "{'a': 1}", "[" * 100_000])
async def test_what_is_no_json_is_refused(server, body):
    server.answer(html(body))
    with pytest.raises(ProviderError, match="is no JSON") as caught:
        await get_json(server.base_url, service="s")
    assert type(caught.value) is ProviderError
    assert len(str(caught.value)) < 400


async def test_a_long_reply_is_not_read_to_its_end(server):
    never = asyncio.Event()
    server.answer(Answer(pieces=[b" " * 500_000] * 5, hold=never, hold_after=5))
    with pytest.raises(ProviderError, match="longer than 2097152 bytes"):
        await get_json(server.base_url, service="s")
    await server.all_closed()


async def test_silence_ends(server):
    server.answer(Answer(hold=asyncio.Event()))
    with pytest.raises(ConnectionFailed, match=r"0\.2 s"):
        await get_json(server.base_url, service="s", timeout=0.2)
    await server.all_closed()


async def test_the_surrounding_deadline_comes_first(server):
    server.answer(Answer(hold=asyncio.Event()))
    with deadline_scope(0.1), pytest.raises(DeadlineExceeded):
        await get_json(server.base_url, service="s", timeout=30)


async def test_redirects_stay_on_the_host():
    async with LoopbackServer() as server, LoopbackServer() as other:
        server.answer(Answer(302, {"location": "/v1/there"}, body=b""))
        server.reply_json("found")
        assert await get_json(f"{server.base_url}/here", service="s") == "found"
        assert server.requests[-1].path == "/v1/there"
        assert server.requests[-1].method == "GET"
        server.answer(Answer(302, {"location": other.base_url}, body=b""))
        with pytest.raises(BadRequest, match="redirects to"):
            await get_json(server.base_url, service="s")
        assert other.requests == []
