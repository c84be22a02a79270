"""`thinking=` reaches each wire in its own words, `think_first=True` asks for reasons; both are told apart from the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Literal

import pytest

from SimpleLLMFunc import Confident, ConfigError, LocalModel, OpenAICompatible, llm_chat, llm_function
from SimpleLLMFunc.base.events import ReplyDelta
from SimpleLLMFunc.interface.anthropic import Anthropic
from SimpleLLMFunc.interface.gemini import Gemini
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import async_decorated
from tests.support.server import LoopbackServer, completion, json_answer
from tests.support.wires import made, wired

ADDRESS = "http://127.0.0.1:9/v1"
CHAT = {"base_url": ADDRESS, "api_key": "k", "wire": "chat"}


counter = partial(async_decorated, int)


def effort(model, thinking, **more):
    body = counter(OpenAICompatible(model, **{**CHAT, **more}), thinking=thinking).preview("a b").body
    assert "thinking" not in body
    return body.get("reasoning_effort")


def test_chat_completions_gets_the_word_that_the_model_has():
    assert effort("gpt-5", "low") == "low"
    assert effort("gpt-5", "off") == "minimal"
    assert effort("gpt-5.4", "off") == "none"
    assert effort("gpt-4o", "off") is None
    assert effort("qwen3-8b", "high") == "high"
    assert effort("gpt-5", None) is None


@pytest.mark.parametrize(
    ("model", "thinking", "has"),
    [
        ("gpt-4o", "low", "It has: None, off"),
        ("o3", "off", "It has: None, low, medium, high"),
        ("gpt-5.4", 2048, "It has: None, off, low, medium, high"),
        ("qwen3-8b", 2048, "It has: None, off, low, medium, high"),
    ],
)
async def test_what_a_model_does_not_have_is_an_error_before_anything_is_sent(model, thinking, has):
    async with LoopbackServer(lambda _: json_answer(completion("2"))) as server:
        ask = counter(OpenAICompatible(model, **{**CHAT, "base_url": server.base_url}), thinking=thinking)
        with pytest.raises(ConfigError, match=has):
            ask.preview("a b")
        with pytest.raises(ConfigError, match=has):
            await ask("a b")
        assert server.requests == []


def test_the_other_wires_have_words_of_their_own():
    words = {
        "claude-sonnet-4-5": counter(Anthropic("claude-sonnet-4-5", api_key="k"), thinking=2048),
        "gpt-5.6": counter(
            OpenAICompatible("gpt-5.6", base_url=ADDRESS, api_key="k", wire="responses"), thinking="low"
        ),
        "gemini-3.8-flash": counter(Gemini("gemini-3.8-flash", api_key="k"), thinking="low"),
    }
    bodies = {name: ask.preview("a b").body for name, ask in words.items()}
    assert bodies["claude-sonnet-4-5"]["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert bodies["gpt-5.6"]["reasoning"] == {"effort": "low", "summary": "auto"}
    assert bodies["gemini-3.8-flash"]["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "low"


@pytest.mark.parametrize("given", ["a lot", 0, -1, True, 1.5])
def test_another_word_is_refused_where_it_is_written(given):
    with pytest.raises(ConfigError, match=r"thinking must be one of .* or a number of tokens"):
        llm_function(thinking=given)
    with pytest.raises(ConfigError, match="thinking must be one of"):
        llm_chat(thinking=given)


def test_who_reads_chinese_is_told_in_chinese(monkeypatch):
    monkeypatch.setenv("SIMPLELLMFUNC_LANG", "zh-CN")
    with pytest.raises(ConfigError, match=r"thinking 只能是 .* 或者一个 token 数"):
        llm_function(thinking="a lot")
    for llm in (
        OpenAICompatible("o3", **CHAT),
        Anthropic("claude-opus-5-5", api_key="k"),
        Gemini("gemini-4-argon", api_key="k"),
    ):
        said = f"{llm.model_name} 没有 thinking='off'。可以写的是：None、low、medium、high"
        with pytest.raises(ConfigError, match=said):
            counter(llm, thinking="off").preview("a b")


def test_a_services_own_parameter_of_this_name_goes_out_as_it_is():
    ask = counter(OpenAICompatible("glm-4.6", **CHAT), thinking={"type": "disabled"})
    assert ask.preview("a").body["thinking"] == {"type": "disabled"}
    changed = ask.with_options(thinking="low").preview("a").body
    assert ("thinking" in changed, changed["reasoning_effort"]) == (False, "low")
    assert "thinking" not in ask.with_options(thinking=None).preview("a").body


async def test_sampling_parameters_stay_where_a_model_takes_them():
    async with LoopbackServer(lambda _: json_answer(completion("2"))) as server:
        given = {**CHAT, "base_url": server.base_url}
        told = {
            name: (await counter(OpenAICompatible(name, **given), temperature=0, **more).call("a b")).downgrades
            for name, more in {"gpt-4o": {}, "qwen": {}, "gpt-5.4": {"thinking": "off"}, "gpt-5": {}}.items()
        }
        sent = {each.body["model"]: "temperature" in each.body for each in server.requests}
    assert sent == {"gpt-4o": True, "qwen": True, "gpt-5.4": True, "gpt-5": False}
    left_out = ("sampling: temperature is left out", "a model that reasons takes none")
    assert told == {"gpt-4o": [], "qwen": [], "gpt-5.4": [], "gpt-5": [left_out]}


def thoughtful(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "reasoning_content": f"about {text}"}


async def test_what_the_model_thought_is_told_of_each_attempt_and_never_in_the_answer():
    result = await counter(ScriptedLLM(thoughtful("two"), thoughtful("2"))).call("a b")
    assert (result.value, result.text, result.thinking) == (2, "2", "about 2")
    assert [each.thinking for each in result.attempts] == ["about two", "about 2"]
    assert "thinking='about 2'" in repr(result)
    assert "about 2" in result._repr_html_()
    plain = await counter(ScriptedLLM("2")).call("a b")
    assert (plain.thinking, plain.attempts[0].thinking) == ("", "")
    assert "thinking" not in plain._repr_html_()
    assert "thinking" not in {name for name, value, default in plain.__rich_repr__() if value != default}


@pytest.mark.parametrize("name", ["messages", "responses", "gemini"])
async def test_the_services_show_their_thinking_in_replies_and_streams(name):
    said = {"texts": ["2"], "thinking": "one and one"}
    async with wired(name, said, said) as (llm, _):
        ask = counter(llm, thinking="low")
        result = await ask.call("a b")
        assert (result.value, result.thinking) == (2, "one and one")
        pieces = [event async for event in ask.events("a b") if isinstance(event, ReplyDelta)]
    assert "".join(piece.thinking for piece in pieces) == "one and one"
    assert "".join(piece.text for piece in pieces) == "2"


# --- reasons in a field before the value, and in `Result.thinking` -----------------------------------------------


def summed(llm, returns=int, **options):
    return async_decorated(returns, llm, **{"think_first": True, **options})


def said(request):
    """Answer with reasons, in the form that was asked for; a service's own thoughts come before."""
    answer = json.dumps({"reasons": "2 and 3 are 5", "value": 5})
    data = completion(answer)
    data["choices"][0]["message"]["reasoning_content"] = "hm"
    return json_answer(data)


@pytest.mark.parametrize("profile", ["openai", "groq"])
async def test_the_reasons_come_before_the_value_and_are_kept_apart(profile, tmp_path):
    async with LoopbackServer(said) as server:
        total = summed(made("chat", server, model="gpt-4.1", profile=profile), examples=[("1 and 1", 2)])
        result = await total.call("2 and 3")
        assert [value async for value in total.stream("2 and 3")] == [5]
        for _ in range(2):
            assert [row.value for row in (await total.map(["2 and 3"], checkpoint=tmp_path / "rows.db")).rows] == [5]
        sure = await summed(made("chat", server, model="gpt-4.1", profile=profile), Confident[int], votes=3)("x")
        assert await total.with_options(llm_interface=ScriptedLLM('{"value": 2}'))("as the example does it") == 2
        for given, examples in (("x", [("1 and 1", 2)]), ('{"value": 2}', None)):
            with pytest.raises(ValueError, match=r'fit int: (reasons|the answer: expected {"reasons", "value"})'):
                await total.with_options(llm_interface=ScriptedLLM(given), max_reasks=0, examples=examples)("x")
    assert (result.value, result.thinking) == (5, "hm\n2 and 3 are 5")
    assert (sure.value, sure.agreement) == (5, {"": 1.0})
    body = server.requests[0].body
    assert [each["content"] for each in body["messages"] if each["role"] == "assistant"] == ['{"value": 2}']
    if profile == "openai":
        assert list(body["response_format"]["json_schema"]["schema"]["properties"]) == ["reasons", "value"]
    else:
        assert body["messages"][0]["content"].index('"reasons"') < body["messages"][0]["content"].index('"value"')


@pytest.mark.parametrize(
    ("returns", "options"),
    [
        (str, {}), (None, {}), (AsyncIterator[int], {}), (bool, {"output_mode": "choice"}), (int, {"output_mode": "text"}),
        (Confident[bool], {"confidence": "logprobs"}), (int, {"think_first": "yes"}),
    ],
)  # fmt: skip
def test_where_no_reasons_can_stand(returns, options):
    with pytest.raises(ConfigError, match="think_first"):
        summed(LocalModel(), returns, **options)


def test_it_makes_the_function_another_one_and_a_literal_is_no_choice_then():
    mood = summed(LocalModel(), Literal["glad", "sad"])
    assert mood.preview("x").output_mode == "native"
    assert mood._pipeline.metadata.version != mood.with_options(think_first=False)._pipeline.metadata.version
