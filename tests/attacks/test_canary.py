"""Attack 19: a planted key is in no byte of any output, wherever it went in and whoever sends it back."""

import asyncio
import contextlib
import json
import logging
import pickle
import sys
import textwrap
from types import SimpleNamespace
from urllib.parse import parse_qs, quote

import openai
import pytest
from click.testing import CliRunner

from SimpleLLMFunc import APIKeyPool, CachedLLM, FallbackLLM, OpenAICompatible, llm_chat, llm_function
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.calls.llm import LLM
from SimpleLLMFunc.calls.task import Task
from SimpleLLMFunc.cli.main import main
from SimpleLLMFunc.config import Settings, read_provider_file
from SimpleLLMFunc.errors import CallError, ConfigError, SimpleLLMFuncError, ToolFailed
from SimpleLLMFunc.logger import setup_logging
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from SimpleLLMFunc.tools.mcp.client import tools_from_mcp
from tests.support.canary import CANARIES, Outputs, chain_of, dressed
from tests.support.functions import async_function_of, chat, drained
from tests.support.server import Answer, LoopbackServer, chunk, completion, json_answer, sse


@pytest.fixture(params=CANARIES, ids=lambda canary: canary.name)
def canary(request):
    return request.param


one_canary = pytest.mark.parametrize(
    "canary",
    [pytest.param(each, id=each.name, marks=() if each.name == "special" else pytest.mark.heavy) for each in CANARIES],
)
"""For what starts processes: the key with the oddest characters, and the others where there is time."""


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def outputs(tmp_path, canary):
    """What a test has seen; none of it may hold the canary at its end."""
    kept = Outputs(tmp_path)
    yield kept
    assert "\n".join(kept.leaks(canary)) == ""


@pytest.fixture
async def watched(outputs, monkeypatch):
    """Every log there is: of all libraries, of the event loop itself, as JSON in a file."""
    loop = asyncio.get_running_loop()
    handler = setup_logging(1, file=outputs.folder / "log.jsonl")
    monkeypatch.setattr(loop, "slow_callback_duration", 0.0)
    loop.set_debug(True)
    try:
        with outputs.watching():
            yield outputs
    finally:
        loop.set_debug(False)
        logging.getLogger("SimpleLLMFunc").removeHandler(handler)
        handler.close()
        outputs.files()


# --- what a service can do with a key ---------------------------------------------------------------------


def echoes(key):
    """How services repeat a key in what they answer: a name, and the answer."""
    raw = key.encode()
    for name, text in {**dressed(key), "json in json": json.dumps(json.dumps(key))}.items():
        said = f"Incorrect API key provided: {text}. You can find your key elsewhere."
        yield f"401 {name}", json_answer({"error": {"message": said, "code": "invalid_api_key"}}, status=401)
        yield f"500 {name}", Answer(500, {"content-type": "text/html"}, body=f"<html><body>{said}</body>".encode())
    many = f"{key} " * 200
    yield "400 many", json_answer({"error": {"message": many, "param": key, "code": key, "type": key}}, status=400)
    yield "400 text", Answer(400, {"content-type": "text/plain"}, body=many.encode())
    yield "422 list", json_answer([{"detail": [{"loc": [key], "msg": key}]}], status=422)
    header = quote(key, safe="")
    names = ("x-request-id", "retry-after", "x-ratelimit-reset-requests")
    yield "429 headers", Answer(429, dict.fromkeys(names, header), body=raw)
    yield "403 request id", json_answer({"error": {"message": "no"}}, status=403, headers={"x-request-id": header})
    yield "307", Answer(307, {"location": f"https://{'a' * 3}.example/{header}?key={header}"}, body=b"")
    if key.isalnum():
        yield "307 host", Answer(307, {"location": f"https://{key}.example/"}, body=b"")
    yield "200 html", Answer(200, {"content-type": "text/html"}, body=b"<html>" + raw * 100)
    yield "200 cut json", Answer(200, {"content-type": "application/json"}, body=b'{"id": "' + raw)
    yield "200 error", json_answer({"error": {"message": f"no: {key}", "code": 500}})
    yield "200 no choices", json_answer({"id": key, "object": key, key: key})
    yield "200 blocked", json_answer(completion(None, finish_reason="content_filter"))
    yield "no http", Answer(raw=b"HTTP/1.1 200 " + raw + b"\r\nbad header " + raw + b"\r\n\r\n")
    stream, begun = {"content-type": "text/event-stream"}, chunk({"content": "x"})
    yield "stream error", Answer(headers=stream, pieces=[sse(begun, {"error": {"message": key}})])
    yield "stream junk", Answer(headers=stream, pieces=[sse(begun, "{" + key, done=False)])


@contextlib.asynccontextmanager
async def models(way, canary, server, monkeypatch, folder):
    """One model, with the key planted where `way` says."""
    options = {"max_retries": 1, "retry_delay": 0.001}
    key = canary.key
    match way:
        case "api_key":
            yield OpenAICompatible("m", api_key=key, base_url=server.base_url, **options)
        case "pool":
            pool = APIKeyPool([key], "mine")
            yield OpenAICompatible("m", api_key_pool=pool, base_url=server.base_url, **options)
        case "file":
            path = folder / "outside" / "provider.json"
            entry = {"model_name": "m", "api_keys": [key, "${OTHER_KEY}"], "base_url": server.base_url, **options}
            monkeypatch.setenv("OTHER_KEY", key[::-1])
            path.parent.mkdir()
            path.write_text(json.dumps({"mine": [entry]}))
            yield OpenAICompatible.load_from_json_file(path)["mine"]["m"]
            path.unlink()
        case "environment":
            monkeypatch.setenv("OPENAI_API_KEY", key)
            yield OpenAICompatible("m", base_url=server.base_url, **options)
        case "query":
            address = f"{server.base_url}?api-version=1&code={quote(key, safe='')}"
            yield OpenAICompatible("m", api_key="k", base_url=address, **options)
        case "header":
            headers = {"X-Gateway-Key": key, "Helicone-Auth": f"Bearer {key}", "X-Title": "plain"}
            yield OpenAICompatible("m", base_url=server.base_url, api_params={"extra_headers": headers}, **options)
        case "organization":
            monkeypatch.setenv("OPENAI_ORG_ID", key)
            monkeypatch.setenv("OPENAI_PROJECT_ID", key)
            yield OpenAICompatible("m", base_url=server.base_url, **options)
        case "proxy":
            monkeypatch.setenv("http_proxy", f"http://user:{quote(key, safe='')}@127.0.0.1:{server.port}")
            yield OpenAICompatible("m", api_key="k", base_url="http://far.example/v1", **options)
        case "client":
            async with openai.AsyncOpenAI(
                api_key=key, base_url=server.base_url, default_headers={"X-Gateway-Key": key}
            ) as client:
                yield OpenAICompatible("m", client=client, **options)
        case "azure":
            async with openai.AsyncAzureOpenAI(api_key=key, azure_endpoint=server.base_url, api_version="1") as client:
                yield OpenAICompatible("m", client=client, **options)
        case _:
            raise AssertionError(way)


WAYS = ["api_key", "pool", "file", "environment", "query", "header", "proxy", "client", "azure"]


def everything(canary, way):
    """All keys in all ways take minutes; the ones that differ most do it in seconds."""
    few = {("prefixed", "api_key"), ("special", "query"), ("plain", "header")}
    return pytest.param(
        canary, way, id=f"{canary.name}-{way}", marks=() if (canary.name, way) in few else pytest.mark.heavy
    )


@pytest.mark.parametrize(("canary", "way"), [everything(canary, way) for canary in CANARIES for way in WAYS])
async def test_attack_19_no_service_can_make_us_show_a_key(way, canary, watched, monkeypatch):
    seen = 0
    async with LoopbackServer() as server, models(way, canary, server, monkeypatch, watched.folder) as llm:
        say, talk = async_function_of(llm), chat(llm, stream=True)
        for name, answer in echoes(canary.key):
            for ask in (lambda: say("x"), lambda: drained(say.stream("x")), lambda: drained(talk([], "x"))):
                server._script.clear()
                for _ in range(4):
                    server.answer(answer)
                try:
                    with watching(lambda trace_id, event: watched.add("event", f"{trace_id} {event!r}")):
                        await ask()
                except SimpleLLMFuncError as error:
                    seen += 1
                    watched.error(error)
                except BaseException as error:
                    raise AssertionError(name) from error
            llm._circuit.__init__(0.001)  # so many failures would keep the next call waiting
        watched.object(llm, pickled=way not in {"client", "azure"})
    assert seen > 60


# --- where a key goes in ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "canary"), [*((way, CANARIES[2]) for way in WAYS), ("organization", CANARIES[1])])
async def test_attack_19_a_call_that_goes_well_shows_no_key(way, canary, watched, monkeypatch):
    async with LoopbackServer() as server, models(way, canary, server, monkeypatch, watched.folder) as llm:
        runs = []

        def add(a: int, b: int) -> int:
            """Add."""
            runs.append((a, b))
            return a + b

        total = async_function_of(llm, int, toolkit=[add], seed=3)
        server.reply_tool_calls([("add", {"a": 1, "b": 2})])
        server.reply('{"value": 3}')
        with watching(lambda trace_id, event: watched.object(event)):
            result = await total.call("x")
        assert (result.value, runs) == (3, [(1, 2)])
        assert canary.found_in(str([request.headers for request in server.requests])) or way in {"query", "proxy"}
        if way == "query":
            assert canary.found_in(server.requests[0].path)
        preview = total.preview("x")
        watched.add("curl", preview.as_curl())
        for made in (result, preview, *result.attempts):
            watched.object(made)
        for made in (total, FallbackLLM(llm), CachedLLM(llm, watched.folder / "a.sqlite"), llm):
            watched.object(made, pickled=way not in {"client", "azure"} and made is not total)
        for made in (llm._keys, llm._limits, llm._circuit, llm._extra_headers):
            watched.object(made, pickled=False)
        if llm._keys._pool is not None:
            watched.object(llm._keys._pool)


async def test_attack_19_the_client_that_we_build_logs_no_key(canary, watched):
    async with LoopbackServer() as server:
        address = f"{server.base_url}?code={quote(canary.key, safe='')}"
        headers = {"X-Gateway-Key": canary.key}
        llm = OpenAICompatible("m", api_key=canary.key, base_url=address, api_params={"extra_headers": headers})
        async with llm.client as client:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
            watched.add("repr", repr(client))
        place, _, query = server.requests[0].path.partition("?")
        assert (place, parse_qs(query)) == ("/v1/chat/completions", {"code": [canary.key]})


def refused_ways(key):
    """How a key gets to where it must not be, or where it cannot be used: what is called, and with what."""
    far = "https://far.example/v1"
    yield lambda: OpenAICompatible("m", api_key="k", base_url=f"https://user:{quote(key, safe='')}@far.example/v1")
    yield lambda: OpenAICompatible("m", api_key="k", base_url=f"https://{quote(key, safe='')}@far.example/v1")
    yield lambda: OpenAICompatible("m", api_key="k", base_url=key)
    yield lambda: OpenAICompatible("m", api_key="k", base_url=f"ftp://far.example/{key}")
    yield lambda: OpenAICompatible("m", api_key=f"{key} {key}", base_url=far)
    yield lambda: OpenAICompatible("m", api_key=f"{key}\n{key}", base_url=far)
    yield lambda: OpenAICompatible("m", api_key=f"é{key}", base_url=far)
    yield lambda: OpenAICompatible("m", api_key=[key], base_url=far)
    yield lambda: APIKeyPool(f"{key} {key}")
    yield lambda: APIKeyPool([f"{key} {key}"])
    yield lambda: APIKeyPool(["other"]).increment_task_count(key)
    for name in ("Authorization", "api-key", "x-api-key", "Cookie", "Proxy-Authorization"):
        yield lambda name=name: OpenAICompatible("m", base_url=far, api_params={"extra_headers": {name: key}})
    for name in ("api_key", "api_base", "headers"):
        yield lambda name=name: OpenAICompatible("m", base_url=far, api_params={name: key})
        yield lambda name=name: OpenAICompatible("m", base_url=far, api_params={"extra_body": {name: key}})
    yield lambda: OpenAICompatible("m", base_url=far, client=key)


def test_attack_19_a_key_in_a_wrong_place_is_refused_and_not_shown(canary, outputs):
    with outputs.watching():
        for number, make in enumerate(refused_ways(canary.key)):
            with pytest.raises(SimpleLLMFuncError) as caught:
                pytest.fail(f"way {number} made {make()!r}")
            outputs.error(caught.value)


FILES = {
    "key outside of the list": lambda key: {"p": [{"model_name": "m", "api_keys": key}]},
    "misspelled field": lambda key: {"p": [{"model_name": "m", "api_key": key, "api_keys": [key]}]},
    "key as a field": lambda key: {"p": [{"model_name": "m", "api_keys": ["k"], key: 1}]},
    "key as a number field": lambda key: {"p": [{"model_name": "m", "api_keys": [key], "max_retries": key}]},
    "key as a provider": lambda key: {key: [{"model_name": "m"}]},
    "key with blanks": lambda key: {"p": [{"model_name": "m", "api_keys": [f"{key} {key}"]}]},
    "key among others": lambda key: {"p": [{"model_name": "m", "api_keys": [key, 3]}]},
    "a list": lambda key: [key],
    "a text": lambda key: key,
    "password in the address": lambda key: {
        "p": [{"model_name": "m", "api_keys": ["k"], "base_url": f"https://u:{key[:20]}@"}]
    },
    "unknown variable": lambda key: {"p": [{"model_name": "m", "api_keys": [f"{key}${{NO_SUCH}}"]}]},
}


@pytest.mark.parametrize("what", FILES)
def test_attack_19_a_provider_file_that_is_wrong_shows_no_key(what, canary, outputs):
    folder = outputs.folder
    path = folder / "provider.json"
    with outputs.watching():
        for text in (json.dumps(FILES[what](canary.key)), json.dumps(FILES[what](canary.key))[:-1] + "\x00"):
            path.write_text(text)
            with pytest.raises(ConfigError) as caught:
                OpenAICompatible.load_from_json_file(path)
            outputs.error(caught.value)


def test_attack_19_what_was_read_shows_no_key(canary, outputs, monkeypatch):
    path = outputs.folder / "provider.json"
    headers = {"X-Gateway-Key": canary.key}
    address = f"https://far.example/v1?key={quote(canary.key, safe='')}"
    entry = {"model_name": "m", "api_keys": [canary.key], "base_url": address, "api_params": {"extra_headers": headers}}
    path.write_text(json.dumps({"p": [entry]}))
    monkeypatch.setenv("OPENAI_API_KEY", canary.key)
    with outputs.watching():
        outputs.add("entry", repr(read_provider_file(path)))
        outputs.object(Settings.from_environment())
        outputs.object(OpenAICompatible.load_from_json_file(path)["p"]["m"])


async def test_attack_19_a_pickle_finds_its_secrets_in_the_provider_file_or_says_what_is_lost(canary, outputs):
    key = quote(canary.key, safe="")
    async with LoopbackServer() as server:
        api_params = {"extra_headers": {"X-Gateway-Key": canary.key, "X-Title": "t"}, "seed": 3}
        entry = {"model_name": "m", "base_url": f"{server.base_url}?key={key}&v=1", "api_params": api_params}
        path = outputs.folder / "provider.json"
        path.write_text(json.dumps({"p": [entry]}))
        made = OpenAICompatible.load_from_json_file(path)["p"]["m"]
        again = pickle.loads(pickle.dumps(made))
        await again.chat([{"role": "user", "content": "x"}])
        (request,) = server.requests
        assert (request.headers["x-gateway-key"], request.headers["x-title"]) == (canary.key, "t")
        assert parse_qs(request.path.partition("?")[2]) == {"key": [canary.key], "v": ["1"]}
        path.unlink()
        lost = pickle.loads(pickle.dumps(again))
        assert lost.base_url == f"{server.base_url}?key=***&v=1"
        with pytest.raises(ConfigError, match="the header X-Gateway-Key, key in base_url") as caught:
            await lost.chat([{"role": "user", "content": "x"}])
        with pytest.raises(ConfigError, match="never in a pickle"):
            _ = pickle.loads(pickle.dumps(lost)).client
        assert len(server.requests) == 1
    outputs.error(caught.value)


# --- a key in what is said --------------------------------------------------------------------------------


async def test_attack_19_a_key_that_users_models_and_tools_write_is_in_no_log_and_no_error_text(canary, watched):
    """The conversation holds it, for that is what they wrote; what we print does not."""
    key = canary.key

    def look(where: str) -> str:
        """Look."""
        return f"found {key}"

    def fail(where: str) -> str:
        """Fail."""
        try:
            raise OSError(f"postgres://u:{key}@h/db")
        except OSError as error:
            raise RuntimeError(f"no {key}") from error

    calls = [
        ("look", {"where": key}),
        ("fail", {"where": key}),
        (f"tool_{key}", {"a": key}),
        ("look", json.dumps({"x": key})),
        ("look", f"[{key}"),
    ]
    async with LoopbackServer() as server:
        llm = OpenAICompatible("m", api_key=key, base_url=server.base_url, max_retries=0)

        @llm_function(llm, toolkit=[look, fail], max_reasks=1)
        async def count(text: str, api_key: str) -> int:
            """Count {text}."""

        @llm_chat(llm, stream=True)
        async def chat(history: list, message: str):
            """Talk to {text}."""
            yield

        server.reply_tool_calls(calls, text=f"I use {key}")
        server.reply(f"it is {key}")
        server.reply(f"it is still {key}")
        with pytest.raises(SimpleLLMFuncError) as caught:
            await count(key, key, _template_params={"text": key})
        watched.error(caught.value, holds_content=True)
        # What a tool raised went to the model without it.
        failed = [message["content"] for message in caught.value.messages if "failed" in str(message.get("content"))]
        assert failed
        assert not any(map(canary.found_in, failed))

        pieces = [chunk({"content": each}) for each in f"my key is {key}, you know"]
        server.reply_sse(sse(*pieces, {"error": {"message": key}}))
        with pytest.raises(SimpleLLMFuncError) as caught:
            await drained(chat([{"role": "developer", "content": key}, {"role": key}, key], key))
        watched.error(caught.value, holds_content=True)
        assert key in caught.value.partial  # what the model wrote is not ours to change

        server.reply(None, finish_reason="content_filter")
        refusal = {"role": "assistant", "refusal": f"no {key}"}
        server.reply_json({"choices": [{"index": 0, "message": refusal, "finish_reason": "stop"}]})
        server.reply_tool_calls([("look", {"where": key})])
        for _ in range(3):
            with pytest.raises(SimpleLLMFuncError) as caught:
                await count.with_options(max_tool_calls=0)("x", "y")
            watched.error(caught.value, holds_content=True)
    for line in watched.kept:
        assert "could not be rendered" not in line[1]


async def test_attack_19_a_tool_that_ends_the_run_shows_no_key(canary, watched):
    key = canary.key
    OpenAICompatible("m", api_key=key, base_url="http://127.0.0.1:9/v1")

    def chained():
        try:
            raise OSError(f"with {key}")
        except OSError:
            raise RuntimeError("plain")  # noqa: B904 - a context, and no cause

    def noted():
        error = RuntimeError("plain")
        error.add_note(f"with {key}")
        raise error

    def grouped():
        raise ExceptionGroup("plain", [ValueError("plain"), ExceptionGroup("inner", [OSError(key)])])

    async def attribute():
        error = RuntimeError("plain")
        error.request = {"Authorization": key}
        raise error

    for tool in (chained, noted, grouped, attribute):
        llm = ScriptedLLM(calling((tool.__name__, {})), "ok", repeat=True)

        run = async_function_of(llm, toolkit=[tool], on_tool_error="raise")
        with pytest.raises(ToolFailed) as caught:
            await run("x")
        watched.error(caught.value)
        assert type(caught.value.__cause__).__name__ == "RedactedCause"
        again = ScriptedLLM(calling((tool.__name__, {})), "ok")
        assert await run.with_options(on_tool_error="report", llm_interface=again)("x") == "ok"


@pytest.mark.parametrize("canary", CANARIES[:1])  # sk-…
async def test_attack_19_a_key_no_one_told_us_about_is_known_by_its_looks(canary, watched):
    key = canary.key

    def fail():
        raise RuntimeError(f"postgres://u:{key[3:]}@h/db refused Bearer {key} api_key={key[3:]}")

    llm = ScriptedLLM(calling(("fail", {})), "ok")

    @llm_function(llm, toolkit=[fail])
    async def run(text: str, password: str) -> str:
        """Run."""

    result = await run.call(f"my key is {key}", key[3:])
    (failed,) = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert not canary.found_in(failed)
    assert "RuntimeError" in failed


async def test_attack_19_no_call_of_a_scheduler_shows_a_key(canary, watched):
    async with LoopbackServer() as server:
        llm = OpenAICompatible("m", api_key=canary.key, base_url=server.base_url, max_retries=0)
        on = SimpleNamespace(task=Task("question"), step=None, llm=llm)
        seen = 0
        for name, answer in echoes(canary.key):
            server._script.clear()
            server.answer(answer)
            call = await LLM.instance(on, None)
            try:
                watched.add(f"chunks {name}", repr([each async for each in call.exec(on, call.input)]))
            except CallError as error:
                watched.error(error)
                seen += 1
            llm._circuit.__init__(0.001)
    assert seen > 20


# --- files ------------------------------------------------------------------------------------------------


async def test_attack_19_no_cache_holds_a_key(canary, watched, monkeypatch):
    key = canary.key
    monkeypatch.setenv("OPENAI_API_KEY", key)
    async with LoopbackServer() as server:
        for number, address in enumerate((server.base_url, f"{server.base_url}?key={quote(key, safe='')}")):
            llm = CachedLLM(OpenAICompatible("m", base_url=address), watched.folder / f"{number}.sqlite")
            for text in ("plain", *(f"it is {dressed(key)[how]}" for how in ("plain", "base64", "html"))):
                for stream in (False, True):
                    server.reply(text)
                    messages = [{"role": "user", "content": f"{text} {stream}"}]
                    await (drained(llm.chat_stream(messages)) if stream else llm.chat(messages))
            watched.files()  # while it is open: the log of SQLite too
            watched.object(llm)
            assert (await llm.chat([{"role": "user", "content": "plain False"}])).cached
            llm.close()
    assert len([path for path in watched.folder.iterdir() if path.suffix == ".sqlite"]) == 2


# --- the command line -------------------------------------------------------------------------------------


@one_canary
async def test_attack_19_the_doctor_shows_no_key(canary, outputs, monkeypatch):
    key, url = canary.key, quote(canary.key, safe="")
    path = outputs.folder / "provider.json"
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL_DIR", str(outputs.folder))
    async with LoopbackServer(handler=lambda request: Answer(401, body=key.encode())) as server:
        entry = {"model_name": "m", "api_keys": [key], "base_url": f"{server.base_url}?key={url}"}
        path.write_text(json.dumps({"p": [entry]}))
        for model in (
            "openai:m", f"openai:{key}", key, f"{path}:p/m", f"{path}:p/{key}", f"{key}.json:p/m",
            *([] if "/" in key else [f"{path}:{key}/m"]),
        ):  # fmt: skip
            addresses = [
                f"{server.base_url}?key={url}",
                server.base_url,
                f"https://u:{url}@x.example/v1",
                "http://127.0.0.1:9/v1?code=" + url,
            ]
            for address in addresses if model == "openai:m" else addresses[:1]:
                environ = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": address, "SIMPLELLMFUNC_MODEL": model}
                for name, value in environ.items():
                    monkeypatch.setenv(name, value)
                for arguments in (["doctor"], ["doctor", "--online"]):
                    result = await asyncio.to_thread(CliRunner().invoke, main, arguments)
                    outputs.add(f"{arguments} {result.exit_code}", result.output)
                    if result.exception is not None:
                        outputs.add("exception", f"{result.exception!r}")


# --- MCP --------------------------------------------------------------------------------------------------

MCP_SERVER = """
import json, os, sys
key = os.environ["SERVICE_TOKEN"]
print(f"starting with {key} {sys.argv}", *[key] * 300, file=sys.stderr, flush=True)
if "--die" in sys.argv:
    sys.exit(3)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    answer = {"error": {"code": -32602, "message": "no: " + key}}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        answer = {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}
    elif message["method"] == "tools/list":
        schema = {"type": "object", "properties": {}}
        answer = {"result": {"tools": [{"name": name, "inputSchema": schema} for name in ("refuse", "fail")]}}
    elif message["params"]["name"] == "fail":
        answer = {"result": {"content": [{"type": "text", "text": "failed with " + key}], "isError": True}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@one_canary
async def test_attack_19_no_mcp_server_can_make_us_show_a_key(canary, outputs):
    key = canary.key
    script = outputs.folder / "server.py"
    script.write_text(textwrap.dedent(MCP_SERVER))
    command = [sys.executable, str(script), f"--token={key}"]
    with outputs.watching():
        server = tools_from_mcp(command=command, env={"SERVICE_TOKEN": key})
        outputs.object(server, pickled=False)
        async with server as tools:
            for tool in tools:
                with pytest.raises(ToolFailed) as caught:
                    await tool()
                outputs.error(caught.value)
                outputs.object(tool, pickled=False)
                run = async_function_of(ScriptedLLM(calling((tool.name, {})), "ok"), toolkit=[tool])
                outputs.add("messages", repr((await run.call("x")).messages))
        with pytest.raises(SimpleLLMFuncError) as caught:
            async with tools_from_mcp(command=[*command, "--die"], env={"SERVICE_TOKEN": key}):
                pass
        outputs.error(caught.value)

        async def refuse(request):
            said = f"{request.path} {request.headers}"
            headers = {"content-type": "text/plain", "www-authenticate": f"Bearer error={quote(key)}"}
            return Answer(401, headers, body=said.encode())

        async with LoopbackServer(handler=refuse) as http:
            address = f"http://user:{quote(key, safe='')}@127.0.0.1:{http.port}/mcp?code={quote(key, safe='')}"
            server = tools_from_mcp(
                url=address, headers={"X-Tenant": key, "Authorization": f"Bearer {key}"}, start_timeout=10
            )
            outputs.object(server, pickled=False)
            with pytest.raises(SimpleLLMFuncError) as caught:
                async with server:
                    pass
            outputs.error(caught.value)
            assert http.requests


# --- the tests themselves ---------------------------------------------------------------------------------


def test_a_leak_would_be_found(canary, tmp_path):
    """What is searched finds the key wherever it might be; else all of the above would pass for nothing."""
    key, outputs = canary.key, Outputs(tmp_path)
    texts = {
        **dressed(key),
        "json in json": json.dumps(json.dumps(key)),
        "half": key[: len(key) // 2],
        "within": f"xx{key}xx".encode(),
    }
    for name, text in texts.items():
        outputs.add(name, text)
    assert {leak.partition(":")[0] for leak in outputs.leaks(canary)} == set(texts)
    again = Outputs(outputs.folder)
    try:
        try:
            raise ValueError(key)
        except ValueError:
            raise RuntimeError("plain") from None
    except RuntimeError as error:
        again.error(error)
        assert len(list(chain_of(error))) == 2
    assert [leak.partition(":")[0] for leak in again.leaks(canary)] == ["error ValueError"]
    outputs.add("elsewhere", "nothing of the kind, sk-0123456789")
    assert not canary.found_in("nothing of the kind, sk-0123456789")
