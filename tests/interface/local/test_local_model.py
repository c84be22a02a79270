"""LocalModel and its server. What loads the real model is marked; the rest runs without xllamacpp."""

import asyncio
import json
import os
import pickle
import re
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import BadRequest, ConfigError, OpenAICompatible, budget, llm_function
from SimpleLLMFunc.errors import ContextTooLong, DeadlineExceeded, ProviderError, RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.interface.attempts.guard import forbid_real_calls
from SimpleLLMFunc.interface.composite import sample_scope
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.local import local_model
from SimpleLLMFunc.interface.local import server as local_server
from SimpleLLMFunc.interface.local.local_model import DEFAULT_MAX_TOKENS, REPEAT_PENALTY, LocalModel, default_threads
from SimpleLLMFunc.interface.local.server import LocalServer, ServerOptions, running_server
from SimpleLLMFunc.interface.local.weights import SMOLLM2_135M, fetch_weights
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.asking import streamed
from tests.support.processes import run_script
from tests.support.server import LoopbackServer

COLOUR = [{"role": "user", "content": "Name a colour."}]
STORY = [{"role": "user", "content": "Tell a very long story."}]
OTHER = OpenAICompatible("m", api_key="k", base_url="http://127.0.0.1:1/v1")
TEXT_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def wanted(schema: dict) -> dict:
    return {"type": "json_schema", "json_schema": {"name": "value", "schema": schema}}


def run_python(code: str) -> tuple[int, str, str]:
    done = run_script(code, "-W", "error", timeout=55)
    return done.returncode, done.stdout, done.stderr


async def answer(llm: LocalModel, question: list, *, stream: bool, **asked: object) -> tuple[str, str | None]:
    """Return text and finish reason of an answer, whole or streamed."""
    reply = await (streamed(llm, question, **asked) if stream else llm.chat(question, **asked))
    return reply.text, reply.finish_reason


# --- without the model -------------------------------------------------------------------------------------


def test_facts() -> None:
    llm = LocalModel()
    assert (llm.model_name, llm.provider, llm.context_window, llm.base_url) == ("smollm2-135m", "local", 4096, None)
    assert (llm.profile.tools, llm.profile.native) == ("json", True)
    assert LocalModel("/models/some.model-7b.gguf").model_name == "some.model-7b"
    assert repr(llm) == "LocalModel('smollm2-135m', context_window=4096)"


def test_pickle_and_repr() -> None:
    llm = LocalModel(Path("x.gguf"), threads=1, context_window=99, seed=5)
    again = pickle.loads(pickle.dumps(llm))
    assert repr(again) == repr(llm) == "LocalModel('x.gguf', context_window=99, threads=1, seed=5)"
    assert (again.model_name, again.context_window) == ("x", 99)


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"threads": 1.5}, {"threads": True}, {"context_window": 0}])
def test_numbers_that_cannot_be(wrong: dict) -> None:
    with pytest.raises(ConfigError, match="whole number of at least 1"):
        LocalModel(**wrong)


def test_default_threads_are_half_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_threads() >= 1
    for there, half in ((1, 1), (2, 1), (8, 4)):
        monkeypatch.setattr(
            local_model.os, "sched_getaffinity", lambda pid, there=there: {0: set(range(there))}[pid], raising=False
        )
        assert default_threads() == half
    monkeypatch.delattr(local_model.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(local_model.os, "cpu_count", lambda: None)
    assert default_threads() == 1


def test_render_holds_the_bounds() -> None:
    body = LocalModel(seed=3).render(COLOUR, response_format=wanted(TEXT_SCHEMA), temperature=0)
    assert (body["model"], body["max_tokens"], body["seed"], body["temperature"]) == ("smollm2-135m", 2048, 3, 0)
    assert LocalModel(context_window=100).render(COLOUR, response_format=wanted(TEXT_SCHEMA))["max_tokens"] == 100
    assert body["response_format"]["json_schema"]["schema"]["properties"]["name"]["maxLength"] == 1001
    number = LocalModel().render(COLOUR, response_format=wanted({"type": "integer"}))
    assert json.loads(number["grammar"].partition("%json ")[2])["maximum"] == 10**15
    assert "response_format" not in number
    assert "maxLength" not in TEXT_SCHEMA["properties"]["name"]


def test_next_to_tools_or_a_grammar_of_ones_own_the_schema_goes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    llm, tool = LocalModel(), {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    asked = {"response_format": wanted({"type": "integer"})}
    assert {"grammar", "response_format"} & llm.render(COLOUR, tools=[tool], **asked).keys() == {"response_format"}
    assert llm.render(COLOUR, grammar='root ::= "a"', **asked)["grammar"] == 'root ::= "a"'
    monkeypatch.setattr("SimpleLLMFunc.interface.local.local_model.reads_guidance", lambda: False)
    assert "grammar" not in llm.render(COLOUR, **asked)


def test_what_the_call_says_counts() -> None:
    llm = LocalModel(seed=3, context_window=100)
    assert llm.render(COLOUR)["max_tokens"] == 100
    body = llm.render(COLOUR, max_tokens=7, seed=9)
    assert (body["max_tokens"], body["seed"]) == (7, 9)
    assert llm.render(COLOUR, max_tokens=None, seed=None)["max_tokens"] == 100
    assert "seed" not in LocalModel().render(COLOUR)
    assert LocalModel().render(COLOUR)["max_tokens"] == DEFAULT_MAX_TOKENS
    assert llm.render(COLOUR, max_completion_tokens=8)["max_tokens"] == 8
    for other in ({"type": "json_object"}, {"type": "json_schema"}):  # other formats go out as they are
        body = LocalModel().render(COLOUR, response_format=other)
        assert (body["response_format"], body["max_tokens"]) == (other, DEFAULT_MAX_TOKENS)


def test_it_does_not_sample_and_does_not_like_to_repeat_itself() -> None:
    llm = LocalModel()
    assert llm.render(COLOUR)["temperature"] == 0
    assert llm.render(COLOUR)["frequency_penalty"] == REPEAT_PENALTY > 0
    body = llm.render(COLOUR, temperature=0.7, repeat_penalty=1.3)
    assert (body["temperature"], body["repeat_penalty"], "frequency_penalty" in body) == (0.7, 1.3, False)
    assert llm.render(COLOUR, temperature=None)["temperature"] == 0
    with sample_scope(1):  # votes may differ
        assert "temperature" not in llm.render(COLOUR)
        assert llm.render(COLOUR, temperature=0)["temperature"] == 0


def test_a_function_is_asked_with_a_short_prompt() -> None:
    def count(text: str) -> int:
        """Count the words."""
        raise NotImplementedError

    def shown(llm: LLM_Interface) -> list[str]:
        return [str(each["content"]) for each in llm_function(llm, examples=[("a", 1)])(count).preview("a b").messages]

    small, other = shown(LocalModel()), shown(OTHER)
    assert len(small[0]) < len(other[0])
    assert "Count the words." in small[0]
    assert "text: " in small[0]
    # The arguments stand there without a heading, in the examples as in the question.
    assert (small[1], small[-1]) == ("text: a", "text: a b")
    assert (other[1], other[-1]) == ("Arguments:\n  - text: a", "Arguments:\n  - text: a b")


def test_a_small_model_is_told_which_fields_a_record_has() -> None:
    class Dish(BaseModel):
        name: str = Field(description="as on the {menu}")
        price: float

    class Table(BaseModel):
        seats: int = Field(description="how many")
        dishes: list[Dish]

    def book(text: str) -> Table:
        """Book a table."""
        raise NotImplementedError

    small, other = (str(llm_function(llm)(book).preview("a b").messages[0]["content"]) for llm in (LocalModel(), OTHER))
    fields = ["- seats: how many", "- dishes", "- dishes[].name: as on the {menu}", "- dishes[].price"]
    assert small.split("\n\n") == ["Book a table.", "\n".join(["Fields:", *fields]), "Give only the return value."]
    assert "Fields:" not in other


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"there is no model file .*model\.gguf.*Give LocalModel the path"), (b"", r"model\.gguf is empty"),
        (b"<!DOCTYPE html><html>", r"model\.gguf is not a model file"), (b"GG", "is not a model file"),
    ],
)  # fmt: skip
async def test_a_file_that_is_no_model(tmp_path: Path, content: bytes | None, said: str, stream: bool) -> None:
    path = tmp_path / "my model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as failed:
        await answer(LocalModel(path), COLOUR, stream=stream)
    assert str(path) in str(failed.value)


async def test_an_unknown_name() -> None:
    said = r"no model is called 'smollm-135m'.*Known by name: smollm2-135m, gemma3-270m"
    with pytest.raises(ConfigError, match=said):
        await LocalModel("smollm-135m").chat(COLOUR)


async def test_without_the_extra_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL_DIR", str(tmp_path / "models"))
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    for llm in (LocalModel(tmp_path / "x.gguf"), LocalModel()):
        with pytest.raises(ConfigError, match=re.escape(install_line("local"))):
            await llm.chat(COLOUR)
    assert not (tmp_path / "models").exists()


async def test_a_passed_deadline_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(DeadlineExceeded):
        await LocalModel(tmp_path / "none.gguf").chat(COLOUR, deadline=0)


def options(name: str) -> ServerOptions:
    return ServerOptions(name, Path(name), 1, 64)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the start of llama.cpp; what prepares the start is the real thing."""
    names: list[str] = []

    def start(wanted: ServerOptions) -> LocalServer:
        names.append(wanted.name)
        return LocalServer(wanted, "http://127.0.0.1:9/v1", "key", object())

    monkeypatch.setattr(local_server, "start_server", start)
    monkeypatch.setattr(local_server, "_SERVERS", local_server._Servers())
    return names


def ready(stop: threading.Event) -> None:
    pass


async def test_one_server_for_all_who_ask_until_it_is_stopped(started: list[str]) -> None:
    servers = await asyncio.gather(*(running_server(options("a"), ready) for _ in range(20)))
    assert len({id(server) for server in servers}) == 1
    assert await running_server(options("b"), ready) is not servers[0]
    assert started == ["a", "b"]
    local_server._SERVERS.stop()
    assert servers[0]._handle is None
    assert await running_server(options("a"), ready) is not servers[0]


async def test_a_start_that_failed_is_tried_again_by_the_next(started: list[str]) -> None:
    def fails(stop: threading.Event) -> None:
        raise ConfigError("no network")

    errors = await asyncio.gather(*(running_server(options("a"), fails) for _ in range(3)), return_exceptions=True)
    assert [str(error) for error in errors] == ["no network"] * 3
    assert len({id(error) for error in errors}) == 3, "each run writes its own facts onto its error"
    assert (await running_server(options("a"), ready)).options.name == "a"
    assert started == ["a"]


async def test_the_download_stops_when_no_one_waits_any_more(started: list[str]) -> None:
    entered, stops = threading.Event(), []

    def prepare(stop: threading.Event) -> None:
        stops.append(stop)
        entered.set()
        stop.wait(30)
        raise RunAborted("stopped")

    waiting = [asyncio.ensure_future(running_server(options("a"), prepare)) for _ in range(2)]
    await asyncio.to_thread(entered.wait, 30)
    for task in waiting:
        assert not stops[0].is_set(), "one still waits"
        task.cancel()
        await asyncio.wait({task})
    assert stops[0].is_set()
    # Who comes now does not get the stopped one.
    assert (await running_server(options("a"), ready)).options.name == "a"


async def test_a_load_that_has_begun_goes_on(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on, start = threading.Event(), threading.Event(), local_server.start_server

    def loading(wanted: ServerOptions) -> LocalServer:
        entered.set()
        go_on.wait(30)
        return start(wanted)

    monkeypatch.setattr(local_server, "start_server", loading)
    waiting = asyncio.ensure_future(running_server(options("a"), ready))
    await asyncio.to_thread(entered.wait, 30)
    waiting.cancel()
    await asyncio.wait({waiting})
    go_on.set()
    await running_server(options("a"), ready)
    assert started == ["a"]


async def test_where_real_calls_are_forbidden_the_server_is_asked(server: LoopbackServer) -> None:
    with forbid_real_calls():
        reply = await LocalServer(options("a"), server.base_url, "key", None).client.chat(COLOUR)
    assert (reply.text, server.requests[0].key) == ("Name a colour.", "key")


def test_without_the_extra_a_request_is_shown_as_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert local_server.reads_guidance.__wrapped__()


async def test_a_slow_start_ends_at_the_deadline(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(stop: threading.Event) -> None:
        stop.wait(30)
        raise RunAborted("stopped")

    llm = LocalModel("x.gguf")
    monkeypatch.setattr(llm, "_prepare", prepare)
    with pytest.raises(DeadlineExceeded, match=r"0\.05 s passed while starting the local model"):
        await llm.chat(COLOUR, deadline=0.05)


def test_a_server_that_is_never_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "_READY_SECONDS", 0.05)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = LocalServer(options("a"), f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "key", None)
        with pytest.raises(ProviderError, match="was not ready"):
            local_server._wait_until_ready(server)


async def test_a_text_that_its_bound_ended_is_told_as_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    async def client(deadline: float | None) -> tuple[LLM_Interface, Deadline]:
        return ScriptedLLM(json.dumps("a" * 1001)), Deadline.after(None)

    llm, asked = LocalModel(), {"response_format": wanted({"type": "string"})}
    monkeypatch.setattr(llm, "_client", client)
    for stream in (False, True):
        assert (await answer(llm, COLOUR, stream=stream, **asked))[1] == "length"
        assert (await answer(llm, COLOUR, stream=stream))[1] == "stop"


# --- with the model ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights() -> Path:
    return fetch_weights(SMOLLM2_135M)


@pytest.mark.local_model
async def test_answers_and_tells_what_it_took() -> None:
    reply = await LocalModel().chat(COLOUR, max_tokens=12)
    assert reply.text
    assert (reply.model, reply.usage is not None) == ("smollm2-135m", True)
    assert reply.usage.prompt_tokens > 0
    assert 0 < reply.usage.completion_tokens <= 12


@pytest.mark.local_model
async def test_a_picture_is_told_as_what_it_cannot_take() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    with pytest.raises(BadRequest, match="takes no images") as caught:
        await LocalModel().chat([{"role": "user", "content": [picture]}])
    assert caught.value.tries == 1


@pytest.mark.local_model
async def test_the_default_limit_ends_endless_text_and_many_at_once_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_model, "DEFAULT_MAX_TOKENS", 2)
    llm = LocalModel()
    replies = await asyncio.gather(*(llm.chat(STORY, ignore_eos=True) for _ in range(60)))
    assert {(reply.finish_reason, reply.usage.completion_tokens) for reply in replies} == {("length", 2)}


@pytest.mark.heavy
@pytest.mark.local_model
async def test_a_seed_makes_the_answer_the_same_and_so_does_no_temperature() -> None:
    async def texts(*seeds: int | None, **asked: float) -> set[str]:
        return {(await LocalModel(seed=seed).chat(STORY, max_tokens=20, **asked)).text for seed in seeds}

    assert len(await texts(11, 11, 11, temperature=1)) == 1
    assert len(await texts(0, 1, 2, 3, temperature=1)) > 1
    assert len(await texts(None, None, 1, 2)) == 1


@pytest.mark.heavy
@pytest.mark.local_model
@pytest.mark.parametrize("stream", [False, True])
async def test_a_list_that_its_bound_ended_is_told_as_cut(stream: bool) -> None:
    schema = {"type": "array", "items": {"const": 1}, "minItems": 20}
    asked = {"response_format": wanted(schema), "logit_bias": [["]", -100], [" ]", -100], ["],", -100]]}
    text, reason = await answer(LocalModel(), STORY, stream=stream, **asked)
    assert json.loads(text) == [1] * 33
    assert reason == "length"


@pytest.mark.heavy
@pytest.mark.local_model
async def test_a_stream_costs_the_next_turn_no_try() -> None:
    llm = LocalModel()
    with budget(requests=40) as spent:
        for turn in range(10):
            pieces = [piece async for piece in llm.chat_stream(COLOUR, max_tokens=1 + turn % 3)]
            reply = await llm.chat(COLOUR, max_tokens=1)
            if turn % 2:
                time.sleep(0.05)  # the loop is busy and does not see how the server closes the connection
            assert {piece.tries for piece in pieces} == {reply.tries} == {1}
    assert spent.requests == 20


@pytest.mark.local_model
async def test_a_schema_is_kept_to_and_its_strings_end() -> None:
    schema = {
        "type": "object", "properties": {
            "name": {"type": "string", "pattern": r"^(?=A)\w+$", "maxLength": 12}, "age": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3},
        },
        "required": ["name", "age", "tags"], "additionalProperties": False,
    }  # fmt: skip
    question = [{"role": "user", "content": "Anna is 33, she likes tea. Write it as JSON."}]
    reply = await LocalModel(seed=1).chat(question, response_format=wanted(schema), temperature=0)
    value = json.loads(reply.text)
    assert (set(value), type(value["age"]), reply.finish_reason) == ({"name", "age", "tags"}, int, "stop")
    assert len(value["name"]) <= 12
    assert len(value["tags"]) <= 3


@pytest.mark.local_model
@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_longer_than_the_context(stream: bool) -> None:
    long = [{"role": "user", "content": "word " * 600}]
    with pytest.raises(ContextTooLong) as failed:
        await answer(LocalModel(context_window=256), long, stream=stream)
    assert failed.value.limit == 256


@pytest.mark.local_model
async def test_the_deadline_is_told_as_it_was_given() -> None:
    llm = LocalModel()
    await llm.chat(COLOUR, max_tokens=1)
    with pytest.raises(DeadlineExceeded, match=r"the deadline of 0\.2 s") as failed:
        await llm.chat(STORY, max_tokens=3000, ignore_eos=True, deadline=0.2)
    assert failed.value.seconds == 0.2


@pytest.mark.local_model
async def test_only_this_process_may_use_the_server() -> None:
    import aiohttp

    llm = LocalModel()
    await llm.chat(COLOUR, max_tokens=1)
    server = await running_server(
        ServerOptions(llm.model_name, SMOLLM2_135M.path(), default_threads(), 4096), llm._prepare
    )
    assert server.base_url.startswith("http://127.0.0.1:")
    assert server.key not in repr(server)
    async with aiohttp.ClientSession(server.base_url + "/", headers={"Origin": "http://page.example"}) as session:
        async with session.post("chat/completions", json={"messages": COLOUR}) as response:
            assert response.status == 401
        own = {"Authorization": f"Bearer {server.key}"}
        async with session.get(server.base_url.removesuffix("v1") + "slots", headers=own) as response:
            assert response.status == 501, "what others ask is not shown"
        async with session.options("models") as response:
            assert response.headers.get("Access-Control-Allow-Origin") in {None, ""}


@pytest.mark.local_model
@pytest.mark.parametrize("damage", ["cut", "junk"])
async def test_a_damaged_model_file(tmp_path: Path, weights: Path, damage: str) -> None:
    path = tmp_path / "damaged.gguf"
    with weights.open("rb") as file:
        path.write_bytes(file.read(1_000_000) if damage == "cut" else b"GGUF" + bytes(range(256)) * 100)
    with pytest.raises(ConfigError, match=r"could not load .*damaged\.gguf: the file is damaged"):
        await LocalModel(path).chat(COLOUR)


@pytest.mark.heavy
@pytest.mark.local_model
def test_says_nothing_and_ends_cleanly(weights: Path) -> None:
    done = run_python(
        "import asyncio\n"
        "from SimpleLLMFunc.interface.local.local_model import LocalModel\n"
        "print(bool(asyncio.run(LocalModel().chat([{'role': 'user', 'content': 'Hi'}], max_tokens=3)).text))"
    )
    assert done == (0, "True\n", "")


@pytest.mark.local_model
def test_ends_cleanly_in_the_middle_of_an_answer(weights: Path) -> None:
    done = run_python(
        "import asyncio, sys\n"
        "from SimpleLLMFunc.interface.local.local_model import LocalModel\n"
        "async def main():\n"
        "    llm = LocalModel()\n"
        "    stream = llm.chat_stream([{'role': 'user', 'content': 'Hi'}], max_tokens=3000, ignore_eos=True)\n"
        "    await anext(stream)\n"
        "    sys.exit(3)\n"
        "asyncio.run(main())"
    )
    assert done == (3, "", "")


@pytest.mark.heavy
@pytest.mark.local_model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("is_used", [False, True])
def test_a_forked_child_starts_its_own_and_ends(weights: Path, is_used: bool) -> None:
    done = run_python(
        "import asyncio, os, sys, warnings\n"
        "from SimpleLLMFunc.interface.local.local_model import LocalModel\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"  # 3.12: fork beside threads
        "llm = LocalModel()\n"
        "def ask(): return asyncio.run(llm.chat([{'role': 'user', 'content': 'Hi'}], max_tokens=3)).text\n"
        "ask()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        f"    if {is_used}: ask()\n"
        "    sys.exit(7)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "print(status, bool(ask()))"
    )
    assert done == (0, "7 True\n", "")


@pytest.mark.local_model
async def test_a_number_comes_on_one_line_and_its_digits_end_and_a_schema_llama_cpp_refuses_is_our_error() -> None:
    schema = {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}
    reply = await LocalModel().chat(COLOUR, response_format=wanted(schema), logit_bias=[["}", -100], ["\n}", -100]])
    assert (reply.text, reply.finish_reason) == (json.dumps(json.loads(reply.text)), "stop")
    with pytest.raises(SimpleLLMFuncError):
        await LocalModel().chat(COLOUR, response_format=wanted({"$ref": "http://127.0.0.1:9/schema.json"}))


@pytest.mark.local_model
def test_loops_and_threads_share_one_server(weights: Path) -> None:
    local_server._SERVERS.stop()
    llm = LocalModel(context_window=512)
    with ThreadPoolExecutor() as pool:
        list(pool.map(asyncio.run, [llm.chat(COLOUR, max_tokens=2) for _ in range(3)]))
    assert len(local_server._SERVERS.starts) == 1
