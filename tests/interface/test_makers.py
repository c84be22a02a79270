"""Models of three makers: where they ask, with which key, by which wire; from the environment, a file, a pickle."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import openai
import pytest

from SimpleLLMFunc import Anthropic, Gemini, OpenAICompatible
from SimpleLLMFunc.errors import AuthenticationError, ConfigError
from SimpleLLMFunc.interface.current import named_model
from tests.support.asking import HELLO
from tests.support.functions import async_decorated
from tests.support.server import LoopbackServer
from tests.support.services import GeminiService, MessagesService, ResponsesService


def test_each_maker_has_its_address():
    assert Anthropic("claude-opus-5").url() == "https://api.anthropic.com/v1/messages"
    address, model = "https://generativelanguage.googleapis.com", "models/gemini-3.8-flash"
    assert Gemini("gemini-3.8-flash").url() == f"{address}/v1beta/{model}:generateContent"
    v1 = Gemini("gemini-3.8-flash", api_version="v1")
    assert (v1.url(stream=True), v1.profile.logprobs) == (f"{address}/v1/{model}:streamGenerateContent?alt=sse", 20)


@pytest.mark.parametrize(
    ("address", "said", "path"),
    [
        (None, None, "/v1/responses"), (None, "chat", "/v1/chat/completions"),
        ("https://r.openai.azure.com/openai/v1", None, "/openai/v1/responses"),
        ("https://r.openai.azure.com/openai/v1/", "chat", "/openai/v1/chat/completions"),
        ("https://r.openai.azure.com/openai/deployments/d", None, "/openai/deployments/d/chat/completions"),
        ("https://openrouter.ai/api/v1", None, "/api/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "responses", "/api/v1/responses"),
    ],
)  # fmt: skip
def test_openai_is_asked_by_responses_and_all_others_by_chat_completions(address, said, path):
    assert OpenAICompatible("gpt-5.6", base_url=address, wire=said).url().endswith(path)
    with pytest.raises(ConfigError, match="Anthropic"):
        OpenAICompatible("m", wire="messages")  # type: ignore[arg-type]


def test_the_environment_names_a_model(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    claude = named_model("anthropic:claude-opus-5")
    assert isinstance(claude, Anthropic)
    assert claude.url() == "http://127.0.0.1:1/v1/messages"
    assert isinstance(named_model("gemini:gemini-3.8-flash"), Gemini)
    with pytest.raises(ConfigError, match="anthropic:claude"):
        named_model("anthropic:")


def test_a_provider_file_names_the_wire(tmp_path):
    def entry(model: str, wire: str, **more: str) -> dict[str, Any]:
        return {"model_name": model, "api_keys": ["k"], "wire": wire, **more}

    entries = {
        "a": [entry("claude-opus-5", "messages")],
        "g": [entry("gemini-3.8-flash", "gemini")],
        "o": [entry("m", "responses", base_url="https://h/v1"), entry("n", "chat")],
    }
    (tmp_path / "p.json").write_text(json.dumps(entries))
    models = OpenAICompatible.load_from_json_file(tmp_path / "p.json")
    assert [type(models["a"]["claude-opus-5"]), type(models["g"]["gemini-3.8-flash"])] == [Anthropic, Gemini]
    assert models["o"]["m"].url() == "https://h/v1/responses"
    assert models["o"]["n"].url() == "https://api.openai.com/v1/chat/completions"
    again = pickle.loads(pickle.dumps(models["a"]["claude-opus-5"]))
    assert (type(again), again.url()) == (Anthropic, "https://api.anthropic.com/v1/messages")
    entries["a"][0]["wire"] = "smoke"
    (tmp_path / "p.json").write_text(json.dumps(entries))
    with pytest.raises(ConfigError, match="field 'wire'"):
        OpenAICompatible.load_from_json_file(tmp_path / "p.json")
    for wrong, said in (
        ({"api_params": {"temprature": 0}}, "temperature"),
        ({"base_url": "https://a:b@h/v1"}, "base_url"),
    ):
        (tmp_path / "p.json").write_text(json.dumps({"o": [entry("m", "chat"), {**entry("n", "chat"), **wrong}]}))
        with pytest.raises(ConfigError, match=rf"p\.json: provider 'o', entry 2: .*{said}"):
            OpenAICompatible.load_from_json_file(tmp_path / "p.json")


def test_a_pickle_speaks_the_same_wire():
    for llm in (
        OpenAICompatible("m", base_url="https://h/v1", wire="responses"),
        Anthropic("claude-opus-5", api_version="2026-10-21", prompt_cache="off"),
        Gemini("gemini-3.8-flash", api_version="v1"),
    ):
        again = pickle.loads(pickle.dumps(llm))
        assert (type(again), again.url(), again.wire) == (type(llm), llm.url(), llm.wire)
    talk = [{"role": "system", "content": "Be brief."}, *HELLO]
    for told, marks in ({}, 1), ({"prompt_cache": "off"}, 0):
        assert str(Anthropic("claude-opus-5", **told).render(talk)).count("cache_control") == marks


@pytest.mark.parametrize(
    ("maker", "variable", "header"),
    [
        (Anthropic, "ANTHROPIC_API_KEY", "x-api-key"), (Gemini, "GOOGLE_API_KEY", "x-goog-api-key"),
        (Gemini, "GEMINI_API_KEY", "x-goog-api-key"),
    ],
)  # fmt: skip
async def test_the_key_goes_where_the_service_wants_it(monkeypatch, maker, variable, header):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one")
    service = MessagesService() if maker is Anthropic else GeminiService()
    async with LoopbackServer(service) as server:
        monkeypatch.setenv(variable, "sk-canary-1234")
        llm = maker("m", base_url=server.base_url.removesuffix("/v1"))
        assert (await llm.chat(HELLO)).text == "ok"
        assert async_decorated(str, llm).preview("x").headers[header] == f"${variable}"
        sent = server.requests[0].headers
        assert sent[header] == "sk-canary-1234"
        assert "authorization" not in sent
        assert sent.get("anthropic-version") == ("2023-06-01" if maker is Anthropic else None)


@pytest.mark.parametrize("maker", [Anthropic, Gemini])
async def test_a_missing_key_is_told_with_its_own_name(monkeypatch, maker):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one")
    with pytest.raises(ConfigError, match=maker.key_variables[0]) as caught:
        await maker("m").chat(HELLO)
    assert f'{maker.__name__}("m", api_key=' in str(caught.value)
    assert "OPENAI_API_KEY" not in str(caught.value)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("maker", [Anthropic, Gemini, OpenAICompatible])
async def test_a_function_gives_the_key_and_is_asked_once_more_when_it_has_run_out(maker, is_async):
    services = {Anthropic: MessagesService, Gemini: GeminiService, OpenAICompatible: ResponsesService}
    service = services[maker]()
    asked = []

    def give() -> str:
        asked.append(1)
        return f"token-{len(asked)}-1234"

    async def give_later() -> str:
        await asyncio.sleep(0.01)
        return give()

    valid = ["token-1-1234"]

    def checked(request):
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return service(request) if given in valid else service.error(401, "invalid key")

    async with LoopbackServer(checked) as server:
        base = server.base_url if maker is OpenAICompatible else server.base_url.removesuffix("/v1")
        more: Any = {"wire": "responses"} if maker is OpenAICompatible else {}
        llm = maker("m", base_url=base, api_key=give_later if is_async else give, max_retries=0, **more)
        await asyncio.gather(*(llm.chat(HELLO) for _ in range(5)))
        assert len(asked) == 1  # at most once at a time, and kept
        valid[:] = ["token-2-1234"]
        assert (await llm.chat(HELLO)).text == "ok"
        assert len(asked) == 2
        valid.clear()
        with pytest.raises(AuthenticationError):
            await llm.chat(HELLO)
        assert len(asked) == 3
        assert "token-" not in repr(llm) + str(vars(llm))


async def test_a_function_that_gives_no_key_is_a_config_error():
    def broken() -> str:
        raise OSError("no metadata server")

    async with LoopbackServer(MessagesService()) as server:
        base = server.base_url.removesuffix("/v1")
        for give, said in ((broken, "no metadata server"), (lambda: " ", "the key is empty")):
            with pytest.raises(ConfigError, match=said):
                await Anthropic("m", base_url=base, api_key=give).chat(HELLO)
        assert not server.requests


def test_a_server_that_may_be_any_gets_no_schema_on_responses():
    # llama.cpp passes over `text.format` in silence; so does a server that we know nothing of, perhaps.
    def is_native(address: str | None, **options: Any) -> bool:
        return OpenAICompatible("m", base_url=address, **options).profile.native

    here = "http://127.0.0.1:8080/v1"
    assert not is_native(here, wire="responses")
    assert not is_native("http://127.0.0.1:11434/v1", wire="responses")
    assert is_native(here) and is_native(here, wire="responses", profile="vllm")  # noqa: PT018
    assert is_native(None) and is_native("https://openrouter.ai/api/v1", wire="responses")  # noqa: PT018
    assert Anthropic("claude-opus-5").profile.strict, "its schemas are closed"


async def test_the_address_of_the_client_chooses_the_wire():
    for address, path in (("https://api.openai.com/v1", "/responses"), ("https://h/v1", "/chat/completions")):
        async with openai.AsyncOpenAI(base_url=address, api_key="k") as client:
            assert OpenAICompatible("m", client=client).url().endswith(path)
