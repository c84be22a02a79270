"""The adapter against a real server on loopback."""

import asyncio
import copy
import gc
import json
import pickle
import zlib

import pytest

from SimpleLLMFunc import Anthropic, BadRequest, __version__
from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded, StreamInterrupted, UsageError
from SimpleLLMFunc.interface.attempts.guard import forbid_real_calls
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
from SimpleLLMFunc.interface.attempts.listener import noting_downgrades
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.spending.deadline import deadline_scope
from tests.support.asking import HELLO, ask_either, both_ways, streamed
from tests.support.server import Answer, chunk, error_answer, sse
from tests.support.services import MessagesService, ResponsesService

CANARY = "sk-CANARY0123456789abcdefghij"


def model(server, **options):
    options.setdefault("retry_delay", 0.001)
    return OpenAICompatible("m", base_url=server.base_url, **options)


# --- what goes out ---------------------------------------------------------------------------------------


async def test_one_request_and_its_reply(server):
    reply = await model(server, api_key=CANARY).chat(HELLO, temperature=0.5, top_p=None, trace_id="t")
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body == {"model": "m", "messages": HELLO, "temperature": 0.5}
    assert [request.headers[name] for name in ("authorization", "content-type", "user-agent")] == [
        f"Bearer {CANARY}", "application/json", f"SimpleLLMFunc/{__version__}"
    ]  # fmt: skip
    assert (reply.text, reply.finish_reason, reply.tries, reply.usage.total_tokens) == ("hello", "stop", 1, 8)


async def test_a_message_of_the_openai_package_goes_out(server):
    from openai.types.chat import ChatCompletionMessage

    said = ChatCompletionMessage(role="assistant", content="hi")
    assert (await model(server).chat([*HELLO, said, *HELLO])).text == "hello"
    assert server.requests[0].body["messages"] == [*HELLO, {"role": "assistant", "content": "hi"}, *HELLO]


async def test_defaults_stand_under_what_a_call_gives(server):
    llm = model(server, api_params={"temperature": 0, "seed": 1, "extra_body": {"a": 1}, "extra_headers": {"X-T": "t"}})
    await llm.chat(HELLO, temperature=1, extra_body={"top_k": 3})
    body = server.requests[0].body
    assert (body["temperature"], body["seed"], body["top_k"]) == (1, 1, 3)
    assert "extra_body" not in body
    assert server.requests[0].headers["x-t"] == "t"


async def test_render_is_the_body_that_goes_out(server):
    llm = model(server, api_params={"seed": 1})
    for stream in (False, True):
        body = llm.render(HELLO, stream=stream, temperature=0, timeout=5)
        await (streamed(llm, temperature=0) if stream else llm.chat(HELLO, temperature=0))
        assert server.requests[-1].body == body


@pytest.mark.parametrize("name", ["base_url", "api_key", "extra_headers", "http_client"])
async def test_a_call_cannot_change_where_it_goes(server, name):
    llm = model(server)
    with pytest.raises(UsageError, match=name):
        llm.render(HELLO, **{name: "x"})
    for asked in (llm.chat(HELLO, **{name: "x"}), streamed(llm, **{name: "x"})):
        with pytest.raises(UsageError, match=name):
            await asked
    assert server.requests == []


async def test_forbidden_calls_do_not_leave(server):
    llm = model(server)
    with forbid_real_calls():
        for asked in (llm.chat(HELLO), streamed(llm)):
            with pytest.raises(UsageError):
                await asked
        assert (await model(server, _guarded=False).chat(HELLO)).text == "hello"
    assert len(server.requests) == 1


# --- environment and keys --------------------------------------------------------------------------------


async def test_the_environment_counts(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    llm = OpenAICompatible("m")
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)  # after the model was made
    await llm.chat(HELLO)
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {CANARY}"
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:11434")
    with pytest.raises(ConfigError, match=r"^OPENAI_BASE_URL must be an http"):
        OpenAICompatible("m")


async def test_own_key_before_pool_before_environment_and_a_local_address_needs_none(server, monkeypatch):
    await model(server).chat(HELLO)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    pool = APIKeyPool(["sk-from-the-pool"])
    await model(server, api_key_pool=pool).chat(HELLO)
    await model(server, api_key_pool=pool, api_key="sk-own-key-here").chat(HELLO)
    assert [request.key for request in server.requests] == ["", "sk-from-the-pool", "sk-own-key-here"]
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(("language", "word"), [("en", "No key"), ("zh", "密钥")])
async def test_without_a_key_the_first_call_says_so(monkeypatch, language, word):
    monkeypatch.setenv("SIMPLELLMFUNC_LANG", language)
    llm = OpenAICompatible("gpt-5-mini")
    for ask in (llm.chat(HELLO), streamed(llm)):
        with pytest.raises(ConfigError, match=word) as caught:
            await ask
        assert "OPENAI_API_KEY" in str(caught.value)
        assert caught.value.__cause__ is None


async def test_counts_return_to_zero_and_the_connection_closes_after_a_break(server):
    pool = APIKeyPool(["sk-aaaaaaaa"])
    llm = model(server, api_key_pool=pool)
    pieces = [sse(chunk({"content": "a"}), done=False)] * 3
    server.reply_sse(pieces, hold=asyncio.Event(), hold_after=2)
    stream = llm.chat_stream(HELLO)
    async for piece in stream:
        assert piece.text == "a"
        assert pool.tasks == 1
        break
    await stream.aclose()
    assert pool.tasks == 0
    await server.all_closed()


# --- streams ---------------------------------------------------------------------------------------------


async def test_a_stream_comes_in_pieces_with_its_usage(server):
    server.reply("Hello, world")
    chunks = [piece async for piece in model(server).chat_stream(HELLO)]
    assert "".join(piece.text for piece in chunks) == "Hello, world"
    assert chunks[-1].usage.total_tokens == 8
    assert [piece.finish_reason for piece in chunks if piece.finish_reason] == ["stop"]
    (request,) = server.requests
    assert (request.body["stream_options"], request.headers["accept"]) == ({"include_usage": True}, "text/event-stream")


# --- time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["argument", "constructor", "scope"])
async def test_a_deadline_may_come_from_three_places(server, given):
    server.answer(Answer(body=b"{}", hold=asyncio.Event()))
    llm = model(server, deadline=0.05 if given == "constructor" else 50)
    with pytest.raises(DeadlineExceeded) as caught, deadline_scope(0.05 if given == "scope" else 50):
        await llm.chat(HELLO, deadline=0.05 if given == "argument" else 50)
    assert caught.value.seconds == 0.05


async def test_a_deadline_that_has_passed_sends_nothing_and_the_timeout_may_come_with_a_call(server, caplog):
    with pytest.raises(DeadlineExceeded):
        await model(server).chat(HELLO, deadline=0)
    with pytest.raises(DeadlineExceeded, match="for the key"):
        await model(server, api_key=lambda: asyncio.sleep(9)).chat(HELLO, deadline=0.05)
    assert server.requests == []
    server.answer(Answer(body=b"{}", hold=asyncio.Event()))
    assert (await model(server).chat(HELLO, timeout=0.5)).tries == 2
    assert "try 1 failed, the next one in" in caplog.text


async def test_a_slow_reader_is_not_taken_for_a_silent_service(server, monkeypatch):
    monkeypatch.setattr("SimpleLLMFunc.interface.attempts.http_model.IDLE_SECONDS", 0.2)
    server.reply("a" * 12)
    texts = []
    async for piece in model(server).chat_stream(HELLO):
        texts.append(piece.text)
        await asyncio.sleep(0.22)
    assert "".join(texts) == "a" * 12


@pytest.mark.parametrize("end", [[], [sse()]])
async def test_a_packed_stream_is_complete_only_with_its_checksum(server, monkeypatch, end):
    monkeypatch.setattr("SimpleLLMFunc.interface.attempts.reply_reader._AFTER_END_SECONDS", 0.05)
    packer = zlib.compressobj(wbits=31)
    said = sse(chunk({"content": "x"}, finish_reason="stop"), done=False)
    pieces = [packer.compress(each) + packer.flush(zlib.Z_SYNC_FLUSH) for each in [said, *end]]
    for rest, hold in [(packer.flush(), None), (b"", asyncio.Event())]:
        headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        server.answer(Answer(headers=headers, pieces=[*pieces, rest], hold=hold, hold_after=len(pieces)))
    assert (await streamed(model(server))).text == "x"
    with pytest.raises(StreamInterrupted) as caught:
        await streamed(model(server))
    assert caught.value.partial == "x"


# --- limits ----------------------------------------------------------------------------------------------


async def test_a_request_that_can_never_fit_is_told_at_once(server):
    with pytest.raises(ConfigError, match="tokens_per_minute"):
        await model(server, tokens_per_minute=10).chat([{"role": "user", "content": "word " * 400}])
    assert server.requests == []


async def test_a_stream_that_no_one_closed_is_closed_by_the_loop(server):
    pieces = [sse(chunk({"content": "a"}), done=False)]
    server.reply_sse(pieces, hold=asyncio.Event(), hold_after=1)
    stream = model(server).chat_stream(HELLO)
    await anext(stream)
    del stream
    gc.collect()
    await server.all_closed()


@both_ways
async def test_an_estimate_of_tokens_is_corrected_by_the_reply(server, is_streamed):
    llm = model(server, tokens_per_minute=1000)
    server.reply("x", usage={"prompt_tokens": 9000, "completion_tokens": 1, "total_tokens": 9001})
    await ask_either(llm, is_streamed)
    with pytest.raises(DeadlineExceeded, match="tokens per minute"):
        await llm.chat(HELLO, deadline=0.05)


# --- a request that is written in another way ------------------------------------------------------------

OTHER_WIRE = "Function tools with reasoning_effort are not supported for m. To use function tools, use /v1/responses."
CHANGED = ("wire: responses instead of chat", OTHER_WIRE)


@both_ways
async def test_a_service_may_ask_for_responses_where_no_wire_was_said(server, caplog, is_streamed):
    service = ResponsesService({"texts": ["ok"], "thinking": "hm"}, {"texts": ["ok"], "thinking": "hm"})

    async def answer(request):
        if request.path.endswith("/responses"):
            return service(request)
        await server.received(2)
        return error_answer(400, OTHER_WIRE) if len(server.requests) <= 4 else "not asked for"

    server.handler = answer
    llm, said = model(server), model(server, wire="responses")
    assert (llm.keeps_tools, said.keeps_tools) == (False, True)
    with noting_downgrades() as noted:
        replies = await asyncio.gather(*(ask_either(llm, is_streamed) for _ in range(2)))
        assert [reply.text for reply in replies] == ["ok"] * 2
    with noting_downgrades() as again:
        history = [*HELLO, replies[0].message.to_dict(), *HELLO]
        assert (await llm.chat(HELLO)).text == (await said.chat(history)).text == "ok"
    assert list(noted.told) == list(again.told) == [CHANGED]
    assert caplog.text.count(CHANGED[0]) == 1
    assert (llm.keeps_tools, [request.path[4:] for request in server.requests[2:]]) == (True, ["responses"] * 4)
    assert "encrypted_content" in str(server.requests[-1].body["input"]), "another model of the service takes it"
    assert "prompt_cache_key" in server.requests[-1].body
    assert "prompt_cache_key" not in model(server, wire="responses", prompt_cache="off").render(HELLO)


async def test_a_wire_that_was_said_stays_and_one_without_a_word_for_what_is_asked_is_not_taken(server):
    messages = Anthropic("m", api_key="k", base_url=server.base_url.removesuffix("/v1"))
    for llm, asked in ((model(server, wire="chat"), {}), (model(server), {"stop": "x"}), (messages, {})):
        wire = llm.wire_name
        server.answer(error_answer(400, OTHER_WIRE))
        with pytest.raises(BadRequest, match="/v1/responses"):
            await llm.chat(HELLO, **asked)
        assert llm.wire_name == wire
    server.answer(error_answer(400, OTHER_WIRE))
    with pytest.raises(BadRequest):
        await model(server).embed(["x"])


async def test_state_that_was_refused_is_left_out_from_then_on(server, caplog):
    service = MessagesService({"texts": ["one"], "thinking": "hm"})
    refusal = "messages.1.content.0: The block is bound to a different conversation."
    server.handler = lambda asked: service.error(400, refusal) if "signature" in str(asked.body) else service(asked)
    llm = Anthropic("m", api_key="k", base_url=server.base_url.removesuffix("/v1"))
    history = [*HELLO, (await llm.chat(HELLO)).message.to_dict(), *HELLO]
    for count in (3, 4):
        with noting_downgrades() as noted:
            assert (await llm.chat(history)).text == "ok"
        assert len(server.requests) == count
        assert list(noted.told) == [("provider state: what was refused is left out", refusal)]
    assert caplog.text.count("what was refused is left out") == 1
    server.handler = lambda _: service.error(400, "max_tokens: too large")
    with pytest.raises(BadRequest, match="too large"):  # which no state is to blame for
        await Anthropic("m", api_key="k", base_url=llm.base_url).chat(history)
    assert len(server.requests) == 5


# --- as an object ----------------------------------------------------------------------------------------


def test_repr_shows_no_key_and_a_copy_is_the_same_model():
    llm = OpenAICompatible("m", api_key=CANARY, base_url="https://x.example/v1?api_key=sk-CANARY99887766")
    assert ("x.example" in repr(llm), "CANARY" in repr(llm)) == (True, False)
    assert copy.copy(llm) is llm
    assert copy.deepcopy({"llm": llm})["llm"] is llm


async def test_a_pickle_holds_no_key_and_finds_the_environments(server, monkeypatch):
    llm = model(
        server, api_key=CANARY, max_retries=7, api_params={"seed": 3, "extra_headers": {"X-T": "t"}},
        tokens_per_minute=500, requests_per_minute=60, context_window=99, deadline=9,
    )  # fmt: skip
    data = pickle.dumps(llm)
    assert b"CANARY" not in data
    again = pickle.loads(data)
    assert (again.model_name, again.base_url, again.max_retries, again.context_window) == ("m", llm.base_url, 7, 99)
    assert (again.deadline, again.timeout, again.api_params) == (9, 600, {"seed": 3})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    await again.chat(HELLO)
    assert server.requests[0].key == "sk-from-environment"
    assert server.requests[0].headers["x-t"] == "t"


@pytest.fixture
def provider_file(tmp_path, server):
    path = tmp_path / "provider.json"
    entry = {"model_name": "m", "api_keys": [CANARY, "sk-second-key"], "base_url": server.base_url, "max_retries": 4}
    path.write_text(json.dumps({"mine": [entry, {**entry, "model_name": "n", "api_params": {"seed": 1}}]}))
    return path


async def test_the_provider_file_gives_every_model(server, provider_file):
    models = OpenAICompatible.load_from_json_file(provider_file)
    assert list(models) == ["mine"]
    assert list(models["mine"]) == ["m", "n"]
    llm = models["mine"]["n"]
    assert (llm.max_retries, llm.api_params) == (4, {"seed": 1})
    await asyncio.gather(llm.chat(HELLO), llm.chat(HELLO))
    assert {request.key for request in server.requests} == {CANARY, "sk-second-key"}


async def test_a_pickle_finds_its_keys_in_the_provider_file_again(server, provider_file):
    data = pickle.dumps(OpenAICompatible.load_from_json_file(provider_file)["mine"]["m"])
    assert b"CANARY" not in data
    again = pickle.loads(data)
    await again.chat(HELLO)
    assert server.requests[0].key in {CANARY, "sk-second-key"}
    assert pickle.loads(pickle.dumps(again)).model_name == "m"
    provider_file.unlink()
    await pickle.loads(data).chat(HELLO)  # no file, and a local address: goes without
    assert server.requests[1].key == ""


def test_the_keyword_form_and_the_defaults():
    llm = OpenAICompatible(api_key_pool=APIKeyPool(["sk-aaaaaaaa"]), model_name="m", base_url="https://x.example/v1/")
    assert (llm.model_name, llm.base_url, llm.max_retries) == ("m", "https://x.example/v1", 2)
    llm = OpenAICompatible("m")
    assert (llm.base_url, llm.timeout, llm.context_window) == ("https://api.openai.com/v1", 600, None)
    assert llm.provider == "openai"
    assert OpenAICompatible("m", base_url="https://api.deepseek.com").profile.name == "deepseek"
    assert OpenAICompatible("m", profile="vllm", timeout=1, api_key_seconds=1, context_window=1).profile.name == "vllm"


@pytest.mark.parametrize(
    "options",
    [
        {"model_name": ""}, {"model_name": None}, {"max_retries": -1}, {"retry_delay": "x"}, {"timeout": 0},
        {"deadline": -1}, {"api_key": ""}, {"api_key": "a\nb"}, {"api_key": 3}, {"base_url": "nowhere"},
        {"rate_limit_capacity": 1}, {"rate_limit_refill_rate": 1}, {"requests_per_minute": 0}, {"profile": "nope"},
        {"rate_limit_capacity": 0, "rate_limit_refill_rate": 1},
        {"api_params": {"api_key": "x"}}, {"tokens_per_minute": -5}, {"requests_per_minute": "60"},
        {"context_window": 0}, {"api_key_pool": ["sk-aaaaaaaa"]}, {"api_params": 5}, {"model_name": 5},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_name_when_the_model_is_made(options):
    with pytest.raises(ConfigError, match="profile|key|" + next(iter(options))):
        OpenAICompatible(**{"model_name": "m", **options})


# --- the openai package's client -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rate", [{"rate_limit_capacity": 2, "rate_limit_refill_rate": 0.001}, {"requests_per_minute": 2}]
)
async def test_the_rate_is_kept(server, rate):
    llm = model(server, **rate)
    await llm.chat(HELLO)
    await llm.chat(HELLO)
    with pytest.raises(DeadlineExceeded, match="rate limit"):
        await llm.chat(HELLO, deadline=0.05)
    assert len(server.requests) == 2
