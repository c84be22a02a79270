"""Decorated functions over HTTP: a real server on loopback, a real client."""

import asyncio
import contextlib
import html
import json
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal
from unittest.mock import Mock

import aiohttp
import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import OpenAICompatible, RateLimited, ResponseParseError, llm_function
from SimpleLLMFunc.errors import (
    AuthenticationError,
    BudgetExceeded,
    ConfigError,
    ConnectionFailed,
    ContentBlocked,
    ContextTooLong,
    OutcomeUnknown,
    OutputTruncated,
    ProviderError,
    RunPaused,
    ServerUnavailable,
    ToolFailed,
)
from SimpleLLMFunc.runtime import address_of, listening, serve_until_cancelled
from SimpleLLMFunc.serve.http import fastapi_errors, http_app, serve_functions
from SimpleLLMFunc.serve.http_callers import CallerEntry, Callers, hash_of
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.tools.mcp.client import tools_from_mcp
from SimpleLLMFunc.type.markers import Confident
from tests.support.canary import CANARIES, Outputs
from tests.support.command_line import begun, typed
from tests.support.server import Answer, LoopbackServer
from tests.support.waiting import sell, waiting


class Grade(BaseModel):
    points: int
    why: str = ""


def graded(llm):
    @llm_function(llm_interface=llm)
    async def grade(
        essay: str, level: Literal["easy", "hard"] = "easy", times: Annotated[int, Field(ge=1)] = 1
    ) -> Grade:
        """Grade the essay."""

    return grade


def translated(llm):
    @llm_function(llm_interface=llm)
    def translate(text: str) -> str:
        """Translate."""

    return translate


@contextlib.asynccontextmanager
async def serving(*functions, **options):
    """A session whose requests go to a server with these functions."""
    found = asyncio.get_running_loop().create_future()
    named = {function.__name__: function for function in functions}
    server = asyncio.create_task(serve_functions(named, port=0, announce=found.set_result, **options))
    await asyncio.wait({server, found}, return_when=asyncio.FIRST_COMPLETED)
    if server.done():
        server.result()
    try:
        async with aiohttp.ClientSession(found.result()) as session:
            yield session
    finally:
        server.cancel()
        await asyncio.wait({server})


async def posted(session, name, arguments, **options):
    async with session.post(f"/functions/{name}", json=arguments, **options) as response:
        return response.status, json.loads(await response.read()), response.headers


async def streamed(session, name, arguments, **options):
    async with session.post(f"/functions/{name}/stream", json=arguments, **options) as response:
        text = (await response.read()).decode()
        if response.content_type != "text/event-stream":
            return response.status, json.loads(text)
    events = [block.split("\n") for block in text.split("\n\n") if block and not block.startswith(":")]
    return response.status, [
        (first.removeprefix("event: "), json.loads(second.removeprefix("data: "))) for first, second in events
    ]


# --- what comes back ------------------------------------------------------------------------------------------


async def test_a_whole_answer():
    llm = ScriptedLLM('{"points": 4, "why": "Fine: 好"}')
    async with serving(graded(llm)) as session:
        status, body, headers = await posted(session, "grade", {"essay": "On rain", "level": "hard"})
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert body["value"] == {"points": 4, "why": "Fine: 好"}
    assert body["trace_id"].startswith("grade_")
    assert body["usage"]["input_tokens"] > 0
    assert body["cost"] is None
    said = llm.requests[0][-1]["content"]
    assert "On rain" in said
    assert "hard" in said


async def test_a_stream_of_text():
    async with serving(translated(ScriptedLLM("Bonjour à tous", chunk_size=5))) as session:
        status, events = await streamed(session, "translate", {"text": "hello"})
    assert status == 200
    assert [data["text"] for name, data in events if name == "text"] == ["Bonjo", "ur à ", "tous"]
    name, data = events[-1]
    assert name == "result"
    assert data["value"] == "Bonjour à tous"
    assert data["trace_id"].startswith("translate_")
    assert data["usage"]["output_tokens"] > 0


async def test_a_stream_of_growing_values_and_of_items():
    @llm_function(llm_interface=ScriptedLLM('{"value": [{"points": 1}, {"points": 2, "why": "x"}]}', chunk_size=3))
    async def several(topic: str) -> AsyncIterator[Grade]:
        """List."""
        yield

    async with serving(graded(ScriptedLLM('{"points": 4, "why": "Fine"}', chunk_size=6)), several) as session:
        _, events = await streamed(session, "grade", {"essay": "x"})
        values = [data["value"] for name, data in events if name == "value"]
        assert len(values) > 1
        assert values[-1] == events[-1][1]["value"] == {"points": 4, "why": "Fine"}
        _, events = await streamed(session, "several", {"topic": "x"})
        items = [{"points": 1, "why": ""}, {"points": 2, "why": "x"}]
        assert [data["item"] for name, data in events if name == "item"] == items
        assert events[-1][1]["value"] == items


async def test_votes_and_nothing():
    @llm_function(llm_interface=ScriptedLLM("3", "3", "4", repeat=True), votes=3)
    async def vote(text: str) -> Confident[int]:
        """Vote."""

    @llm_function(llm_interface=ScriptedLLM("whatever"))
    async def nothing(text: str) -> None:
        """Do it."""

    async with serving(vote, nothing) as session:
        _, body, _ = await posted(session, "vote", {"text": "x"})
        assert body["value"] == 3
        assert body["agreement"][""] == pytest.approx(2 / 3)
        assert body["abstained"] is False
        *_, (_, data) = (await streamed(session, "vote", {"text": "x"}))[1]
        assert (data["usage"], data["trace_id"].count("_")) == (body["usage"], 1)
        assert (await posted(session, "nothing", {"text": "x"}))[1]["value"] is None


async def test_health_and_document_and_no_door_without_a_journal():
    async with serving(graded(ScriptedLLM()), title="Shop") as session:
        await waited(session, "GET", status=404)
        async with session.get("/health") as response:
            assert await response.json() == {"status": "ok"}
        async with session.get("/openapi.json") as response:
            document = await response.json()
    assert document["info"]["title"] == "Shop"
    assert "/functions/grade" in document["paths"]


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "status", "told"),
    [
        ("{", "application/json", 400, "no JSON"), ("NaN", "application/json", 400, "NaN"),
        ('{"essay": NaN}', "application/json", 400, "NaN"), (b"\xff\xfe", "application/json", 400, "no JSON"),
        ("[" * 100_000, "application/json", 400, "no JSON"), ("[]", "application/json", 422, "JSON object"),
        ("null", "application/json", 422, "JSON object"), ("{}", "application/json", 422, "expected also 'essay'"),
        ('{"essay": 3}', "application/json", 422, "essay: expected string, got 3"),
        ('{"essay": "x", "times": "2"}', "application/json", 422, "times: expected"),
        ('{"essay": "x", "times": 0}', "application/json", 422, "times: expected"),
        ('{"essay": "x", "other": 1}', "application/json", 422, "other"),
        ('{"essay": "x", "_template_params": {}}', "application/json", 422, "_template_params"),
        ('{"essay": "x"}', "text/plain", 415, "text/plain"), ('{"essay": "x"}', "", 415, "application/json"),
        ('{"essay": "' + "x" * 2000 + '"}', "application/json", 413, "1000 bytes"),
    ],
)  # fmt: skip
async def test_bodies_that_do_not_fit(body, kind, status, told):
    limit = 200_000 if len(body) > 50_000 else 1000
    llm = ScriptedLLM()
    async with serving(graded(llm), max_body=limit) as session:
        for path in ("/functions/grade", "/functions/grade/stream"):
            async with session.post(path, data=body, headers={"content-type": kind}) as response:
                assert response.content_type == "application/problem+json"
                problem = json.loads(await response.read())
                assert response.status == problem["status"] == status
                assert told in problem["detail"]
    assert llm.calls == []


async def test_a_body_without_a_length_is_bounded_too():
    async def endless():
        for _ in range(1000):
            yield b"x" * 1000

    async with serving(graded(ScriptedLLM()), max_body=5000) as session:
        with contextlib.suppress(aiohttp.ClientError):  # it may be told before it has sent all
            async with session.post(
                "/functions/grade", data=endless(), headers={"content-type": "application/json"}
            ) as response:
                assert response.status == 413
        assert (await posted(session, "grade", {}))[0] == 422  # the server goes on


async def test_other_paths_and_methods():
    async with serving(graded(ScriptedLLM())) as session:
        for method, path, status in (
            ("GET", "/functions/grade", 405),
            ("POST", "/functions/none", 404),
            ("GET", "/x", 404),
        ):
            async with session.request(method, path, json={}) as response:
                assert response.status == status
                assert response.content_type == "application/problem+json"
                if status == 405:
                    assert "POST" in response.headers["allow"]


@pytest.mark.parametrize(
    "headers", [{"Host": "attacker.example.com"}, {"Origin": "https://attacker.example.com"}, {"Origin": "null"}]
)
async def test_without_keys_web_pages_may_not_call(headers):
    llm = ScriptedLLM()
    async with serving(graded(llm)) as session:
        status, problem, _ = await posted(session, "grade", {"essay": "x"}, headers=headers)
        assert status == 403
        async with session.get("/openapi.json", headers=headers) as response:
            assert response.status == 403
    assert llm.calls == []


async def raw(session, sent: bytes) -> bytes:
    """What a server says to these bytes until it closes the connection."""
    reader, writer = await asyncio.open_connection(session._base_url.host, session._base_url.port)
    writer.write(sent)
    async with asyncio.timeout(20):
        said = await reader.read()
    writer.close()
    return said


@pytest.mark.parametrize("headers", [b"Host: [", b"Host: [x]", b"Host: 127.0.0.1\r\nOrigin: http://["])
async def test_a_host_or_origin_that_is_no_address_is_a_bad_request(headers):
    async with serving(graded(ScriptedLLM())) as session:
        said = await raw(session, b"GET /openapi.json HTTP/1.1\r\n" + headers + b"\r\nConnection: close\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in said
    assert b"no address" in said


async def test_nothing_to_offer_and_without_keys_no_other_machine():
    with pytest.raises(ConfigError, match="no function"):
        http_app(json)
    graded_one = graded(ScriptedLLM("x"))
    with pytest.raises(ConfigError, match="--new-key"):
        await serve_functions({"grade": graded_one}, host="0.0.0.0", port=0)
    for wrong in ({}, {"dumps": json.dumps}, [graded_one], graded_one):
        with pytest.raises(ConfigError, match="a module, or functions under @llm_function and @llm_chat by name"):
            http_app(wrong)


# --- who may call ---------------------------------------------------------------------------------------------


def bearer(key="alice-has-a-long-key"):
    return {"headers": {"Authorization": f"Bearer {key}"}}


def callers(**limits):
    return Callers([CallerEntry(name="alice", sha256=hash_of("alice-has-a-long-key"), **limits)])


async def test_keys():
    llm = ScriptedLLM('{"points": 1}', repeat=True)
    async with serving(graded(llm), callers=callers()) as session:
        for wrong in ({}, bearer("bobs-key"), {"headers": {"Authorization": "alice-has-a-long-key"}}, bearer("")):
            status, problem, headers = await posted(session, "grade", {"essay": "x"}, **wrong)
            assert status == 401
            assert headers["www-authenticate"] == "Bearer"
            assert problem["detail"] == "Send your key as a bearer token, in the header Authorization."
        async with session.get("/openapi.json") as response:
            assert response.status == 401
        async with session.get("/health") as response:
            assert response.status == 200
        assert llm.calls == []
        assert (await posted(session, "grade", {"essay": "x"}, **bearer()))[0] == 200
        assert (await streamed(session, "grade", {"essay": "x"}, **bearer()))[0] == 200


async def test_a_budget_over_several_calls():
    llm = ScriptedLLM('{"points": 1}', repeat=True)
    async with serving(graded(llm), callers=callers(tokens_per_day=400)) as session:
        answers = [await posted(session, "grade", {"essay": "x"}, **bearer()) for _ in range(8)]
        status, body = await streamed(session, "grade", {"essay": "x"}, **bearer())
    assert answers[0][0] == 200
    assert answers[-1][0] == status == 429
    assert answers[-1][1]["type"].endswith("BudgetExceeded")
    assert len(llm.calls) < 8


# --- what goes wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RateLimited("m", retry_after=7.2), 503), (ServerUnavailable("m"), 503), (ConnectionFailed("m"), 503),
        (AuthenticationError("m", status=401, body=CANARIES[0].key), 502), (ContextTooLong("m"), 413),
        (ContentBlocked("no"), 422), (OutputTruncated(), 502), (RunPaused("order-17"), 409), (ResponseParseError("no", Grade, []), 502),
        (OutcomeUnknown("order-17", "c1", "refund", {}), 409), (ProviderError("x"), 502),
        (BudgetExceeded("usd", limit=1, spent=1), 429),
        (ConfigError(f"the file /home/me/keys.json, {CANARIES[0].key}"), 500),
        (ZeroDivisionError(CANARIES[0].key), 500),
    ],
)  # fmt: skip
async def test_errors_of_a_run(error, status, tmp_path):
    outputs = Outputs(tmp_path)

    def fail(request):
        raise error

    with outputs.watching():
        async with serving(graded(ScriptedLLM(fail, fail))) as session:
            found, problem, headers = await posted(session, "grade", {"essay": "x"})
            assert (found, problem["status"]) == (status, status)
            assert (await streamed(session, "grade", {"essay": "x"}))[0] == status
    outputs.add("body", json.dumps(problem))
    assert outputs.leaks(CANARIES[0]) == []
    if status == 500:
        assert "the server's log says more" in problem["detail"]
        assert "/home/me" not in problem["detail"]
        logged = [text for where, text in outputs.kept if where.startswith("log")]
        assert any("ConfigError" in text or "ZeroDivision" in text for text in logged)
    else:
        assert problem["type"] == f"urn:simplellmfunc:error:{type(error).__name__}"
        assert problem["trace_id"].startswith("grade_")
    if isinstance(error, RateLimited):
        assert headers["retry-after"] == "8"


async def test_an_error_amid_a_stream_is_its_last_event():
    llm = ScriptedLLM(["Bon", "jour", ServerUnavailable("m", status=503)])
    async with serving(translated(llm)) as session:
        status, events = await streamed(session, "translate", {"text": "x"})
    assert status == 200
    assert [name for name, _ in events] == ["text", "text", "error"]
    assert events[-1][1]["status"] == 503


async def test_a_deadline():
    async with LoopbackServer() as slow:
        slow.answer(Answer(hold=asyncio.Event(), hold_after=0, pieces=[b""]))
        slow.answer(Answer(hold=asyncio.Event(), hold_after=0, pieces=[b""]))
        llm = OpenAICompatible("m", base_url=slow.base_url, max_retries=0)
        async with serving(graded(llm), deadline=0.3) as session:
            assert (await posted(session, "grade", {"essay": "x"}))[0] == 504
            assert (await streamed(session, "grade", {"essay": "x"}))[0] == 504


@pytest.mark.parametrize("path", ["/functions/grade", "/functions/grade/stream"])
async def test_a_caller_who_leaves_ends_the_run(path):
    ended = asyncio.Event()

    async def never(request):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    llm = ScriptedLLM(never)
    async with serving(graded(llm)) as session:
        asking = asyncio.create_task(session.post(path, json={"essay": "x"}))
        while not llm.calls:
            await asyncio.sleep(0.01)
        asking.cancel()
        async with asyncio.timeout(10):
            await ended.wait()


# --- what waits for an answer ---------------------------------------------------------------------------------


async def waited(session, method, *, status=200, **options):
    async with session.request(method, "/waiting", **options) as response:
        assert response.status == status, await response.text()
        return json.loads(await response.read())


async def test_what_waits_is_answered_by_those_who_have_a_key(tmp_path):
    journal = tmp_path / "orders.sqlite"
    async with serving(graded(ScriptedLLM()), callers=callers(), journal=journal) as session:
        for method in ("GET", "POST"):
            await waited(session, method, status=401)
        assert await waited(session, "GET", **bearer()) == {"waiting": []}
        await waited(session, "POST", status=409, **bearer(), json={"answer": True})
        journal.write_bytes(b"no journal")
        assert "cannot be used" in (await waited(session, "GET", status=500, **bearer()))["detail"]
        journal.unlink()
        asks, lost = waiting(journal)
        assert await waited(session, "GET", **bearer()) == {"waiting": [asks, lost]}
        for each, said in ((asks, {"answer": True}), (lost, {"result": None})):
            body = {"key": each["key"], "call_id": each["call_id"]}
            assert "give one of" in (await waited(session, "POST", status=409, **bearer(), json=body))["detail"]
            assert await waited(session, "POST", **bearer(), json={**body, **said}) == {"answered": True}
            await waited(session, "POST", status=409, **bearer(), json={**body, **said})
        json_kind = {"headers": {**bearer()["headers"], "content-type": "application/json"}}
        await waited(session, "POST", status=400, **json_kind, data=b"{")
        await waited(session, "POST", status=422, **bearer(), json=[])
        async with session.get("/openapi.json", **bearer()) as response:
            assert set((await response.json())["paths"]["/waiting"]) == {"get", "post"}
    assert sell(journal, "asks") == "paid 3"
    assert sell(journal, "lost", confirm=False) == "null"


# --- as MCP tools ---------------------------------------------------------------------------------------------


@pytest.mark.heavy
async def test_the_same_functions_as_mcp_tools_for_the_same_callers():
    pytest.importorskip("mcp")
    llm = ScriptedLLM('{"points": 1}', repeat=True)
    async with serving(graded(llm), callers=callers(tokens_per_day=400), mcp=True) as session:
        url = f"{str(session._base_url).rstrip(chr(47))}/mcp"
        async with session.post("/mcp", json={}) as response:
            assert response.status == 401
        async with tools_from_mcp(url=url, **bearer()) as tools:
            assert [tool.name for tool in tools] == ["grade"]
            assert "1" in str(await tools[0](essay="x"))
            with pytest.raises(ToolFailed, match="budget"):  # what its calls of today have taken counts here too
                for _ in range(8):
                    await tools[0](essay="x")
    assert 1 <= len(llm.calls) < 8


@pytest.mark.heavy
async def test_a_body_for_the_mcp_tools_that_does_not_say_its_length_is_bounded_too():
    pytest.importorskip("mcp")
    sent = 0

    async def endless():
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b" " * 50_000

    accepted = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    headers = {**bearer()["headers"], **accepted}
    async with serving(graded(ScriptedLLM()), callers=callers(), mcp=True, max_body=100_000) as session:
        async with session.post("/mcp", data=endless(), headers=headers) as response:
            assert response.status == 413
    assert sent < 100


# --- the command ----------------------------------------------------------------------------------------------

SHOP = '''
from collections.abc import Iterator
from typing import Annotated, Literal
from pydantic import BaseModel, Field, field_serializer
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import SchemaLLM

llm = SchemaLLM(1)


class Line(BaseModel):
    sku: Annotated[str, Field(min_length=2, max_length=5)]
    count: Annotated[int, Field(ge=0, le=10)] = 1


class Grade(BaseModel):
    points: int
    lines: list[Line] = []


@llm_function(llm_interface=llm)
async def grade(essay: str, level: Literal["easy", "hard"] = "easy", lines: list[Line] | None = None) -> Grade:
    """Grade the essay.

    Be fair.
    """


@llm_function(llm_interface=llm)
def summarise(text: str, words: Annotated[int, Field(gt=0, le=500)] = 50) -> str:
    """Summarise."""


@llm_function(llm_interface=llm)
def lines(topic: str) -> Iterator[Line]:
    """List."""
    yield
'''


@contextlib.contextmanager
def started(folder, *options, shop=SHOP, ends=signal.SIGINT):
    """The address of a server in another process."""
    (folder / "shop.py").write_text(shop)
    server = begun("serve", "shop", "--port", "0", *options, cwd=folder)
    try:
        line = server.stdout.readline()
        assert "Offering grade, summarise, lines" in line, line + server.stderr.read()
        yield line.partition(" at ")[2].split()[0]
    finally:
        server.send_signal(ends)
        _, errors = server.communicate(timeout=20)
        assert "Traceback" not in errors
        assert server.returncode == 130, errors


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("with_key", [False, True])
def test_schemathesis_finds_nothing(tmp_path, with_key):
    pytest.importorskip("schemathesis")
    options, headers = [], []
    if with_key:
        (tmp_path / "callers.json").write_text(
            json.dumps([{"name": "alice", "sha256": hash_of("alice-has-a-long-key")}])
        )
        options, headers = ["--callers", "callers.json"], ["--header", "Authorization: Bearer alice-has-a-long-key"]
    with started(tmp_path, *options) as address:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("schemathesis")), "run", f"{address}/openapi.json", "--checks", "all",
             "--max-examples", "20", "--seed", "7", "--no-color", *headers],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=250,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
    assert "No issues found" in done.stdout, done.stdout[-2000:]


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    key, line = (
        text for text in typed("serve", "--new-key", "alice").stdout.splitlines() if text[:4] in {"slf_", '{"na'}
    )
    (tmp_path / "callers.json").write_text(f"[{line}]")
    assert Callers.load(tmp_path / "callers.json").find(key).name == "alice"
    assert "a name has 1 to 100" in typed("serve", "--new-key", "", code=1).output
    for words, code in (("", 2), ("no_such_module", 1), ("--new-key=a/b", 1), ("shop --callers none.json", 1)):
        typed("serve", *words.split(), code=code)


def test_the_command_serves(tmp_path):
    with started(tmp_path) as address:
        asked = urllib.request.Request(
            f"{address}/functions/summarise", b'{"text": "Rain."}', {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert isinstance(json.load(answer)["value"], str)


# --- the page -------------------------------------------------------------------------------------------------


async def test_the_page_says_what_is_offered_and_how_it_is_called():
    llm = ScriptedLLM('{"points": 4}')
    async with serving(graded(llm), title="<School>") as session, session.get("/") as response:
        shown, address = await response.text(), str(response.url)
        assert (response.status, response.content_type) == (200, "text/html")
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "&lt;School&gt;" in shown
        for part in ("1 function over HTTP", "Grade the essay.", "essay", '"easy" if not given'):
            assert part in html.unescape(shown)
        assert "<script" not in shown
        # The command on the page works as it stands.
        command = shlex.split(html.unescape(re.search("<pre>(.*?)</pre>", shown, re.DOTALL)[1]).replace("\\\n", ""))
        assert command[:2] == ["curl", f"{address}functions/grade"]
        status, body, _ = await posted(session, "grade", json.loads(command[-1]))
        assert (status, body["value"]["points"]) == (200, 4)


async def test_the_page_shows_what_is_offered_to_callers_alone():
    async with serving(graded(ScriptedLLM()), callers=callers()) as session:
        async with session.get("/") as response:
            shown = await response.text()
            assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
            assert "Authorization: Bearer KEY" in shown
            assert "grade" not in shown
        async with session.get("/", **bearer()) as response:
            assert response.status == 200
            assert "Grade the essay." in await response.text()
        async with session.get("/", headers={"Host": "elsewhere.example"}) as response:
            assert response.status == 401


async def test_an_application_of_ones_own_answers_errors_as_problems(caplog):
    from starlette.applications import Starlette
    from starlette.routing import Route

    errors = iter(
        [RateLimited("m", retry_after=2.5), ContentBlocked("no"), ConfigError("the key hunter2"), KeyError("x")]
    )

    async def fails(_):
        raise next(errors)

    app = Starlette(routes=[Route("/", fails)])
    fastapi_errors(app)
    seen = []
    with listening("127.0.0.1", 0) as listener:
        server = asyncio.create_task(serve_until_cancelled(app, listener))
        async with aiohttp.ClientSession(address_of("127.0.0.1", listener)) as session:
            for _ in range(4):
                async with session.get("/") as reply:
                    body = await reply.text()
                    seen.append((reply.status, reply.headers["content-type"], reply.headers.get("retry-after")))
                    assert "hunter2" not in body
        server.cancel()
        await asyncio.wait({server})
    problem = "application/problem+json"
    assert seen == [
        (503, problem, "3"), (422, problem, None), (500, problem, None), (500, "text/plain; charset=utf-8", None),
    ]  # fmt: skip
    assert "hunter2" in caplog.text  # what is the server's own business


@pytest.mark.parametrize("asks", [posted, streamed])
async def test_a_call_that_the_end_of_the_server_cuts_off_is_told_so(asks):
    asked = asyncio.Event()

    async def never(request):
        asked.set()
        await asyncio.sleep(60)

    app = http_app({"translate": translated(ScriptedLLM(Mock(side_effect=asyncio.CancelledError), never))})
    with listening("127.0.0.1", 0) as listener:
        server = asyncio.create_task(serve_until_cancelled(app, listener, grace=1))
        async with aiohttp.ClientSession(address_of("127.0.0.1", listener)) as session:
            own = await asks(session, "translate", {"text": "rain"})
            calling = asyncio.create_task(asks(session, "translate", {"text": "rain"}))
            await asked.wait()
            server.cancel()
            told = [own, await calling]
        await asyncio.wait({server})
    for (status, problem, *_), said in zip(told, ("it was cancelled", "Ask again"), strict=True):
        assert (status, problem["type"]) == (503, "urn:simplellmfunc:error:RunAborted")
        assert problem["detail"].endswith(said)


SLOW = '''
import pathlib, time
from SimpleLLMFunc.testing import ScriptedLLM

def late(request):
    pathlib.Path("asked").touch()
    time.sleep(2)
    return "there"

@llm_function(llm_interface=ScriptedLLM(late))
def slow(text: str) -> str:
    """Wait."""
'''


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for one process")
def test_calls_under_way_are_answered_before_a_server_ends(tmp_path):
    with ThreadPoolExecutor() as pool, started(tmp_path, shop=SHOP + SLOW, ends=signal.SIGTERM) as address:
        asked = urllib.request.Request(
            f"{address}/functions/slow", b'{"text": ""}', {"Content-Type": "application/json"}
        )
        answer = pool.submit(urllib.request.urlopen, asked, timeout=30)
        while not (tmp_path / "asked").exists():
            time.sleep(0.05)
    assert json.load(answer.result())["value"] == "there"
