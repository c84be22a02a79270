"""Usage adds up."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.type import Usage


def test_usage_adds_up():
    parts = [Usage(1, 2, 3, 4, 0.5), Usage(10, 20, 30, 40, 0.25)]
    assert sum(parts) == Usage(11, 22, 33, 44, 0.75)
    assert parts[0].total_tokens == 3


def test_an_unknown_cost_makes_the_sum_unknown():
    assert (Usage(1, 1, cost=0.5) + Usage(1, 1)).cost is None
    assert (Usage() + Usage(1, 1, cost=0.5)).cost == 0.5
    assert (Usage() + Usage()).cost is None


def test_only_usage_can_be_added():
    with pytest.raises(TypeError):
        _ = Usage() + 1
