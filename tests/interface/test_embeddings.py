"""Embeddings over HTTP, in the cache, from the local model; and what is chosen by them."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest

from SimpleLLMFunc import Anthropic, CachedLLM, FallbackLLM, Gemini, LocalModel, OpenAICompatible, llm_function
from SimpleLLMFunc.errors import BadReply, BudgetExceeded, ConfigError, ServerUnavailable, UsageError
from SimpleLLMFunc.interface.attempts.guard import forbid_real_calls
from SimpleLLMFunc.interface.spending import budget
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import Tool
from tests.support.functions import async_function_of
from tests.support.server import Answer, LoopbackServer

WORDS = ("cat", "kitten", "stock", "share")


def vector(text):
    """Return what a small model might: animals point one way, money the other."""
    return [sum(text.count(word) for word in pair) + 0.01 for pair in (WORDS[:2], WORDS[2:])]


def answer(request):
    body = request.body
    if request.path.endswith(":batchEmbedContents"):
        texts = [each["content"]["parts"][0]["text"] for each in body["requests"]]
        return json_body({"embeddings": [{"values": vector(text)} for text in texts]})
    data = [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(body["input"])]
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    return json_body({"object": "list", "data": data[::-1], "model": body["model"], "usage": usage})


def json_body(data, status=200):
    return Answer(status, {"content-type": "application/json"}, json.dumps(data).encode())


@pytest.fixture
async def server():
    async with LoopbackServer(handler=answer) as server:
        yield server


def model(server, **options):
    return OpenAICompatible("text-embedding-3-small", base_url=server.base_url, retry_delay=0.001, **options)


@pytest.mark.parametrize("make", ["chat", "responses", "client", "gemini"])
async def test_each_wire_gives_a_vector_for_each_text(server, make):
    texts = [f"{word} {number}" for number in range(60) for word in ("cat", "stock")]
    async with openai.AsyncOpenAI(api_key="k", base_url=server.base_url) as client:
        if make == "gemini":
            llm = Gemini("gemini-embedding-001", api_key="k", base_url=server.base_url.removesuffix("/v1"))
        else:
            llm = OpenAICompatible("m", client=client) if make == "client" else model(server, wire=make, api_key="k")
        with budget(requests=2) as spent:
            assert await llm.embed(texts) == list(map(vector, texts))
        assert spent.requests == 2  # a hundred go out at a time
        assert (spent.tokens == 14) is (make != "gemini")
        assert await llm.embed([]) == []
    assert server.requests[0].headers["accept"] == "application/json"
    assert make != "gemini" or server.requests[0].path.startswith("/v1beta/")


@pytest.mark.parametrize(
    "data",
    [
        *({"data": [{"index": index, "embedding": vector}, {"index": 1, "embedding": [1.0]}]}
          for index, vector in ((1, [1.0]), (0, "AAAA"), (0, []))),
        {"data": []}, [], "no",
    ],
)  # fmt: skip
async def test_what_is_no_list_of_vectors_is_refused(data):
    async with LoopbackServer(handler=lambda _: json_body(data)) as server:
        with pytest.raises(BadReply):
            await model(server, api_key="k", max_retries=0).embed(["a", "b"])


async def test_a_failed_request_is_tried_again_and_a_lasting_failure_is_ours(server):
    replies = iter([json_body({"error": {"message": "busy"}}, 503)])
    server_answers = lambda request: next(replies, None) or answer(request)
    async with LoopbackServer(handler=server_answers) as flaky:
        assert await model(flaky, api_key="k").embed(["cat"]) == [vector("cat")]
        assert len(flaky.requests) == 2
    async with LoopbackServer(handler=lambda _: json_body({"error": {"message": "busy"}}, 503)) as down:
        with pytest.raises(ServerUnavailable):
            await model(down, api_key="k", max_retries=1).embed(["cat"])


async def test_limits_hold_for_embeddings(server):
    llm = model(server, api_key="k")
    with pytest.raises(UsageError), forbid_real_calls():
        await llm.embed(["cat"])
    with budget(requests=1), pytest.raises(BudgetExceeded):
        await llm.embed(["cat"] * 101)
    with budget(usd=0.5):  # nobody sends a bill
        await OpenAICompatible("m", base_url=server.base_url).embed(["cat"])
    for wrong in ("cat", None, (text for text in ["cat"])):
        with pytest.raises(UsageError, match="a list of texts"):
            await llm.embed(wrong)
    assert len(server.requests) == 2
    for without in (ScriptedLLM("x"), Anthropic("claude-opus-5", api_key="k")):
        with pytest.raises(ConfigError, match=r"^(scripted gives|claude-opus-5: the service has) no embeddings"):
            await without.embed(["cat"])


async def test_a_cache_asks_for_new_texts_only_and_a_fallback_for_one_model_s_vectors(server, tmp_path):
    llm = CachedLLM(FallbackLLM(model(server, api_key="k"), model(server, api_key="other")), tmp_path / "c.sqlite")
    assert await llm.embed(["cat", "stock", "cat"]) == [vector(text) for text in ("cat", "stock", "cat")]
    assert await llm.embed(["stock", "share"]) == [vector("stock"), vector("share")]
    assert await CachedLLM(llm.llm.members[0], llm.path).embed(["share"]) == [vector("share")]
    assert [request.body["input"] for request in server.requests] == [["cat", "stock"], ["share"]]
    await llm.embed(["cat"], dimensions=1)
    assert [request.key for request in server.requests] == ["k"] * 3
    llm.close()


async def test_examples_and_tools_are_chosen_by_vectors(server):
    examples = [({"text": "a kitten"}, "animal"), ({"text": "a share"}, "money"), ({"text": "nothing"}, "none")]
    tools = [Tool(lambda: "", f"tool_{number}", f"About a {word}.", {}) for number, word in enumerate(WORDS)]
    llm = ScriptedLLM(tool_calls(("find_tools", {"query": "stock"})), "money", "animal")

    chosen = {"embeddings": model(server, api_key="k"), "max_examples": 1, "toolkit_search": True}
    kind = async_function_of(llm, examples=examples, toolkit=tools, **chosen)
    assert await kind("stock stock") == "money"
    assert "a share" in str(llm.requests[0])
    assert "a kitten" not in str(llm.requests[0])
    assert {tool["function"]["name"] for tool in llm.calls[1].tools} == {"find_tools", "tool_2", "tool_3"}
    assert await kind("cat") == "animal"
    assert "a kitten" in str(llm.requests[2])
    assert [len(request.body["input"]) for request in server.requests] == [3, 1, 4, 1, 1]
    with pytest.raises(ConfigError, match="embeddings must be an LLM_Interface"):
        llm_function(embeddings="text-embedding-3-small")


@pytest.mark.local_model
def test_the_local_model_gives_embeddings_next_to_its_answers():
    with budget(requests=1):
        texts = ["The cat sleeps.", "A cat is asleep.", "Shares fell by ten percent."]
        cat, asleep, shares = asyncio.run(LocalModel(threads=1).embed(texts))
    assert len(cat) == len(shares) > 100

    def likeness(one, other):
        return sum(x * y for x, y in zip(one, other, strict=True))

    assert likeness(cat, asleep) ** 2 / likeness(asleep, asleep) > likeness(cat, shares) ** 2 / likeness(shares, shares)
