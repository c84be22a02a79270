"""How many rows at a time: a service with so many places is found out, and left in peace when it refuses."""

from __future__ import annotations

import heapq
import random

import pytest

from SimpleLLMFunc.batch.options import AutoConcurrency, Concurrency, concurrency_of
from SimpleLLMFunc.errors import UsageError


def simulate(pace: Concurrency, rows: int, *, places: float = float("inf"), refuses_at: float = float("inf"), seed=0):
    """Ask `rows` rows of a service that answers in a second, slower beyond `places`; return the limit after each."""
    chance = random.Random(seed)
    now, flying, limits = 0.0, [], []
    while len(limits) < rows:
        while len(flying) < pace.limit:
            load = len(flying) + 1
            is_refused = load > refuses_at
            seconds = 0.05 if is_refused else max(1.0, load / places) * chance.uniform(0.9, 1.1)
            heapq.heappush(flying, (now + seconds, now, is_refused))
        now, began, is_refused = heapq.heappop(flying)
        pace.finished(began, now, is_refused=is_refused, is_full=True)
        limits.append(pace.limit)
    return limits


def test_a_number_stays_what_it_is_and_nothing_else_is_one() -> None:
    assert set(simulate(concurrency_of(7), 100, refuses_at=3)) == {7}
    for wrong in (0, -1, 1.5, True, None, "all"):
        with pytest.raises(UsageError, match="concurrency"):
            concurrency_of(wrong)


def test_a_service_that_bears_everything_gets_everything() -> None:
    limits = simulate(AutoConcurrency(1000), 3000)
    assert limits[6:8] == [8, 16]
    assert limits[-1] == 1000
    assert limits.index(1000) < 1100  # in doubling rounds


def test_a_service_that_gets_slower_is_not_flooded() -> None:
    limits = simulate(AutoConcurrency(1000), 5000, places=50)[-1000:]
    assert 40 <= min(limits) <= max(limits) <= 150


def test_refusals_make_it_smaller_and_it_comes_back_slowly() -> None:
    limits = simulate(AutoConcurrency(1000), 5000, refuses_at=60)[1000:]
    assert 20 <= min(limits) <= max(limits) <= 66
    assert sum(limits) / 4000 > 35
    assert simulate(AutoConcurrency(1000), 200, refuses_at=0)[-1] == 1  # and never nothing


def test_one_storm_of_refusals_counts_once() -> None:
    pace = AutoConcurrency(1000)
    simulate(pace, 3000)
    for _ in range(500):
        pace.finished(100.0, 200.0, is_refused=True, is_full=True)
    assert pace.limit == 600


@pytest.mark.parametrize(("rounds", "limit"), [
    ((1.0, 1.0, 1.6, 1.0), 34), ((1.0, 1.6, 1.0), 17), ((1.0, 1.0, 4.0), 25), ((0.001, 0.015, 0.001), 64),
])  # fmt: skip
def test_after_a_slow_round_it_grows_by_a_few_and_after_a_very_slow_one_shrinks(rounds, limit) -> None:
    pace = AutoConcurrency(1000)
    for seconds in rounds:
        for _ in range(pace.limit):
            pace.finished(0.0, seconds, is_refused=False, is_full=True)
    assert pace.limit == limit


def test_it_does_not_grow_where_there_are_no_more_rows() -> None:
    pace = AutoConcurrency(1000)
    for number in range(100):
        pace.finished(number, number + 1.0, is_refused=False, is_full=False)
    assert pace.limit == 8
