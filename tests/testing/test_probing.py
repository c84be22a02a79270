"""Asking either way, measuring, and seeing that nothing is left."""

import asyncio

import pytest

from SimpleLLMFunc.testing.probing import least, no_other_task


@pytest.mark.parametrize(
    ("measures", "found", "asked"), [([0.5], 0.5, 1), ([3.0, 0.5], 0.5, 2), ([3.0, 2.0, 4.0, 0.1], 2.0, 3)]
)
async def test_the_least_of_three_measures_or_the_first_that_will_do(measures, found, asked):
    left = list(measures)

    async def measured():
        return left.pop(0)

    assert await least(measured, enough=1.0) == found
    assert len(measures) - len(left) == asked


async def test_a_task_that_stays_is_told():
    task = asyncio.create_task(asyncio.Event().wait(), name="the one that stays")
    with pytest.raises(AssertionError, match=r"left behind: .*the one that stays"):
        await no_other_task()
    task.cancel()
