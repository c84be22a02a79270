"""Usage adds up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from SimpleLLMFunc.batch.checkpoint.codec import decode_usage, encode_usage
from SimpleLLMFunc.type import CompletionUsage, Usage


def test_usage_adds_up():
    parts = [Usage(1, 2, 3, 4, 0.5), Usage(10, 20, 30, 40, 0.25)]
    assert sum(parts) == Usage(11, 22, 33, 44, 0.75)
    assert parts[0].total_tokens == 3
    assert (Usage(5, cache_write_tokens=2) + Usage(5, cache_write_tokens=3)).cache_write_tokens == 5


def test_tokens_written_into_the_cache_are_read_kept_and_written():
    data = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    data["prompt_tokens_details"] = {"cached_tokens": 2, "cache_write_tokens": 3}
    usage = CompletionUsage.from_dict(data)
    assert usage.tokens == Usage(9, 1, 2, cache_write_tokens=3)
    assert CompletionUsage.from_dict(usage.to_dict()) == usage
    assert replace(usage, cost=0.5).tokens == Usage(9, 1, 2, cost=0.5, cache_write_tokens=3)
    told = {"prompt_tokens": 9, "cached_tokens": 2, "cache_creation_input_tokens": 3, "reasoning_tokens": 4}
    assert CompletionUsage.from_dict(told).tokens == Usage(9, 0, 2, 4, cache_write_tokens=3)
    assert "cache_write_tokens" not in CompletionUsage(9, 1, 10, 2).to_dict()["prompt_tokens_details"]


@pytest.mark.parametrize("usage", [Usage(9, 1, 2, 1, 0.5), Usage(9, 1, cache_write_tokens=3)])
def test_a_checkpoint_keeps_it(usage):
    assert decode_usage(encode_usage(usage)) == usage


def test_an_unknown_cost_makes_the_sum_unknown_and_only_usage_can_be_added():
    assert (Usage(1, 1, cost=0.5) + Usage(1, 1)).cost is None
    assert (Usage() + Usage(1, 1, cost=0.5)).cost == 0.5
    assert (Usage() + Usage()).cost is None
    with pytest.raises(TypeError):
        _ = Usage() + 1
