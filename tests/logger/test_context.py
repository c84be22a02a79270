"""Which run a line of the log belongs to."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

from SimpleLLMFunc.logger.context import (
    LogContext,
    async_log_context,
    count_tokens,
    get_current_context,
    get_current_trace_id,
    log_context,
)
from SimpleLLMFunc.type.usage import Usage


def test_outside_there_is_no_run_inside_it_is_this_one_and_afterwards_none():
    assert get_current_trace_id() == ""
    assert get_current_context() is None
    count_tokens(Usage(1, 2))
    with log_context("t1", "grade", 3, 4):
        assert get_current_trace_id() == "t1"
        assert get_current_context() == LogContext("t1", "grade", "", 3, 4)
    assert get_current_context() is None


def test_a_run_within_a_run_knows_its_parent_and_counts_for_itself():
    with log_context("outer", "f"):
        count_tokens(Usage(10, 1))
        with log_context("inner", "g"):
            count_tokens(Usage(5, 2))
            assert get_current_context() == LogContext("inner", "g", "outer", 5, 2)
        assert get_current_context() == LogContext("outer", "f", "", 10, 1)


def test_what_is_left_empty_is_that_of_the_surrounding_run():
    with log_context(17, "t"), log_context("outer", "f"):
        with log_context(None, function_name="part"):
            assert get_current_context() == LogContext("outer", "part", "17")
        with log_context("inner"):
            assert get_current_context() == LogContext("inner", "f", "outer")


def test_one_scope_may_be_used_again_and_counts_anew():
    scope = log_context("t1", input_tokens=1)
    for _ in range(2):
        with scope:
            count_tokens(Usage(1, 1))
            with log_context("inner"), scope:
                assert get_current_trace_id() == "t1"
            assert get_current_context() == LogContext("t1", "", "", 2, 1)
    assert get_current_context() is None


async def test_tasks_see_the_run_they_were_started_in_and_share_its_counts():
    async def work():
        count_tokens(Usage(1, 1))
        return get_current_trace_id()

    async with async_log_context(trace_id="t1", function_name="grade", input_tokens=0, output_tokens=0):
        assert await asyncio.gather(*(asyncio.create_task(work()) for _ in range(10))) == ["t1"] * 10
        assert get_current_context() == LogContext("t1", "grade", "", 10, 10)


def test_no_count_is_lost_between_threads():
    with log_context("t1"):
        contexts = [contextvars.copy_context() for _ in range(8)]

        def count(context):
            for _ in range(500):
                context.run(count_tokens, Usage(1, 1))

        with ThreadPoolExecutor(len(contexts)) as pool:
            list(pool.map(count, contexts))
        assert get_current_context() == LogContext("t1", "", "", 4000, 4000)
