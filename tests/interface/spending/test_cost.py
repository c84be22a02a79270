"""What an answer costs, and budgets in USD."""

import asyncio
import functools
import re
import sys

import pytest

from SimpleLLMFunc.errors import BudgetExceeded, ConfigError
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.interface.composite.fallback import FallbackLLM
from SimpleLLMFunc.interface.llm_interface import load_prices, priced, require_prices
from SimpleLLMFunc.interface.local.local_model import LocalModel
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.spending import cost as module
from SimpleLLMFunc.interface.spending.budget import budget
from SimpleLLMFunc.interface.spending.cost import price_of
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import ChatCompletion, CompletionUsage, Usage
from tests.support.asking import HELLO
from tests.support.functions import async_function_of

prices = pytest.importorskip("genai_prices")

OPENAI = "https://api.openai.com/v1"


@pytest.fixture
def _not_installed(monkeypatch):
    monkeypatch.setattr(module, "_genai_prices", functools.cache(lambda: None))


def theirs(model, provider, **counts):
    return float(prices.calc_price(prices.Usage(**counts), model, provider_id=provider).total_price)


# --- the price -------------------------------------------------------------------------------------------


def test_a_price_is_that_of_the_list():
    usage = Usage(1000, 500, 200, 100)
    counts = {"input_tokens": 1000, "output_tokens": 500, "cache_read_tokens": 200, "output_reasoning_tokens": 100}
    assert price_of(usage, "gpt-5-mini", "openai", OPENAI) == theirs("gpt-5-mini", "openai", **counts) > 0


def test_cached_tokens_are_cheaper_and_reasoning_is_written():
    full = price_of(Usage(1000, 100), "gpt-5-mini", "openai")
    assert 0 < price_of(Usage(1000, 100, 1000), "gpt-5-mini", "openai") < full
    assert price_of(Usage(1000, 100, 0, 90), "gpt-5-mini", "openai") == full
    # Where reasoning has a price of its own, it counts.
    answer, reasoning = (
        price_of(Usage(0, 100, 0, tokens), "perplexity/sonar-deep-research", "openrouter") for tokens in (0, 100)
    )
    assert 0 < reasoning < answer == theirs("perplexity/sonar-deep-research", "openrouter", output_tokens=100)


@pytest.mark.parametrize(
    ("ours", "name", "model"),
    [
        ("gemini", "google", "gemini-2.5-flash"), ("xai", "x-ai", "grok-3"), ("moonshot", "moonshotai", "kimi-k2-0905-preview"),
        ("azure", "azure", "gpt-4o"), ("deepseek", "deepseek", "deepseek-chat"), ("anthropic", "anthropic", "claude-sonnet-4-5"),
        ("mistral", "mistral", "mistral-large-latest"), ("groq", "groq", "openai/gpt-oss-20b"),
        ("openrouter", "openrouter", "openai/gpt-4o"),
    ],
)  # fmt: skip
def test_providers_go_by_their_names_in_the_list(ours, name, model):
    assert price_of(Usage(1000), model, ours) == theirs(model, name, input_tokens=1000) > 0


def test_what_is_written_into_the_cache_has_a_price_of_its_own():
    plain, written = Usage(1000, 10), Usage(1000, 10, cache_write_tokens=800)
    counts = {"input_tokens": 1000, "output_tokens": 10, "cache_write_tokens": 800}
    claude, gpt = ("claude-sonnet-4-5", "anthropic"), ("gpt-4o", "openai")
    assert price_of(written, *claude) == theirs(*claude, **counts) > price_of(plain, *claude)
    assert price_of(written, *gpt) == price_of(plain, *gpt)
    all_written = price_of(Usage(10, 0, 4, cache_write_tokens=6), *claude)
    assert price_of(Usage(10, 0, 4, cache_write_tokens=50), *claude) == all_written


def test_behind_an_unknown_address_a_model_costs_what_its_maker_takes():
    expected = theirs("gpt-4o", "openai", input_tokens=1000)
    for model in ("gpt-4o", "openai/gpt-4o"):
        for address in ("https://gateway.example/v1", "http://127.0.0.1:4000/v1", None):
            assert price_of(Usage(1000), model, "openai-compatible", address) == expected
    # The list knows some addresses that we have no name for.
    here = price_of(Usage(1000), "llama3.1-8b", "openai-compatible", "https://api.cerebras.ai/v1")
    assert here == theirs("llama3.1-8b", "cerebras", input_tokens=1000)


HERE = "http://localhost:11434/v1"


@pytest.mark.parametrize(
    ("model", "provider", "address"),
    [
        ("no-such-model", "openai", OPENAI), ("no-such-model", "", None), ("", "openai", None),
        ("gpt-oss:120b-cloud", "ollama", HERE),
        ("deepseek-chat", "siliconflow", "https://api.siliconflow.cn/v1"), ("no-such-maker/gpt-4o", "", None),
        # These can be run at home, and then nobody sends a bill.
        ("mistral-7b", "openai-compatible", "http://127.0.0.1:8000/v1"),
        ("gpt-oss-20b", "openai-compatible", "http://gpu-box:8000/v1"),
        ("scripted", "scripted", None),
    ],
)  # fmt: skip
def test_what_no_one_knows_is_none(model, provider, address):
    assert price_of(Usage(1000, 100), model, provider, address) is None


async def test_what_runs_here_costs_nothing_and_no_list_is_loaded_for_it(monkeypatch):
    assert LocalModel().price(Usage(1000, 100)) == price_of(Usage(1000), "llama3.1:8b", "ollama", HERE) == 0.0
    monkeypatch.setattr(module, "_genai_prices", functools.cache(lambda: pytest.fail("the list was loaded")))
    await load_prices(LocalModel())


def test_counts_that_contradict_each_other_are_priced_as_far_as_they_go():
    assert price_of(Usage(10, 5, 50, 70), "gpt-4o", "openai") == price_of(Usage(10, 5, 10, 5), "gpt-4o", "openai")
    assert price_of(Usage(-5, 5), "gpt-4o", "openai") == price_of(Usage(0, 5), "gpt-4o", "openai")


def test_the_reply_names_the_model_else_the_request_does():
    llm = OpenAICompatible("my-deployment", base_url="https://me.openai.azure.com/openai/v1")
    assert llm.price(Usage(1000)) is None
    assert llm.price(Usage(1000), "gpt-4o-2024-08-06") == theirs("gpt-4o", "azure", input_tokens=1000)
    llm = OpenAICompatible("gpt-4o")
    assert llm.price(Usage(1000), "something else") == llm.price(Usage(1000)) > 0


# --- without the extra, and how it is loaded -------------------------------------------------------------


@pytest.mark.usefixtures("_not_installed")
async def test_without_the_extra_no_price_is_known():
    llm = ScriptedLLM("x", model_name="gpt-4o")
    reply = await llm.chat(HELLO)
    assert await priced(reply, llm) is reply
    assert LocalModel().price(Usage(1)) == 0.0


def test_a_broken_package_is_as_none(monkeypatch, caplog):
    class Broken:
        def find_spec(self, name, *_):
            if name == "genai_prices":
                raise RuntimeError("broken")

    again = module._genai_prices.__wrapped__
    monkeypatch.setattr(module, "_genai_prices", functools.cache(again))
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price_of(Usage(1), "gpt-4o", "openai") is None
    monkeypatch.setattr(module, "_genai_prices", functools.cache(again))
    monkeypatch.delitem(sys.modules, "genai_prices")
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    assert price_of(Usage(1), "gpt-4o", "openai") is None
    assert "cannot be used" in caplog.text


# --- where it shows --------------------------------------------------------------------------------------


def reply(text, prompt=1000, completion=100, model="gpt-4o"):
    choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return ChatCompletion.from_dict({"model": model, "choices": choices, "usage": usage})


EACH = theirs("gpt-4o", "openai", input_tokens=1000, output_tokens=100)


async def test_a_sum_with_an_unknown_part_is_unknown():
    ask = async_function_of(ScriptedLLM(reply("x"), model_name="m"))
    assert (await async_function_of(ScriptedLLM(reply("x", model="unheard-of"))).call("x")).cost is None
    assert (await ask.call("x")).cost == EACH  # the reply names its model


async def test_over_the_wire_whole_and_streamed(server):
    ask = async_function_of(OpenAICompatible("gpt-4o", base_url=server.base_url))
    expected = theirs("gpt-4o", "openai", input_tokens=5, output_tokens=3)
    assert (await ask.call("x")).cost == expected
    with budget() as spent:
        _ = [piece async for piece in ask.stream("x")]
    assert spent.usd == expected


def test_a_preview_estimates_the_input(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    preview = async_function_of(OpenAICompatible("gpt-4o")).preview("x" * 4000)
    assert preview.cost == theirs("gpt-4o", "openai", input_tokens=preview.input_tokens)
    assert async_function_of(ScriptedLLM()).preview("x").cost is None
    assert async_function_of(LocalModel()).preview("x").cost == 0.0


async def test_a_cost_that_is_known_already_stays():
    told = ChatCompletion((), usage=CompletionUsage(1000, 100, 1100, cost=0.5))
    assert await priced(told, ScriptedLLM(model_name="gpt-4o")) is told
    assert (told.usage.tokens.cost, told.to_dict()["usage"].get("cost")) == (0.5, None)


# --- budgets ---------------------------------------------------------------------------------------------


async def test_a_budget_in_usd_stops_before_the_request_that_would_break_it():
    llm = ScriptedLLM(reply("x"), repeat=True, model_name="gpt-4o")
    ask = async_function_of(llm)
    with budget(usd=2.5 * EACH) as spent:
        for _ in range(3):
            await ask("x")
        with pytest.raises(BudgetExceeded) as caught:
            await ask("x")
    assert spent.usd == pytest.approx(3 * EACH)
    assert (caught.value.unit, len(llm.calls)) == ("usd", 3)
    # The input alone would cost more than what is left.
    with budget(usd=EACH), pytest.raises(BudgetExceeded, match="usd"):
        await ask("many words " * 10_000)
    assert len(llm.calls) == 3


async def test_parallel_calls_reserve_what_they_will_read():
    llm = ScriptedLLM(reply("x", prompt=4000, completion=1), repeat=True, model_name="gpt-4o")
    ask = async_function_of(llm)
    words = "words " * 2700  # about 4,000 tokens
    price = theirs("gpt-4o", "openai", input_tokens=4000)
    with budget(usd=5.5 * price) as spent:
        results = await asyncio.gather(*(ask(words) for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(result, BudgetExceeded) for result in results) >= 14
    assert spent.usd <= 5.5 * price
    assert spent._reserved_usd == pytest.approx(0)


async def test_a_budget_that_cannot_be_kept_is_told_before_anything_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    unknown = OpenAICompatible("no-such-model")
    with budget(usd=1) as spent, pytest.raises(ConfigError, match=r"no-such-model.*tokens"):
        await async_function_of(unknown)("x")
    assert spent.requests == 0
    with budget(usd=1), pytest.raises(ConfigError, match="no-such-model"):
        await async_function_of(FallbackLLM(ScriptedLLM("x", model_name="gpt-4o"), unknown))("x")
    await require_prices(FallbackLLM(OpenAICompatible("gpt-4o"), LocalModel()))


@pytest.mark.usefixtures("_not_installed")
async def test_without_the_extra_it_says_how_to_install_it():
    with pytest.raises(ConfigError, match=re.escape(install_line("cost"))):
        await require_prices(OpenAICompatible("gpt-4o"))


async def test_where_no_one_sends_a_bill_a_budget_in_usd_holds_anyway(server):
    for llm in (ScriptedLLM("x"), OpenAICompatible("m", base_url=server.base_url)):
        with budget(usd=0.5, tokens=10_000, requests=20, seconds=60) as spent:
            await async_function_of(llm)("x")
        assert (spent.usd, spent.requests) == (0, 1)
