"""TokenBucket: at most so many per second, in the order in which they asked."""

import asyncio
import contextlib
import copy
import pickle
import selectors
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.attempts.token_bucket import TokenBucket
from tests.support.processes import forks, in_child


class QuickTime(selectors.SelectSelector):
    """A selector that does not wait: it moves the clock to when the next timer is due."""

    now = 1000.0

    def select(self, timeout=None):
        events = super().select(0)
        if not events:
            if timeout is None:
                return super().select(5)  # woken by another thread, or the test is stuck
            self.now += max(0.0, timeout)
        return events


class QuickLoop(asyncio.SelectorEventLoop):
    """An event loop whose seconds pass at once."""

    def __init__(self):
        self.quick = QuickTime()
        super().__init__(self.quick)

    def time(self):
        return self.quick.now


def quickly(test):
    """Run an async test, given a function that makes buckets on the quick clock, in no time."""

    def wrapped():
        loop = QuickLoop()

        def bucket(capacity, refill_rate):
            return TokenBucket(capacity, refill_rate, clock=loop.time)

        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(test(bucket, loop.time))

    wrapped.__name__ = test.__name__
    return wrapped


# --- the rate ------------------------------------------------------------------------------------------------


@quickly
async def test_a_full_bucket_gives_at_once_and_then_at_its_rate(bucket, now):
    two_a_second = bucket(4, 2)
    times = []
    for _ in range(10):
        assert await two_a_second.acquire()
        times.append(now() - 1000)
    assert times == pytest.approx([0, 0, 0, 0, 0.5, 1, 1.5, 2, 2.5, 3])


@quickly
async def test_it_fills_to_its_capacity_and_no_further(bucket, now):
    small = bucket(2, 1)
    await asyncio.sleep(100)
    assert small.level == 2
    start = now()
    for _ in range(3):
        await small.acquire()
    assert now() - start == pytest.approx(1)


# --- the order -----------------------------------------------------------------------------------------------


@quickly
async def test_first_come_first_served_and_no_one_overtakes(bucket, now):
    slow = bucket(10, 1)
    await slow.acquire(10)
    order = []

    async def take(name, count):
        await slow.acquire(count)
        order.append((name, round(now() - 1000, 6)))

    async with asyncio.TaskGroup() as group:
        for name, count in (("large", 8), ("small", 1), ("medium", 3)):
            group.create_task(take(name, count))
            await asyncio.sleep(0)
    assert order == [("large", 8), ("small", 9), ("medium", 12)]


# --- the timeout ---------------------------------------------------------------------------------------------


@quickly
async def test_a_timeout_that_is_too_short_gives_false_and_takes_nothing(bucket, now):
    slow = bucket(1, 0.1)
    await slow.acquire()
    assert [await slow.acquire(timeout=each) for each in (2.5, 0.5)] == [False, False]
    assert (now() - 1000, slow.level) == pytest.approx((3, 0.3))
    slow.adjust(0.65)
    assert await slow.acquire(timeout=0.6) is True


@pytest.mark.parametrize("timeout", [0, -1, -float("inf")])
async def test_no_time_at_all_means_now_or_never(timeout):
    bucket = TokenBucket(1, 0.001)
    assert await bucket.acquire(timeout=timeout) is True
    assert await bucket.acquire(timeout=timeout) is False


# --- cancellation --------------------------------------------------------------------------------------------


@quickly
async def test_a_cancelled_waiter_has_taken_nothing_and_the_next_one_goes(bucket, now):
    slow = bucket(10, 1)
    await slow.acquire(10)
    first = asyncio.create_task(slow.acquire(10))
    await asyncio.sleep(0)
    second = asyncio.create_task(slow.acquire(2))
    await asyncio.sleep(1)
    first.cancel()
    assert await second
    assert now() - 1000 == pytest.approx(2)
    assert first.cancelled()


@quickly
async def test_tokens_granted_to_a_waiter_that_is_cancelled_in_that_very_moment_come_back(bucket, now):
    slow = bucket(2, 1)
    await slow.acquire(2)
    first = asyncio.create_task(slow.acquire(2))
    await asyncio.sleep(0)
    slow.adjust(2)  # granted here; the task has not run since
    assert slow.level == 0
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert slow.level == 2


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.integers(1, 5), st.none() | st.floats(0, 6), st.none() | st.integers(0, 60)),
        min_size=1,
        max_size=12,
    )
)
def test_no_token_is_lost_or_made_in_any_case(steps):
    """Each step: how many, how long at most, and after how many tenths of a second it is cancelled."""
    loop = QuickLoop()

    async def run():
        bucket = TokenBucket(5, 1, clock=loop.time)
        spent = 0

        async def take(count, timeout, cancel_after):
            nonlocal spent
            task = asyncio.create_task(bucket.acquire(count, timeout))
            if cancel_after is not None:
                loop.call_later(cancel_after / 10, task.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                spent += count if await task else 0

        await asyncio.gather(*(take(*step) for step in steps))
        assert len(bucket._queue) == 0
        earned = 5 + (loop.time() - 1000)
        assert bucket.level <= earned - spent + 1e-6
        # No more than the capacity has run over the brim, and only when the bucket was full.
        await bucket.acquire(5)
        assert bucket.level == pytest.approx(0, abs=1e-6)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run())


# --- loops and threads ---------------------------------------------------------------------------------------


def test_one_bucket_serves_many_loops_in_many_threads():
    bucket = TokenBucket(5, 1000)
    taken = []

    async def work():
        for _ in range(20):
            taken.append(await bucket.acquire())

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [True] * 160
    assert len(bucket._queue) == 0


def test_a_waiter_whose_loop_is_blocked_holds_no_other_up():
    bucket = TokenBucket(1, 100)
    waits, served = threading.Event(), threading.Event()

    async def blocked():
        await bucket.acquire()
        task = asyncio.create_task(bucket.acquire())
        await asyncio.sleep(0)
        waits.set()
        assert served.wait(30)  # the whole loop stands still
        return await task

    async def lively():
        return await bucket.acquire()

    got = []
    thread = threading.Thread(target=lambda: got.append(asyncio.run(blocked())))
    thread.start()
    waits.wait()
    assert asyncio.run(lively()) is True
    served.set()
    thread.join()
    assert got == [True]


def test_who_waits_on_a_loop_that_is_closed_takes_nothing():
    bucket, loop = TokenBucket(2, 0.0001), asyncio.new_event_loop()
    loop.run_until_complete(bucket.acquire(2))
    waiting = loop.create_task(bucket.acquire(2))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    bucket.adjust(2)
    assert (round(bucket.level), waiting.done()) == (2, False)


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
async def test_a_child_process_does_not_wait_behind_its_parents_calls():
    bucket = TokenBucket(1, 0.0001)
    await bucket.acquire()
    task = asyncio.create_task(bucket.acquire())
    await asyncio.sleep(0)
    assert in_child(lambda: len(bucket._queue)) == "0"
    assert len(bucket._queue) == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# --- corrections ---------------------------------------------------------------------------------------------


@quickly
async def test_an_estimate_can_be_corrected_both_ways(bucket, now):
    tokens = bucket(100, 10)
    await tokens.acquire(50)
    tokens.adjust(20)
    assert tokens.level == 70
    tokens.adjust(-100)
    assert tokens.level == -30
    tokens.adjust(1000)
    assert tokens.level == 100
    tokens.adjust(-110)
    await tokens.acquire(10)
    assert now() - 1000 == pytest.approx(2)


@quickly
async def test_giving_back_wakes_who_waits(bucket, now):
    tokens = bucket(10, 0.001)
    await tokens.acquire(10)
    task = asyncio.create_task(tokens.acquire(5))
    await asyncio.sleep(0)
    tokens.adjust(5)
    assert await task
    assert now() == 1000


@quickly
async def test_the_service_may_say_that_less_is_left(bucket, now):
    tokens = bucket(10, 1)
    tokens.limit_to(3)
    assert tokens.level == 3
    tokens.limit_to(7)
    assert tokens.level == 3


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, float("nan"), float("inf"), "3", None, True])
def test_capacity_and_rate_are_numbers_above_zero(number):
    for arguments in ((number, 1), (1, number)):
        with pytest.raises(ValueError, match="must be a number above 0") as caught:
            TokenBucket(*arguments)
        assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("count", [0, -1, 3.5, 10**9, float("nan"), float("inf")])
async def test_a_count_that_can_never_fit_is_refused_at_once(count):
    bucket = TokenBucket(3, 1)
    with pytest.raises(ValueError, match=r"above 0|never fit") as caught:
        await bucket.acquire(count)
    assert isinstance(caught.value, ConfigError)
    assert bucket.level == 3


# --- one bucket is one thing ---------------------------------------------------------------------------------


async def test_a_copy_is_the_same_bucket_and_a_pickled_one_starts_full():
    bucket = TokenBucket(3, 1)
    await bucket.acquire(3)
    assert copy.copy(bucket) is bucket
    assert copy.deepcopy(bucket) is bucket
    other = pickle.loads(pickle.dumps(bucket))
    assert (other.capacity, other.refill_rate, other.level) == (3, 1, 3)
    assert repr(bucket) == "TokenBucket(capacity=3, refill_rate=1)"
