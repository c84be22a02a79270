"""The simulation of many machines: where the answer is known, it gives it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from benchmarks import scale_sim
from benchmarks.scale_sim import Costs, Plan, simulate
from SimpleLLMFunc.batch.ray import engine as ray
from SimpleLLMFunc.batch.ray import hub as ray_hub
from SimpleLLMFunc.batch.ray.worker import linger_seconds

FREE = Costs(row=0, commit=0, exchange=0, hub=0, block=0, worker=0, letter_out=0, letter_in=0)


def test_the_quota_is_the_rate_where_all_else_is_free() -> None:
    outcome = simulate(Plan(1, quota=6_000), FREE, rows=3_000)
    assert outcome.rate == pytest.approx(100, rel=0.02)
    assert outcome.limit == "provider's quota"


def test_the_driver_gives_what_its_costs_leave() -> None:
    outcome = simulate(Plan(1, workers=4, latency=0.05), replace(FREE, row=3e-3, commit=1e-3), rows=6_000)
    assert outcome.rate == pytest.approx(250, rel=0.05)
    assert outcome.limit == "driver and checkpoint"
    two = simulate(Plan(2, workers=4, latency=0.05, drivers=2), replace(FREE, row=3e-3, commit=1e-3), rows=6_000)
    assert two.rate == pytest.approx(500, rel=0.05)


def test_rows_in_flight_over_latency_is_the_rate_where_nothing_limits() -> None:
    plan = Plan(1, workers=1, latency=2.0, in_flight=100)
    outcome = simulate(plan, FREE, rows=5_000)
    mean = 2.0 * math.exp(0.5**2 / 2) + scale_sim.linger(1) / 2 + scale_sim.DRIVER_LINGER / 2
    assert outcome.rate == pytest.approx(100 / mean, rel=0.08)
    assert outcome.limit == "nothing but rows in flight"


def test_a_worker_that_computes_is_the_limit() -> None:
    outcome = simulate(Plan(1, workers=2), replace(FREE, worker=0.02), rows=8_000)
    assert outcome.rate == pytest.approx(100, rel=0.05)
    assert outcome.limit == "workers"


def test_the_hub_and_ray_data_are_limits_of_their_own() -> None:
    plan = Plan(1, workers=4, latency=0.1)
    outcome = simulate(plan, replace(FREE, hub=0.01), rows=6_000)
    assert outcome.rate == pytest.approx(100, rel=0.05)
    assert outcome.limit == "hub"
    outcome = simulate(plan, replace(FREE, block=1.28), rows=6_000)
    assert outcome.rate == pytest.approx(100, rel=0.05)
    assert outcome.limit == "Ray Data"


def test_a_thin_link_is_the_limit() -> None:
    outcome = simulate(Plan(1, link=8e5, latency=0.1), replace(FREE, letter_out=900, letter_in=100), rows=4_000)
    assert outcome.rate == pytest.approx(100, rel=0.05)
    assert outcome.limit == "driver's network"


def test_it_gathers_letters_as_the_engine_does() -> None:
    assert [scale_sim.linger(count) for count in (1, 8, 100, 5_000)] == [
        linger_seconds(count) for count in (1, 8, 100, 5_000)
    ]
    assert scale_sim.ROWS_A_BLOCK == ray_hub._LEAST
    assert scale_sim.DRIVER_LINGER == ray._LINGER_SECONDS
