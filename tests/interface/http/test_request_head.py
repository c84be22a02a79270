"""The head of a request: what it says, what it refuses to say, and that it is shown nowhere."""

import pytest

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.http import request_head as heads
from SimpleLLMFunc.interface.http.request_head import RequestHeaders, request_head
from SimpleLLMFunc.interface.http.url import parsed_url
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.server import LoopbackServer

HELLO = [{"role": "user", "content": "hello"}]


def lines(head):
    return head.decode().split("\r\n")


def test_a_head_says_where_it_goes_and_what_it_can_read():
    url = parsed_url("https://api.example:8443/v1/chat?x=1")
    assert lines(request_head("GET", url.target, url, {"X-Team": "ä"})) == [
        "GET /v1/chat?x=1 HTTP/1.1",
        "Host: api.example:8443",
        "Accept: */*",
        "Accept-Encoding: gzip, deflate",
        "X-Team: ä",
        "",
    ]


def test_what_is_given_comes_before_what_would_be_added():
    url = parsed_url("http://api.example/")
    given = {"host": "other.example", "ACCEPT": "text/plain", "accept-encoding": "identity"}
    found = lines(request_head("POST", "/", url, given))
    assert found == ["POST / HTTP/1.1", "host: other.example", "ACCEPT: text/plain", "accept-encoding: identity", ""]


async def test_a_header_that_holds_a_line_break_is_not_sent():
    async with LoopbackServer() as server:
        llm = OpenAICompatible(
            "m", base_url=server.base_url, api_params={"extra_headers": {"X-Team": "a\r\nX-Admin: yes"}}
        )
        with pytest.raises(UsageError, match="line break"):
            await llm.chat(HELLO)
        assert not server.requests


def test_heads_are_kept_for_a_few_addresses_only_and_shown_nowhere():
    headers = RequestHeaders({"Authorization": "Bearer sk-secret"})
    for number in range(100):
        assert headers.head(parsed_url(f"http://localhost/{number}")).startswith(b"POST /%d HTTP/1.1\r\n" % number)
    assert len(headers._heads) <= heads._MOST_HEADS
    assert "sk-secret" not in repr(headers) + repr(headers._heads) + repr(vars(headers))
