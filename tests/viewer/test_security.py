"""Who may talk to the page."""

from __future__ import annotations

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.viewer import ViewerApp, viewer_app
from SimpleLLMFunc.viewer.security import TOKEN_HEADER
from tests.viewer import shop
from tests.viewer.served import HEADERS, LOOPBACK, TOKEN, app_of, client_of


@pytest.mark.parametrize("given", ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é" * 10], ids=repr)
def test_no_other_token_opens_anything(client, given):
    headers = {TOKEN_HEADER: given.encode("utf-8")}
    for path in ("info", "runs", "changes", "filters", "functions", "maps", "runs/1"):
        reply = client.get(f"/api/{path}", headers=headers)
        assert reply.status_code == 401, path
        assert TOKEN not in reply.text


def test_a_token_in_the_query_or_in_a_cookie_opens_nothing_but_the_page_itself(store):
    client = TestClient(app_of(store), base_url=LOOPBACK)
    client.cookies.set("token", TOKEN)
    client.cookies.set(TOKEN_HEADER, TOKEN)
    assert client.get("/api/runs", params={"token": TOKEN}).status_code == 401
    page = client.get("/")
    assert page.status_code == 200
    assert "<script" in page.text
    assert TOKEN not in page.text


@pytest.mark.parametrize(
    "host",
    ["evil.com", "evil.com:8000", "127.0.0.1.evil.com", "localhost.evil.com", "", "127.0.0.1@evil.com", "[::1", "[::1]x",
     "127.0.0.1:80@evil.com", "0.0.0.0", "127.0.0.1, evil.com", "localhost:80:90", "[::ffff:7f00:1]"],
)  # fmt: skip
def test_a_name_of_another_site_is_refused(client, host):
    for path in ("/", "/app.js", "/api/runs"):
        assert client.get(path, headers={"host": host}).status_code == 421, path


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1234", "[::1]", "[::1]:8000"])
def test_this_machine_goes_by_its_names(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


async def test_two_hosts_are_none():
    async def app(scope, receive, send):
        raise AssertionError("it went through")

    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"host", b"evil.com")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    await ViewerApp(app, token=None)(scope, None, send)
    assert sent[0]["status"] == 421


@pytest.mark.parametrize(
    "origin",
    ["http://evil.com", "null", "http://127.0.0.1:9999", "http://127.0.0.1", "https://127.0.0.1:8000.evil.com", "file://",
     "http://127.0.0.1:8000/", "http://[", "chrome-extension://abc"],
)  # fmt: skip
def test_another_origin_is_refused(client, origin):
    assert client.get("/api/runs", headers={"origin": origin}).status_code == 403
    assert client.post("/api/play/mood", json={}, headers={"origin": origin}).status_code == 403
    for site in ("cross-site", "same-site"):
        assert client.get("/api/runs", headers={"sec-fetch-site": site}).status_code == 403, "as the browser says"


def test_default_ports_are_left_out_of_a_name(store):
    client = TestClient(app_of(store, allowed_hosts=["llm.example"]), base_url="https://llm.example", headers=HEADERS)
    origin = {"origin": "https://llm.example"}
    assert client.get("/api/runs", headers=origin).status_code == 200
    assert client.get("/api/runs", headers={"host": "llm.example:443", **origin}).status_code == 200


# --- every answer ---


def test_every_answer_says_what_a_browser_may_do_with_it(client):
    for path, status in (("/", 200), ("/app.js", 200), ("/nothing", 404), ("/api/runs", 200), ("/api/runs/99", 404)):
        reply = client.get(path)
        assert reply.status_code == status, path
        policy = dict(part.split(" ", 1) for part in reply.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert "http" not in reply.headers["content-security-policy"]
        told = [reply.headers[name] for name in ("x-content-type-options", "x-frame-options", "referrer-policy")]
        assert told == ["nosniff", "DENY", "no-referrer"]
        assert "access-control-allow-origin" not in reply.headers
    assert client.get("/api/runs").headers["cache-control"] == "no-store"
    refused = client.get("/api/runs", headers={TOKEN_HEADER: "no"})
    assert refused.headers["cache-control"] == "no-store"
    assert "content-security-policy" in refused.headers


def test_nothing_but_json_is_taken(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        reply = client.post("/api/play/mood", content=b"{}", headers={"content-type": kind, "origin": LOOPBACK})
        assert reply.status_code == 415, kind


@pytest.mark.parametrize("says_so", [True, False])
def test_a_large_body_is_refused(store, says_so):
    client = client_of(app_of(store, allow_run=[shop]))
    pieces = [b" " * 100_000] * 50
    headers = {"content-type": "application/json", "origin": LOOPBACK}
    content = b"".join(pieces) if says_so else iter(pieces)
    assert client.post("/api/play/mood", content=content, headers=headers).status_code == 413


def test_web_sockets_are_closed(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/runs"):
        pass


# --- settings ---


def test_without_a_token_of_its_own_the_origin_has_to_be_told(store):
    client = TestClient(viewer_app(store, token=False, allow_run=[shop]), base_url=LOOPBACK)
    assert client.get("/api/runs").status_code == 200
    asked = {"json": {"arguments": {"text": "hm"}}}
    assert client.post("/api/play/mood", **asked).status_code == 403
    assert client.post("/api/play/mood", **asked, headers={"origin": "http://evil.com"}).status_code == 403
    assert client.post("/api/play/mood", **asked, headers={"origin": LOOPBACK}).status_code == 200


def test_a_new_token_is_written_to_stderr_and_asked_for(store, capsys):
    app = viewer_app(store)
    assert app.token is not None
    assert app.fragment == f"#token={app.token}"
    assert app.fragment in capsys.readouterr().err
    assert app.token != viewer_app(store).token
    client = TestClient(app, base_url=LOOPBACK)
    assert client.get("/api/runs").status_code == 401
    assert client.get("/api/runs", headers={TOKEN_HEADER: app.token}).status_code == 200


@pytest.mark.parametrize(
    "token", ["", "short", "with spaces in it, quite long", "schlüssel-schlüssel", 12345678901234567890, True]
)
def test_a_token_that_cannot_be_is_refused(store, token):
    with pytest.raises(ConfigError, match="token"):
        viewer_app(store, token=token)


@pytest.mark.parametrize("hosts", [["*"], ["*.example.com"], ["http://a.example"], [""], "a.example"], ids=str)
def test_allowed_hosts_are_names(store, hosts):
    with pytest.raises(ConfigError, match="allowed_hosts"):
        viewer_app(store, token=TOKEN, allowed_hosts=hosts)


def test_mounted_it_guards_itself_the_same(store, order_run):
    outside = Starlette(routes=[Mount("/llm", app_of(store))])
    client = TestClient(outside, base_url=LOOPBACK)
    assert client.get("/llm/api/runs").status_code == 401
    runs = client.get("/llm/api/runs", headers=HEADERS).json()["runs"]
    assert [run["trace_id"] for run in runs] == [order_run.trace_id]
    assert client.get("/llm/api/runs", headers={**HEADERS, "host": "evil.com"}).status_code == 421
    assert client.get("/llm/app.js").headers["content-type"].startswith("text/javascript")
    page = client.get("/llm")
    assert page.url.path == "/llm/", "relative addresses of its files need the slash"
    assert "content-security-policy" in page.headers


@pytest.mark.parametrize("root", ["", "/", "/ap", "/api", "/api/", "/llm", "/api/runs"])
@pytest.mark.parametrize(
    "path", ["/api/runs", "//api/runs", "/api/runs/", "/ap/api/runs", "/api/api/runs", "/llm/api/runs", "/API/runs"]
)
async def test_however_a_path_is_divided_no_data_comes_without_the_token(store, order_run, root, path):
    """Servers differ in whether the path holds what they say it is mounted under."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        await asyncio.Event().wait()

    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode()}
    scope |= {"root_path": root}
    scope |= {"query_string": b"", "headers": [(b"host", b"127.0.0.1")], "scheme": "http", "server": ("127.0.0.1", 80)}
    await app_of(store)(scope, receive, send)
    kind = dict(sent[0]["headers"])[b"content-type"]
    assert sent[0]["status"] in {401, 404} or kind.startswith(b"text/html"), "the page itself holds no data"
    assert order_run.trace_id.encode() not in b"".join(message.get("body", b"") for message in sent)


async def test_other_protocols_go_past(store):
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    await ViewerApp(app, token=None)({"type": "lifespan"}, None, None)
    assert seen == ["lifespan"]
