"""Budgets: nothing is sent that would break one; scopes nest, over functions, tools, threads and the bridge."""

from __future__ import annotations

import asyncio

import pytest

from SimpleLLMFunc import BudgetExceeded, DeadlineExceeded, UsageError
from SimpleLLMFunc.interface.spending import (
    budget,
    charge_fetch,
    charge_lost,
    charge_question,
    charge_try,
    counting_tries,
)
from SimpleLLMFunc.interface.spending.budget import is_limited, paid_already, time_limits
from SimpleLLMFunc.interface.spending.deadline import deadline_scope
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.type import ChatCompletion, Usage
from tests.support.functions import async_function_of, function_of


def counting(*replies, **options):
    llm = ScriptedLLM(*replies)
    return function_of(llm, **options), llm


def reply(tokens=50):
    usage = {"prompt_tokens": tokens - 10, "completion_tokens": 10}
    return ChatCompletion.from_dict({"choices": [{"message": {"content": "ok"}}], "usage": usage})


def test_requests_are_counted_and_stopped_before_the_one_too_many():
    ask, llm = counting("a", "b", "c")
    with budget(requests=2) as spent:
        ask("x")
        ask("x")
        with pytest.raises(BudgetExceeded) as caught:
            ask("x")
    assert len(llm.calls) == spent.requests == 2
    told = caught.value
    assert (told.unit, told.limit, told.spent, told.needed, told.func_name) == ("requests", 2, 2, 1, "ask")
    ask("x")


def test_tokens_are_those_of_the_replies_and_a_request_that_would_surely_break_the_budget_is_not_sent():
    ask, llm = counting(reply(tokens=100_000), reply())
    with budget(tokens=100), pytest.raises(BudgetExceeded):
        ask("many words " * 1000)
    assert llm.calls == []
    with budget(tokens=50_000) as spent:
        ask("x")
        with pytest.raises(BudgetExceeded, match="tokens"):
            ask("x")
    assert (spent.tokens, len(llm.calls)) == (100_000, 1)


def test_reasks_and_tool_rounds_count():
    def look() -> str:
        """Look."""
        return "seen"

    llm = ScriptedLLM(tool_calls(("look", {})), "nonsense", "3")
    with budget() as spent:
        assert function_of(llm, int, toolkit=[look])("x") == 3
    assert spent.requests == 3


def test_scopes_nest_and_the_strictest_holds():
    ask, llm = counting("a", "b", "c")
    with budget(requests=10) as outer, budget(requests=1) as inner:
        ask("x")
        with pytest.raises(BudgetExceeded):
            ask("x")
    assert (outer.requests, inner.requests) == (1, 1)
    with budget(requests=1), budget(requests=10):
        ask("x")
        with pytest.raises(BudgetExceeded):
            ask("x")
    assert len(llm.calls) == 2


def test_a_failed_question_counts_its_request_and_frees_its_reservation():
    ask, _ = counting(RuntimeError("no"), "a")
    with budget(requests=2, tokens=1000) as spent:
        with pytest.raises(RuntimeError):
            ask("x")
        ask("x")
    assert (spent.requests, spent._reserved) == (2, 0)


@pytest.mark.parametrize("unit", ["usd", "tokens"])
def test_a_limit_that_is_used_up_exactly_refuses_also_what_needs_nothing_that_is_known(unit):
    with budget(**{unit: 3}) as spent:
        spent.reserve(requests=1, tokens=0)
        spent.settle(reserved=0, usage=Usage(1, 2, cost=3.0))
        with pytest.raises(BudgetExceeded) as caught:
            spent.reserve(requests=1, tokens=0)
    assert (caught.value.unit, caught.value.spent) == (unit, 3)


async def test_parallel_calls_never_pass_the_limit_together():
    llm = ScriptedLLM("ok", repeat=True)
    ask = async_function_of(llm)
    with budget(requests=7) as spent:
        results = await asyncio.gather(*(ask("x") for _ in range(20)), return_exceptions=True)
    assert sum(result == "ok" for result in results) == 7
    assert sum(isinstance(result, BudgetExceeded) for result in results) == 13
    assert spent.requests == len(llm.calls) == 7


async def test_seconds_stop_a_call_that_is_under_way():
    class Sleeper(ScriptedLLM):
        async def chat(self, messages, **options):
            await asyncio.sleep(30)

    started = asyncio.get_running_loop().time()
    with budget(seconds=0.2), pytest.raises(BudgetExceeded, match="seconds"):
        await async_function_of(Sleeper())("x")
    assert asyncio.get_running_loop().time() - started < 5


def test_of_a_budget_and_a_deadline_the_one_that_ends_is_told():
    for own, left, error in ((1e-9, 9, BudgetExceeded), (9, 0, DeadlineExceeded), (None, 0, DeadlineExceeded)):
        with budget(seconds=0.5), budget(seconds=own), deadline_scope(left), pytest.raises(error), time_limits() as end:
            end.check()
    with budget(requests=0), pytest.raises(BudgetExceeded):
        charge_try()
    with budget(requests=0), charge_question(1, is_late=True), pytest.raises(BudgetExceeded):
        charge_try()


def test_a_question_pays_its_first_try_and_further_tries_pay_themselves():
    with budget(requests=2) as spent:
        with charge_question(10) as charge:
            charge_try()
            charge_try()
            with pytest.raises(BudgetExceeded):
                charge_try()
            charge.settle(Usage(1, 2))
        assert (spent.requests, spent.tokens) == (2, 3)


def test_the_first_request_of_a_question_is_not_taken_for_that_of_the_question_around_it():
    with budget(), charge_question(10) as outer:
        with paid_already(), charge_question(10):
            charge_try()
        assert outer.prepaid


async def test_a_question_that_is_over_pays_for_nothing_more():
    async def late():
        charge_try()

    with budget() as spent:
        first, second = charge_question(1), charge_question(1)
        first.__enter__()
        second.__enter__()
        first.__exit__()
        second.__exit__()  # in the order of streams that overlap: the first one is in force again
        charge_try()
        with charge_question(1):
            begun_inside = asyncio.create_task(late())
            with charge_question(1):
                charge_try()
            charge_try()  # that of the question around
        await begun_inside
    assert spent.requests == 6


def test_an_inner_refusal_takes_nothing_from_the_outer_scope():
    for inner in ({"tokens": 5}, {"usd": 0.01}):
        with budget(usd=1, requests=5, tokens=50) as outer, budget(**inner):
            with pytest.raises(BudgetExceeded), charge_question(10, 0.5):
                pass
        assert (outer.requests, outer._reserved, outer._reserved_usd) == (0, 0, 0)


@pytest.mark.parametrize("limits", [{"usd": -1}, {"tokens": "many"}, {"requests": True}, {"seconds": float("nan")}])
def test_limits_are_numbers(limits):
    with pytest.raises(UsageError, match="budget"), budget(**limits):
        pass


def test_what_is_limited():
    assert not is_limited()
    with budget(tokens=5):
        assert (is_limited(), is_limited("tokens"), is_limited("usd")) == (True, True, False)
        with budget(usd=1):
            assert is_limited("usd")


def test_what_no_one_waited_for_counts_and_the_clock_stands_still_after_the_scope():
    with budget() as spent:
        charge_lost(Usage(10, cost=0.5))
        charge_fetch()  # what was paid before
    assert (spent.tokens, spent.usd, spent.requests) == (10, 0.5, 1)
    assert spent.seconds == spent.seconds
    assert "requests=1" in repr(spent)
    with budget(tokens=10), pytest.raises(BudgetExceeded):
        charge_fetch()
        charge_lost(Usage(10))
        charge_question(1).__enter__()


def test_tries_are_counted_in_every_block_around_them():
    with counting_tries() as outer:
        charge_try()
        with counting_tries() as inner:
            charge_try()
        charge_try()
    charge_try()
    assert (outer.count, inner.count) == (3, 1)
