"""What each row of a map on a cluster may spend: parts of a budget, which together are never more than it."""

from __future__ import annotations

import asyncio

import pytest

from SimpleLLMFunc import BudgetExceeded, budget
from SimpleLLMFunc.batch.ray.grants import Grants
from SimpleLLMFunc.interface.spending import scopes_around


async def test_what_is_left_is_cut_for_the_places_and_comes_back() -> None:
    with budget(requests=10, usd=1.0) as spent:
        grants = Grants(scopes_around())
        given = [await grants.take(4) for _ in range(4)]
        assert [grant["requests"] for grant in given] == [2, 2, 3, 3]
        assert sum(grant["usd"] for grant in given) == pytest.approx(1.0)
        assert all(grant["tokens"] is None for grant in given)
        assert spent.left_of("requests") == 0
        grants.give_back(given[0], (1, 8, 0.1))
        grants.give_back(given[1], None)  # of a row that was cancelled
        assert spent.left_of("requests") == 2
        assert (spent.tokens, spent.usd) == (8, 0.1)
        for grant in given[2:]:
            grants.give_back(grant, (2, 0, 0.0))
    assert spent.requests == 6
    assert spent.left_of("usd") == pytest.approx(0.9)


async def test_a_row_waits_until_there_is_as_much_as_rows_need() -> None:
    with budget(requests=5):
        grants = Grants(scopes_around())
        first = await grants.take(1)
        grants.give_back(first, (2, 0, 0.0))
        second = await grants.take(2)  # all three that are left: a row may need four
        assert second["requests"] == 3
        waiting = asyncio.create_task(grants.take(2))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        grants.give_back(second, (2, 0, 0.0))
        last = await waiting
        assert last["requests"] == 1  # no other row will bring any back
        grants.give_back(last, (1, 0, 0.0))
        with pytest.raises(BudgetExceeded, match="5 requests"):
            await grants.take(2)


async def test_a_part_that_was_too_small_is_made_larger_where_there_is_more() -> None:
    with budget(tokens=100) as spent:
        grants = Grants(scopes_around())
        first, second = await grants.take(2), await grants.take(2)
        assert first["tokens"] == second["tokens"] == 50
        error = BudgetExceeded("tokens", limit=50, spent=0, needed=70)
        grants.give_back(first, (0, 0, 0.0))
        assert grants.has_more(error, (0, 0, 0.0))
        grants.give_back(second, (1, 10, 0.0))
        assert (await grants.take(2))["tokens"] == 70
        assert not grants.has_more(error, (1, 30, 0.0))  # it would be paid twice
        assert grants.exceeded(error).limit == 100
        assert spent.tokens == 10


async def test_the_strictest_scope_counts_and_all_are_settled() -> None:
    with budget(requests=9) as outer, budget(requests=4, tokens=1_000) as inner:
        grants = Grants(scopes_around())
        grant = await grants.take(1)
        assert (grant["requests"], grant["tokens"]) == (4, 1_000)
        grants.give_back(grant, (3, 30, 0.0))
        assert outer.requests == inner.requests == 3
        assert outer.tokens == inner.tokens == 30
        assert grants.exceeded(BudgetExceeded("requests", limit=1, spent=1)).limit == 4
        own = BudgetExceeded("usd", limit=1, spent=1)  # a budget that a tool keeps
        assert grants.exceeded(own) is own
