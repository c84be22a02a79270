"""Which run a line of the log belongs to."""

import asyncio
import contextvars
import threading

import pytest

from SimpleLLMFunc.logger.context import (
    LogContext,
    async_log_context,
    count_tokens,
    get_current_context,
    get_current_trace_id,
    log_context,
)
from SimpleLLMFunc.runtime.sync import iterate_sync, run_sync
from SimpleLLMFunc.type.usage import Usage


def test_outside_there_is_no_run():
    assert get_current_trace_id() == ""
    assert get_current_context() is None
    count_tokens(Usage(1, 2))


def test_inside_it_is_this_one_and_afterwards_none():
    with log_context("t1", "grade", 3, 4):
        assert get_current_trace_id() == "t1"
        assert get_current_context() == LogContext("t1", "grade", "", 3, 4)
    assert get_current_context() is None


async def test_the_async_form_does_the_same():
    async with async_log_context(trace_id="t1", function_name="grade", input_tokens=0, output_tokens=0) as nothing:
        assert nothing is None
        assert get_current_context() == LogContext("t1", "grade")
    assert get_current_context() is None


def test_a_run_within_a_run_knows_its_parent_and_counts_for_itself():
    with log_context("outer", "f"):
        count_tokens(Usage(10, 1))
        with log_context("inner", "g"):
            count_tokens(Usage(5, 2))
            assert get_current_context() == LogContext("inner", "g", "outer", 5, 2)
        assert get_current_context() == LogContext("outer", "f", "", 10, 1)


def test_what_is_left_empty_is_that_of_the_surrounding_run():
    with log_context("top", "t"), log_context("outer", "f"):
        with log_context(function_name="part"):
            assert get_current_context() == LogContext("outer", "part", "top")
        with log_context("inner"):
            assert get_current_context() == LogContext("inner", "f", "outer")


def test_an_error_leaves_the_context_too():
    with pytest.raises(LookupError), log_context("t1"):
        raise LookupError
    assert get_current_context() is None


async def test_tasks_see_the_run_they_were_started_in_and_share_its_counts():
    async def work():
        count_tokens(Usage(1, 1))
        return get_current_trace_id()

    async with async_log_context("t1"):
        assert await asyncio.gather(*(asyncio.create_task(work()) for _ in range(10))) == ["t1"] * 10
        assert get_current_context() == LogContext("t1", "", "", 10, 10)


async def test_concurrent_runs_do_not_see_each_other():
    everybody_in = asyncio.Barrier(20)

    async def run(number):
        async with async_log_context(f"t{number}"):
            await everybody_in.wait()
            count_tokens(Usage(number, 0))
            return get_current_context()

    contexts = await asyncio.gather(*(run(number) for number in range(20)))
    assert contexts == [LogContext(f"t{number}", input_tokens=number) for number in range(20)]


def test_no_count_is_lost_between_threads():
    with log_context("t1"):
        contexts = [contextvars.copy_context() for _ in range(8)]

        def count(context):
            for _ in range(500):
                context.run(count_tokens, Usage(1, 1))

        threads = [threading.Thread(target=count, args=(context,)) for context in contexts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert get_current_context() == LogContext("t1", "", "", 4000, 4000)


async def in_a_run(name, count=3):
    async with async_log_context(name):
        for _ in range(count):
            yield get_current_trace_id()


async def test_a_generator_may_be_closed_from_another_task():
    items = in_a_run("t1")

    async def first():
        return await anext(items)

    assert await asyncio.create_task(first()) == "t1"
    await asyncio.create_task(items.aclose())
    assert get_current_context() is None


async def test_interleaved_generators_leave_nothing_behind():
    one, two = in_a_run("one", 1), in_a_run("two", 2)
    assert await anext(one) == "one"
    assert await anext(two) == "two"
    assert [item async for item in one] == []  # the first one leaves first
    assert [item async for item in two] == ["two"]
    assert get_current_context() is None


async def test_a_consumers_own_run_survives_the_end_of_a_generator_begun_before():
    items = in_a_run("inner", 1)
    await anext(items)
    with log_context("mine"):
        assert [item async for item in items] == []
        assert get_current_trace_id() == "mine"
    assert get_current_context() is None


def test_the_bridge_carries_the_run_over():
    async def inside():
        return get_current_trace_id()

    async def items():
        yield get_current_trace_id()

    with log_context("t1"):
        assert run_sync(inside()) == "t1"
        assert list(iterate_sync(items())) == ["t1"]
    assert list(iterate_sync(in_a_run("t2", 2))) == ["t2", "t2"]
