"""One exchange at the level of HTTP: bodies, proxies, redirects, TLS, the openai package's client, foreign exceptions."""

import asyncio
import contextlib
import gzip
import itertools
import json
import pickle
import socket
import threading
import time
from dataclasses import replace

import openai
import pytest

from SimpleLLMFunc import AuthenticationError, BadReply, BadRequest, ConfigError, ConnectionFailed
from SimpleLLMFunc.errors import ProviderError, RateLimited, StreamInterrupted, UsageError
from SimpleLLMFunc.interface.http import exchange as transport
from SimpleLLMFunc.interface.http.openai_client import to_openai
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.type.completion import ChatCompletion, ChatCompletionChunk
from tests.support.asking import HELLO, ask_either, streamed
from tests.support.busy_loop import ThreadServer, read_request
from tests.support.server import Answer, LoopbackServer, chunk, completion, sse
from tests.support.tls import certificate, server_context

CANARY = "sk-CANARY0123456789abcdefghij"


def model(server, **options):
    return OpenAICompatible("m", base_url=server.base_url, **{"retry_delay": 0.001, **options})


# --- bodies ----------------------------------------------------------------------------------------------

WHOLE = json.dumps(completion("packed")).encode()


async def test_a_body_without_end_is_given_up(server, monkeypatch):
    monkeypatch.setattr(transport, "LARGEST_BODY", 10_000)
    server.answer(Answer(pieces=[b'{"' + b"x" * 5_000] * 100))
    with pytest.raises(BadReply, match="longer than"):
        await model(server).chat(HELLO)
    server.reply_sse([sse(chunk({"content": "x" * 2_000}), done=False)] * 100)
    with pytest.raises((BadReply, StreamInterrupted), match="longer than"):
        await streamed(model(server))
    assert len(server.requests) == 2
    monkeypatch.setattr(transport, "LARGEST_BODY", len(WHOLE))
    server.answer(Answer(body=WHOLE))
    assert (await model(server).chat(HELLO)).text == "packed"


# --- bytes in, a reply out -------------------------------------------------------------------------------

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CUT = CHUNKED + b"5\r\n" + WHOLE[:5] + b"\r\n"


def with_length(body, head=b"", version=b"1.1"):
    return b"HTTP/%b 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (version, head, len(body), body)


REPLIES = {
    "length": (with_length(WHOLE), "kept"),
    "chunks": (CUT + b"%x;why=because\r\n%b\r\n0\r\nx-sum: 1\r\n\r\n" % (len(WHOLE) - 5, WHOLE[5:]), "kept"),
    "hints": (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + with_length(WHOLE), "kept"),
    "packed": (with_length(gzip.compress(WHOLE), b"content-encoding: gzip\r\n"), "kept"),
    "packed twice": (
        with_length(gzip.compress(WHOLE[:9]) + gzip.compress(WHOLE[9:]), b"Content-Encoding: GZIP\r\n"), "kept"
    ),
    "blanks": (with_length(b" \r\n" * 50 + WHOLE), "kept"),
    "lines end with LF": (with_length(WHOLE).replace(b"\r\n", b"\n"), "kept"),
    "close": (with_length(WHOLE, b"connection: close\r\n"), "closed"),
    "1.0": (with_length(WHOLE, version=b"1.0"), "closed"),
    "until the end": (b"HTTP/1.1 200 OK\r\n\r\n" + WHOLE, "ends"),
    "an offer of HTTP/2": (with_length(WHOLE, b"upgrade: h2c\r\nconnection: upgrade\r\n"), "kept"),
}  # fmt: skip

BROKEN = {
    "cut length": (with_length(WHOLE)[:-1], ConnectionFailed),
    "cut chunks": (CUT, ConnectionFailed),
    "cut last chunk": (CUT + b"%x\r\n%b\r\n" % (len(WHOLE) - 5, WHOLE[5:]), ConnectionFailed),
    "cut packed": (with_length(gzip.compress(WHOLE)[:-3], b"content-encoding: gzip\r\n"), ConnectionFailed),
    "cut head": (b"HTTP/1.1 200 OK\r\nx: y", ConnectionFailed),
    "nothing": (b"", ConnectionFailed),
    "cut until the end": (b"HTTP/1.1 200 OK\r\n\r\n" + WHOLE[:-1], BadReply),
    "no HTTP": (b"220 mail.example ESMTP\r\n", BadReply),
    "long head": (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000 + b"\r\n\r\n", BadReply),
    "many fields": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000, (BadReply, ConnectionFailed)),
    "a switch": (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", BadReply),
}


def raw_server(data, cuts, end):
    """A server that answers each request with these bytes, cut into packets."""

    def serve(sock, _):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while read_request(sock):
            for piece in cut(data, cuts):
                sock.sendall(piece)
                time.sleep(0.001)
            if end == "ends":
                return

    return ThreadServer(serve)


def cut(data, cuts):
    at = sorted({0, len(data), *(place % max(1, len(data)) for place in cuts)})
    return [data[begin:to] for begin, to in itertools.pairwise(at)]


CUTS = [[], [1], [16], [17, 18, 19], [60], [-1], [-2, -5], range(0, 400, 3)]


@pytest.mark.parametrize("name", REPLIES)
async def test_a_reply_is_the_same_however_it_is_cut(name):
    data, end = REPLIES[name]
    for cuts in CUTS:
        with raw_server(data, cuts, end) as server:
            for _ in range(2):
                assert (await model(server, max_retries=0).chat(HELLO, deadline=10)).text == "packed"
            assert server.connections == (1 if end == "kept" else 2), cuts


@pytest.mark.parametrize("name", BROKEN)
async def test_a_reply_that_is_broken_is_never_whole(name):
    data, error = BROKEN[name]
    for cuts in ([], [5, 30], range(0, 300, 7)):
        with raw_server(data, cuts, "ends") as server, pytest.raises(error):
            await model(server, max_retries=0).chat(HELLO, deadline=10)


async def test_blanks_within_an_answer_stay():
    body = json.dumps(completion("a" + " " * 5_000 + "b")).encode()
    at = body.index(b"a ") + 1
    with raw_server(with_length(body), [-(len(body) - at), -(len(body) - at - 4_000)], "kept") as server:
        for is_streamed in (False, True):
            assert (await ask_either(model(server), is_streamed)).text == "a" + " " * 5_000 + "b"


async def test_a_long_question_arrives_whole(server):
    text = "ä" * 1_000_000
    server.reply("read")
    assert (await model(server).chat([{"role": "user", "content": text}])).text == "read"
    assert server.requests[0].body["messages"][0]["content"] == text


# --- what goes out ---------------------------------------------------------------------------------------


async def test_a_request_says_what_it_can_read_and_nothing_of_its_client(server):
    llm = model(server, api_key=CANARY, api_params={"extra_headers": {"X-Team": "ä", "host": "other.example"}})
    await llm.chat(HELLO)
    headers = server.requests[0].headers
    assert headers.pop("content-length")
    assert headers.pop("user-agent").startswith("SimpleLLMFunc/")
    assert headers == {
        "host": "other.example", "accept": "application/json", "accept-encoding": "gzip, deflate",
        "content-type": "application/json", "authorization": f"Bearer {CANARY}",
        "x-team": "ä".encode().decode("latin-1"),
    }  # fmt: skip


async def test_a_header_that_holds_a_line_break_is_not_sent(server):
    llm = model(server, api_params={"extra_headers": {"X-Team": "a\r\nX-Admin: yes"}})
    with pytest.raises(UsageError, match="cannot be sent"):
        await llm.chat(HELLO)
    assert not server.requests


async def test_cookies_are_not_kept(server):
    server.answer(Answer(body=WHOLE, headers={"set-cookie": "who=me; Path=/"}))
    for _ in range(2):
        await model(server).chat(HELLO)
    assert not any("cookie" in request.headers for request in server.requests)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("http://host", "http://host"), ("HTTPS://API.Example/v1", "https://api.example/v1"),
        ("https://host:443/v1?a=b&c", "https://host/v1?a=b&c"), ("https://host:8443/#part", "https://host:8443/"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("http://host/a b/ü?q=ü ü", "http://host/a%20b/%C3%BC?q=%C3%BC+%C3%BC"),
        ("http://host/a%20b?x=%2F", "http://host/a%20b?x=/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://straße.example/", "http://xn--strae-oqa.example/"), ("http://u:p%40ss@host:1/", "http://host:1/"),
    ],
)  # fmt: skip
def test_an_address_that_can_be_asked(text, asked):
    assert str(transport.whole_address(text)) == asked


@pytest.mark.parametrize(
    "text", ["", "host", "ftp://host/", "http://", "http://:80/", "http://h:0/", "http://h:99999/", "http://[bad", "http://a b/",
             "http://\x00/", "http://" + "ü" * 300 + "/"],
)  # fmt: skip
def test_an_address_that_cannot_be_asked_is_refused(text):
    with pytest.raises(ConfigError, match="http or https address"):
        transport.whole_address(text)


# --- redirects -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_on_the_same_host_keeps_method_body_and_key(server, status):
    server.answer(Answer(status, {"location": "/other/path?x=1"}, body=b"moved"))
    reply = await model(server, api_key=CANARY).chat(HELLO)
    assert reply.text == "hello"
    first, second = server.requests
    assert (second.method, second.path, second.raw, second.key) == ("POST", "/other/path?x=1", first.raw, CANARY)


@pytest.mark.parametrize(("target", "kind"), [("http://[bad", BadRequest), ("https://127.0.0.1:9/", ConnectionFailed)])
async def test_a_redirect_leads_to_tls_on_the_same_host_and_nowhere_else(server, target, kind):
    assert [each for each in (299, 300, 399, 400) if transport.is_redirect(each, {"location": "/"})] == [300, 399]
    server.answer(Answer(307, {"location": target}, body=b""))
    with pytest.raises(kind):
        await model(server, max_retries=0).chat(HELLO)


@contextlib.asynccontextmanager
async def model_at(url, kind):
    """A model of ours, or one behind a client of the openai package."""
    if kind == "ours":
        yield OpenAICompatible("m", base_url=url, api_key=CANARY, retry_delay=0.001)
        return
    client = openai.AsyncAzureOpenAI if kind == "azure" else openai.AsyncOpenAI
    address = {"azure_endpoint": url, "api_version": "1"} if kind == "azure" else {"base_url": url}
    async with client(api_key=CANARY, default_headers={"X-Gateway-Key": CANARY}, **address) as made:
        yield OpenAICompatible("m", client=made, retry_delay=0.001)


@pytest.mark.parametrize("kind", ["ours", "openai", "azure"])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_to_another_host_takes_neither_key_nor_messages(server, kind, status):
    async with LoopbackServer() as other, model_at(server.base_url, kind) as llm:
        for target in (f"http://localhost:{other.port}/v1/x", f"{other.base_url}/x"):
            for is_streamed in (False, True):
                server.answer(Answer(status, {"location": target}, body=b""))
                with pytest.raises(BadRequest, match=f":{other.port};") as caught:
                    await ask_either(llm, is_streamed)
                assert caught.value.status == status
        assert other.requests == []


@pytest.mark.parametrize("kind", ["ours", "openai", "azure"])
async def test_a_redirect_on_the_same_host_is_followed_and_ends(server, kind):
    async with model_at(server.base_url, kind) as llm:
        server.answer(Answer(307, {"location": "/other/path?x=1"}, body=b"moved"))
        assert (await llm.chat(HELLO)).text == "hello"
        first, second = server.requests
        assert (second.method, second.path.partition("?")[0], second.body) == ("POST", "/other/path", first.body)
        assert CANARY in (second.key, second.headers.get("api-key"))
        for _ in range(10):
            server.answer(Answer(307, {"location": "/again"}, body=b""))
        with pytest.raises(BadRequest, match="too often"):
            await llm.chat(HELLO)
        assert len(server.requests) == 8
        # Nor does it ask otherwise than it was asked to.
        server._script.clear()
        server.answer(Answer(303, {"location": "/elsewhere"}, body=b""))
        with pytest.raises(BadRequest):
            await llm.chat(HELLO)


async def test_the_key_of_the_client_we_build_does_not_follow_a_redirect(server):
    async with LoopbackServer() as other:
        server.answer(Answer(307, {"location": f"http://localhost:{other.port}/v1/x"}, body=b""))
        async with model(server, api_key=CANARY).client as client:
            await client.chat.completions.create(model="m", messages=HELLO)
        (request,) = other.requests
        assert CANARY not in str(request.headers)


# --- bodies that break -----------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [b"zz\r\n{}\r\n", b"-1\r\n", b"2\r\n{}X"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_broken_chunk_ends_the_wait_for_the_body(stream, chunk):
    ended = threading.Event()

    def serve(sock, _):
        read_request(sock)
        sock.sendall(CHUNKED)
        time.sleep(0.05)  # head and chunk are two reads
        sock.sendall(chunk)
        with contextlib.suppress(ConnectionError):
            sock.recv(1)
        ended.set()

    with ThreadServer(serve) as server:
        with pytest.raises((ConnectionFailed, StreamInterrupted), match="broke off: 400"):
            await ask_either(model(server, max_retries=0), stream, deadline=10)
        assert await asyncio.to_thread(ended.wait, 5)


# --- TLS -------------------------------------------------------------------------------------------------


@pytest.fixture
async def tls_server():
    async with LoopbackServer(tls=server_context()) as server:
        server.base_url = f"https://localhost:{server.port}/v1"
        yield server


async def test_an_unknown_certificate_is_refused_at_once(tls_server):
    with pytest.raises(ConnectionFailed, match="TLS") as caught:
        await model(tls_server, max_retries=5).chat(HELLO)
    assert caught.value.tries == 1
    assert tls_server.requests == []


async def test_a_certificate_of_the_systems_trust_store_is_accepted(tls_server, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    assert (await model(tls_server).chat(HELLO)).text == "hello"
    assert (await streamed(model(tls_server))).text == "hello"


@contextlib.asynccontextmanager
async def web_server(tls=None):
    """A server of aiohttp's: what it is told in another language it answers as servers do."""
    from aiohttp import web

    async def answer(request):
        return web.json_response(completion("hello"))

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        yield site._server.sockets[0].getsockname()[1]
    finally:
        await runner.cleanup()


both_kinds = pytest.mark.parametrize("kind", ["ours", "openai"])


@both_kinds
@pytest.mark.parametrize(
    ("scheme", "said"),
    [("https", "does not speak TLS: write http:// instead of https://"), ("http", "write https:// instead of http://")],
)
async def test_tls_where_plain_http_is_spoken_is_told_as_that_and_the_other_way_round(kind, scheme, said):
    async with web_server(server_context() if scheme == "http" else None) as port:
        with pytest.raises(ConnectionFailed, match=said) as caught:
            async with model_at(f"{scheme}://127.0.0.1:{port}/v1", kind) as llm:
                await llm.chat(HELLO)
    assert scheme == "http" or caught.value.tries == 1


@both_kinds
async def test_a_tls_alert_instead_of_http_is_told_at_once(server, kind):
    for _ in range(3):
        server.reply_raw(b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n")
    with pytest.raises(ProviderError, match="speaks TLS: write https:// instead of http://"):
        async with model_at(server.base_url, kind) as llm:
            await llm.chat(HELLO)


@both_kinds
@pytest.mark.parametrize(
    ("base", "better"), [("", "/v1"), ("/v1/chat/completions", "/v1"), ("/v2", None)], ids=["no /v1", "twice", "other"]
)
async def test_a_404_names_the_address_asked_and_the_one_to_write(server, kind, base, better):
    server.reply_status(404, message="no such page")
    root = server.base_url.removesuffix("/v1")
    with pytest.raises(BadRequest) as caught:
        async with model_at(root + base, kind) as llm:
            await llm.chat(HELLO)
    text = str(caught.value)
    assert f"404 at {root}{base}/chat/completions." in text
    assert (f'Write base_url="{root}{better}".' in text) == (better is not None)
    assert CANARY not in text


# --- through the user's own client -----------------------------------------------------------------------


@pytest.fixture
async def client(server):
    async with openai.AsyncOpenAI(api_key=CANARY, base_url=server.base_url) as client:
        yield client


@pytest.fixture
def through(client):
    return OpenAICompatible("m", client=client, retry_delay=0.001)


async def test_a_call_goes_through_the_client(server, through, client):
    assert through.client is client
    assert through.base_url == server.base_url
    reply = await through.chat(HELLO, temperature=0, top_k=3, trace_id="t")
    assert reply.text == "hello"
    (request,) = server.requests
    assert request.body == {"model": "m", "messages": HELLO, "temperature": 0, "top_k": 3}
    assert request.key == CANARY
    assert "openai" in request.headers["user-agent"].lower()


async def test_what_the_package_would_hide_is_seen(server, through):
    server.reply_sse(sse(chunk({"content": "Hel"}), done=False))
    with pytest.raises(StreamInterrupted) as caught:
        await streamed(through)
    assert caught.value.partial == "Hel"
    for answer in (b"<html>", b"<html>"):
        server.answer(Answer(body=answer, headers={"content-type": "text/html"}))
    with pytest.raises(BadReply, match="it is a web page"):
        await through.chat(HELLO)
    server.reply_json({"choices": []})
    with pytest.raises(BadReply):
        await through.chat(HELLO)


async def test_a_break_closes_the_clients_connection(server, through):
    server.reply_sse([sse(chunk({"content": "a"}), done=False)] * 3, hold=asyncio.Event(), hold_after=2)
    stream = through.chat_stream(HELLO)
    await anext(stream)
    await stream.aclose()
    await server.all_closed()


async def test_an_azure_client_keeps_its_own_addresses(server):
    async with openai.AsyncAzureOpenAI(
        api_key=CANARY, azure_endpoint=f"http://127.0.0.1:{server.port}", api_version="2024-10-21"
    ) as client:
        assert (await OpenAICompatible("my-deployment", client=client).chat(HELLO)).text == "hello"
    path = server.requests[0].path
    assert path == "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
    assert server.requests[0].headers["api-key"] == CANARY


async def test_a_model_with_a_client_cannot_be_pickled(through):
    with pytest.raises(ConfigError, match="client="):
        pickle.dumps(through)


@pytest.mark.parametrize("other", [openai.OpenAI(api_key="sk-aaaaaaaa"), object(), "client"])
def test_another_client_is_refused(other):
    with pytest.raises(ConfigError, match="AsyncOpenAI"):
        OpenAICompatible("m", client=other)


@pytest.mark.parametrize("option", ["api_key", "base_url"])
async def test_a_client_has_its_own_key_and_address(client, option):
    with pytest.raises(ConfigError, match="client="):
        OpenAICompatible("m", client=client, **{option: "https://x.example/v1"})


# --- openai's objects ------------------------------------------------------------------------------------


def test_a_reply_becomes_the_packages_object():
    wire = completion(
        "hi", tool_calls=[{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}], finish_reason="odd"
    )
    wire["service_tier"] = "default"
    reply = to_openai(ChatCompletion.from_dict(wire))
    assert isinstance(reply, openai.types.chat.ChatCompletion)
    assert reply.choices[0].message.content == "hi"
    assert reply.choices[0].message.tool_calls[0].function.name == "f"
    assert reply.choices[0].message.tool_calls[0].function.arguments == '{"x": 1}'
    assert reply.choices[0].finish_reason == "odd"
    assert reply.usage.prompt_tokens == 5
    assert reply.service_tier == "default"
    of_messages = replace(ChatCompletion.from_dict(wire), raw={"usage": {"input_tokens": 3}})
    assert (to_openai(of_messages).usage.prompt_tokens, to_openai(of_messages).usage.input_tokens) == (5, 3)


def test_a_chunk_becomes_the_packages_object():
    wire = chunk({"content": "x", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]})
    item = to_openai(ChatCompletionChunk.from_dict(wire))
    assert isinstance(item, openai.types.chat.ChatCompletionChunk)
    assert item.choices[0].delta.content == "x"
    assert item.choices[0].delta.tool_calls[0].function.arguments == "{"
    assert item.choices[0].delta.tool_calls[0].index == 0
    assert item.usage is None


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(400, None, BadRequest), (401, None, AuthenticationError), (429, "insufficient_quota", RateLimited)],
)
async def test_the_clients_refusals_are_ours(server, through, status, code, kind):
    server.reply_status(status, message="because", code=code, headers={"x-request-id": "r1"})
    with pytest.raises(kind) as caught:
        await through.chat(HELLO)
    assert (caught.value.status, caught.value.request_id, len(server.requests)) == (status, "r1", 1)
