"""`first=` and `fallback=`: plain code before the model, or behind it; who answered, and how often both agree."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import budget, errors, llm_function
from SimpleLLMFunc.base.events import RunFinished
from SimpleLLMFunc.guards import Block, Change, ModelRetry
from SimpleLLMFunc.llm_decorator.answering.answering import CHANCE
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type.markers import ABSTAIN, Abstain, Abstention, Confident, Quoted
from tests.support.functions import async_decorated, decorated, never


class Label(BaseModel):
    name: str


DOWN = errors.ServerUnavailable("m", status=503)


def rule(text: str) -> Label | Literal[Abstention.ABSTAIN]:
    return Label(name="refund") if "refund" in text else ABSTAIN


labeller = partial(async_decorated, Label)


def answers(*names, **options):
    return ScriptedLLM(
        *[name if isinstance(name, BaseException) else f'{{"name": "{name}"}}' for name in names], **options
    )


# --- first ----------------------------------------------------------------------------------------------------


async def test_the_code_answers_what_it_can_and_the_model_the_rest():
    llm = answers("other")
    label = labeller(llm, first=rule)
    result = await label.call("I want a refund")
    assert (result.value, result.source, result.attempts) == (Label(name="refund"), "first", [])
    assert (result.usage.total_tokens, result.cost) == (0, 0.0)
    assert llm.calls == []
    other = await label.call("hello")
    assert (other.value, other.source) == (Label(name="other"), "model")
    assert (label.agreement.by_first, label.agreement.by_model, label.agreement.rate) == (1, 1, None)


@pytest.mark.parametrize("how", ["return", "raise"])
@pytest.mark.parametrize("is_async", [False, True])
def test_sync_and_async_code_may_return_or_raise_its_abstention(how, is_async):
    def code(text: str):
        if text == "x":
            return "code"
        if how == "raise":
            raise Abstain
        return ABSTAIN

    async def acode(text: str):
        await asyncio.sleep(0)
        return code(text)

    ask = decorated(str, ScriptedLLM("model"), first=acode if is_async else code)
    assert ask("x") == "code"
    assert ask("y") == "model"
    assert ask.call("x").source == "first"


async def test_sync_code_runs_in_a_thread_and_may_call_another_function():
    inner = decorated(str, ScriptedLLM("inner"))
    threads = []

    def code(text: str) -> str:
        threads.append(threading.current_thread())
        return inner(text)

    assert await async_decorated(str, ScriptedLLM(), first=code)("x") == "inner"
    assert threads[0] is not threading.main_thread()


async def test_what_the_code_returns_is_of_the_type():
    label = labeller(answers(), first=lambda text: {"name": 3})
    with pytest.raises(errors.UsageError) as caught:
        await label("x")
    assert "first=" in str(caught.value)
    assert "{'name': 3}" in str(caught.value)
    assert "name: Input should be a valid string" in str(caught.value)
    with pytest.raises(errors.UsageError, match="not what the function returns"):
        await labeller(answers(), first=lambda text: None)("x")


async def test_an_error_of_the_code_is_the_callers():
    def code(text):
        raise KeyError(text)

    with pytest.raises(KeyError, match="x"):
        await labeller(answers(), first=code)("x")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (lambda: None, "is called with the arguments"),
        (lambda a, b: None, "is called with the arguments"),
        (5, "must be a function"),
    ],
)
def test_code_that_does_not_take_the_arguments_is_refused(code, said):
    with pytest.raises((errors.SignatureError, errors.ConfigError), match=said):
        labeller(answers(), first=code)
    with pytest.raises((errors.SignatureError, errors.ConfigError), match=said):
        labeller(answers()).with_options(fallback=code)


def test_the_order_of_the_parameters_is_compared():
    def ask(question: str, limit: int) -> str:
        """Ask."""

    def swapped(limit, question):
        return ABSTAIN

    def renamed(q: str, n: float) -> str:
        return q * int(n)

    with pytest.raises(errors.SignatureError, match="same order"):
        llm_function(first=swapped)(ask)
    assert llm_function(first=renamed)(ask)("ab", 2) == "abab"


def test_keywords_defaults_and_methods():
    def code(text: str, *, times: int) -> str:
        return text * times

    @llm_function(first=code)
    def ask(text: str, *, times: int = 2) -> str:
        """Ask."""

    assert ask("a") == "aa"
    assert ask("a", times=3) == "aaa"

    class Shop:
        name = "shop"

        def _known(self, text):
            return f"{self.name}:{text}"

        @llm_function(first=_known)
        def ask(self, text: str) -> str:
            """Ask."""

        @llm_function(first=lambda text: f"plain:{text}")
        def other(self, text: str) -> str:
            """Ask."""

    assert Shop().ask("a") == "shop:a"
    assert Shop.ask(Shop(), "a") == "shop:a"
    assert Shop().other("a") == "plain:a"
    assert Shop().ask.agreement.by_first == 2


def test_an_iterator_takes_no_plain_code():
    with pytest.raises(errors.SignatureError, match="one value"):
        decorated(Iterator[int], first=lambda text: [1])


async def test_first_with_confident_and_quoted():
    ask = async_decorated(
        Confident[str],
        ScriptedLLM("model", repeat=True),
        votes=2,
        first=lambda text: "code" if text == "x" else ABSTAIN,
    )
    assert await ask("x") == Confident("code")
    assert (await ask("y")).value == "model"
    assert (await ask.with_options(first=lambda text: Confident("own"))("x")).value == "own"
    with pytest.raises(errors.UsageError, match="not what the function returns"):
        await ask.with_options(first=lambda text: Confident(3))("x")
    quote = async_decorated(Quoted[str], ScriptedLLM(), first=lambda text: text[2:5] if text else "not there")
    value = await quote("a bcd")
    assert (value, value.start) == ("bcd", 2)
    with pytest.raises(errors.UsageError, match="word for word"):
        await quote("")


# --- the other way round --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DOWN, errors.ConnectionFailed("m", reason="refused")])
async def test_the_fallback_answers_where_the_service_is_down(error):
    label = labeller(answers(error), fallback=lambda text: Label(name=text))
    result = await label.call("x")
    assert (result.value, result.source) == (Label(name="x"), "fallback")
    assert label.agreement.by_fallback == 1


@pytest.mark.parametrize(
    "error", [errors.AuthenticationError("m", status=401), errors.BadRequest("m", status=400, body="bad")]
)
async def test_a_mistake_is_not_hidden_by_the_fallback(error):
    with pytest.raises(type(error)):
        await labeller(answers(error), fallback=lambda text: Label(name=text))("x")
    llm = ScriptedLLM("no", repeat=True)
    with pytest.raises(errors.ResponseParseError):
        await labeller(llm, fallback=lambda text: Label(name=text), max_reasks=0)("x")


async def test_a_fallback_that_abstains_leaves_the_error():
    with pytest.raises(errors.ServerUnavailable):
        await labeller(answers(DOWN), fallback=rule)("hello")


async def test_a_spent_budget_falls_back():
    llm = answers("model", repeat=True)
    label = labeller(llm, fallback=lambda text: Label(name="code"))
    with budget(requests=1):
        assert [(await label.call("x")).source for _ in range(3)] == ["model", "fallback", "fallback"]
    with budget(requests=0), pytest.raises(errors.BudgetExceeded):
        await labeller(llm)("x")


async def test_a_near_deadline_falls_back_with_time_left():
    llm = ScriptedLLM(never, repeat=True)
    label = labeller(llm, fallback=lambda text: Label(name="code"), fallback_reserve=30, deadline=30.2)
    result = await label.call("x")
    assert (result.source, len(llm.calls)) == ("fallback", 1)
    assert result.seconds < 20
    assert (await label.with_options(deadline=10).call("x")).source == "fallback"
    assert len(llm.calls) == 1  # with less left than the reserve the model is not asked

    async def slow(text: str) -> Label:
        await asyncio.Event().wait()
        return Label(name="never")

    with pytest.raises(errors.DeadlineExceeded):
        await labeller(llm, fallback=slow, deadline=0.3, fallback_reserve=0.2)("x")
    assert len(asyncio.all_tasks()) == 1


async def test_first_and_fallback_together():
    llm = answers("model", DOWN)
    label = labeller(llm, first=rule, fallback=lambda text: Label(name="last"))
    assert [(await label.call(text)).source for text in ("refund", "a", "b")] == ["first", "model", "fallback"]


# --- agreement -------------------------------------------------------------------------------------------------


async def test_a_sampled_share_is_asked_of_both():
    label = labeller(answers("refund", "complaint", DOWN), first=rule, sample=1.0)
    results = [await label.call(f"refund {number}") for number in range(3)]
    assert [result.source for result in results] == ["first"] * 3
    assert all(result.value == Label(name="refund") for result in results)
    assert results[0].usage.total_tokens > 0
    agreement = label.agreement
    assert (agreement.compared, agreement.agreed, agreement.failed, agreement.rate) == (2, 1, 1, 0.5)
    [difference] = agreement.disagreements
    assert difference.arguments == {"text": "refund 1"}
    assert (difference.code, difference.model) == (Label(name="refund"), Label(name="complaint"))
    agreement.reset()
    assert (agreement.by_first, agreement.rate, [*agreement.disagreements]) == (0, None, [])


async def test_the_sample_is_about_that_share():
    llm = answers("refund", repeat=True)
    label = labeller(llm, first=rule, sample=0.25)
    CHANCE.seed(11)
    for _ in range(400):
        await label("refund")
    assert 60 < label.agreement.compared == len(llm.calls) < 140  # 100 expected, 8.7 the deviation
    assert label.agreement.by_first == 400


async def test_a_fallback_is_compared_with_the_model():
    def code(text: str) -> Label:
        if text == "bad":
            raise ValueError(text)
        return Label(name="model" if text == "a" else "code")

    label = labeller(answers("model", repeat=True), fallback=code, sample=1)
    assert [(await label.call(text)).source for text in ("a", "b", "bad")] == ["model"] * 3
    assert (label.agreement.compared, label.agreement.agreed, label.agreement.failed) == (2, 1, 1)


def test_a_sample_needs_code():
    with pytest.raises(errors.ConfigError, match="sample"):
        llm_function(sample=0.5)
    with pytest.raises(errors.ConfigError, match="sample"):
        llm_function(first=rule, sample=2)


# --- the other views ------------------------------------------------------------------------------------------


async def test_a_map_asks_the_model_for_the_rest_only(tmp_path):
    llm = answers("other", repeat=True)
    label = labeller(llm, first=rule)
    rows = ["refund a", "b", "refund c", "d"]
    report = await label.map(rows, checkpoint=tmp_path / "run.sqlite")
    assert [row.value.name for row in report.rows] == ["refund", "other", "refund", "other"]
    assert len(llm.calls) == 2
    assert [row.usage.total_tokens > 0 for row in report.rows] == [False, True, False, True]
    report.close()
    again = await label.map(rows, checkpoint=tmp_path / "run.sqlite")
    assert again.counts.restored == 4
    assert [row.value.name for row in again.rows] == ["refund", "other", "refund", "other"]
    again.close()
    changed = label.with_options(first=lambda text: Label(name="new"))
    with pytest.warns(UserWarning, match="with other prompt"):
        report = await changed.map(rows, checkpoint=tmp_path / "run.sqlite")
    assert {row.value.name for row in report.rows} == {"new"}
    report.close()
    with pytest.raises(errors.UsageError, match="engine"):
        await label.map(rows, engine="openai-batch", checkpoint=tmp_path / "batch.sqlite")


async def test_stream_events_and_tools():
    label = labeller(answers("other", repeat=True), first=rule)
    assert [value.name async for value in label.stream("refund")] == ["refund"]
    grown = [getattr(value, "name", None) async for value in label.stream("x")]
    assert grown[-1] == "other"
    assert len(grown) > 1  # what the model says grows
    assert [event async for event in label.events("refund")] == []
    assert any([isinstance(event, RunFinished) async for event in label.events("x")])
    assert "text" in label.preview("x").messages[-1]["content"]


async def test_a_stream_falls_back_only_before_anything_was_shown():
    fallback = {"fallback": lambda text: Label(name="code")}
    assert [value.name async for value in labeller(answers(DOWN), **fallback).stream("x")] == ["code"]

    broken = ScriptedLLM(['{"name": "mod', errors.StreamInterrupted("m", reason="cut")])
    seen = []
    with pytest.raises(errors.StreamInterrupted):
        async for value in labeller(broken, **fallback).stream("x"):
            seen.append(value.name)
    assert seen[-1] == "mod"

    label = labeller(ScriptedLLM(never), deadline=10.2, fallback_reserve=10, **fallback)
    assert [value.name async for value in label.stream("x")] == ["code"]
    with pytest.raises(errors.SignatureError):
        label.stream()
    plain = labeller(answers(DOWN))
    with pytest.raises(errors.ServerUnavailable):
        [value async for value in plain.stream("x")]


async def test_arguments_that_do_not_fit_are_an_error_at_the_call():
    with pytest.raises(errors.SignatureError):
        labeller(answers(), first=rule)()


# --- guards ---------------------------------------------------------------------------------------------------


def judging(value: Label, arguments: dict[str, Any]) -> Any:
    assert list(arguments) == ["text"]
    return {"bad": Block("bad"), "old": Change(Label(name="new")), "odd": ModelRetry("another")}.get(value.name)


@pytest.mark.parametrize(
    ("said", "first", "fallback"),
    [
        ("fine", "fine", "fine"),
        ("old", "new", "new"),
        ("odd", "model", errors.ResponseParseError),
        ("bad",) + (errors.ContentBlocked,) * 2,
    ],
)
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_guards_judge_what_plain_code_answers(said, first, fallback, is_streamed) -> None:
    async def answer(llm, **options):
        label = labeller(llm, guards=[judging], **options)
        try:
            if is_streamed:
                return [value async for value in label.stream("x")][-1].name
            result = await label.call("x")
            assert bool(result.repairs) == (said == "old")
            return result.value.name
        except (errors.ContentBlocked, errors.ResponseParseError) as error:
            assert "judging" in str(error)
            return type(error)

    assert await answer(answers("model"), first=lambda text: Label(name=said)) == first
    assert await answer(answers(DOWN), fallback=lambda text: Label(name=said)) == fallback


async def test_guards_judge_the_value_that_plain_code_is_confident_of() -> None:
    word = async_decorated(
        Confident[str], ScriptedLLM(), votes=3, first=lambda text: "old", guards=[lambda value: Change(f"{value}er")]
    )
    assert (await word("x")).value == "older"
