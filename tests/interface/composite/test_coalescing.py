"""One flight per key; what it means for answers is in test_cache.py."""

import asyncio

import pytest

from SimpleLLMFunc.errors import DeadlineExceeded, ServerUnavailable
from SimpleLLMFunc.interface.composite.coalescing import Flights
from SimpleLLMFunc.interface.spending.deadline import Deadline

NEVER = Deadline.after(None)


async def waiting(flights, clock=NEVER):
    task = asyncio.create_task(flights.wait("key", clock))
    await asyncio.sleep(0)
    return task


async def test_the_first_has_it_and_the_others_get_what_came_of_it():
    flights = Flights()
    with flights.begun("key") as own:
        with flights.begun("key") as second, flights.begun("other") as other:
            assert second is None
            assert other is not None
        waiters = [await waiting(flights) for _ in range(3)]
        own.answer = "x"
    assert {(await waiter).answer for waiter in waiters} == {"x"}
    assert await flights.wait("key", NEVER) is None
    with flights.begun("key") as again:
        assert again is not own


async def test_an_error_of_the_service_is_everybodys_as_it_was_then():
    flights = Flights()
    with pytest.raises(ServerUnavailable) as own:
        with flights.begun("key"):
            waiters = [await waiting(flights) for _ in range(2)]
            raise ServerUnavailable("m", status=503, tries=3) from OSError("cause")
    own.value.with_run(trace_id="mine")
    for waiter in waiters:
        with pytest.raises(ServerUnavailable) as caught:
            await waiter
        assert (caught.value.trace_id, caught.value.tries, caught.value.status) == ("", 0, 503)
        assert isinstance(caught.value.__cause__, OSError)


async def test_other_errors_are_the_first_ones_own():
    flights = Flights()
    with pytest.raises(ZeroDivisionError):
        with flights.begun("key"):
            waiter = await waiting(flights)
            raise ZeroDivisionError
    flight = await waiter
    assert (flight.answer, flight.error) == (None, None)


async def test_who_waits_is_not_kept_beyond_its_deadline_and_one_that_is_cancelled_ends_nothing():
    flights = Flights()
    with flights.begun("key") as own:
        with pytest.raises(DeadlineExceeded):
            await flights.wait("key", Deadline.after(0.02))
        first, second = await waiting(flights), await waiting(flights)
        first.cancel()
        await asyncio.wait({first})
        assert not own.ended.done()
        own.answer = "x"
    assert (await second).answer == "x"


async def test_a_forked_child_has_no_flights():
    flights = Flights()
    with flights.begun("key"):
        flights.renew_in_child()
        assert await flights.wait("key", NEVER) is None
