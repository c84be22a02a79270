"""One request per key; what it means for answers is in test_cache.py."""

import asyncio

import pytest

from SimpleLLMFunc.errors import DeadlineExceeded, ServerUnavailable
from SimpleLLMFunc.interface.composite.coalescing import _in_flight, share_request
from SimpleLLMFunc.interface.spending.deadline import Deadline

NEVER = Deadline.after(None)


async def asked_by_three(ask, clock=NEVER):
    tasks = [asyncio.create_task(share_request("key", ask, clock)) for _ in range(3)]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert _in_flight == {}
    return outcomes


@pytest.mark.parametrize(
    ("may_share", "outcomes"),
    [(True, [(1, False), (1, True), (1, True)]), (False, [(1, False), (2, False), (3, False)])],
)
async def test_the_others_get_what_came_of_the_first_request_where_they_may(may_share, outcomes):
    asked = []

    async def ask():
        asked.append(len(asked) + 1)
        number = asked[-1]
        await asyncio.sleep(0)
        return number, may_share

    assert await asked_by_three(ask) == outcomes


async def test_an_error_of_the_service_is_everybodys_as_it_was_then():
    async def ask():
        await asyncio.sleep(0)
        raise ServerUnavailable("m", status=503, tries=3) from OSError("cause")

    own, *others = await asked_by_three(ask)
    own.with_run(trace_id="mine")
    assert own.tries == 3
    for other in others:
        assert (other.trace_id, other.tries, other.status) == ("", 0, 503)
        assert isinstance(other.__cause__, OSError)
    assert others[0] is not others[1]


async def test_other_errors_are_the_first_ones_own():
    asked = []

    async def ask():
        asked.append(1)
        await asyncio.sleep(0)
        if len(asked) == 1:
            raise ZeroDivisionError
        return "x", True

    first, *others = await asked_by_three(ask)
    assert isinstance(first, ZeroDivisionError)
    assert others == [("x", False), ("x", True)]


async def test_who_waits_is_not_kept_beyond_its_deadline_and_one_that_is_cancelled_ends_nothing():
    go = asyncio.Event()

    async def ask():
        await go.wait()
        return "x", True

    first, second, third = (asyncio.create_task(share_request("key", ask, NEVER)) for _ in range(3))
    await asyncio.sleep(0)
    with pytest.raises(DeadlineExceeded, match="same question"):
        await share_request("key", ask, Deadline.after(0.02))
    second.cancel()
    await asyncio.wait({second})
    go.set()
    assert (await first, await third) == (("x", False), ("x", True))
