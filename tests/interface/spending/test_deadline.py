import asyncio
import math

import pytest

from SimpleLLMFunc.errors import DeadlineExceeded, UsageError
from SimpleLLMFunc.interface.spending.deadline import Deadline, current_deadline, deadline_scope


@pytest.mark.parametrize("seconds", [None, math.inf])
def test_without_seconds_it_never_passes(seconds):
    deadline = Deadline.after(seconds)
    assert deadline.seconds is None
    assert deadline.left() is None
    assert not deadline.is_over
    deadline.check("anything")


def test_left_counts_down_and_stops_at_zero():
    deadline = Deadline.after(60)
    first = deadline.left()
    assert 59 < first <= 60
    assert deadline.left() <= first
    assert Deadline.after(0).left() == Deadline.after(-5).left() == 0


def test_check_raises_with_the_facts_and_what_is_no_number_is_refused():
    with pytest.raises(DeadlineExceeded, match="waiting for a key") as caught:
        Deadline.after(0).check("waiting for a key")
    assert caught.value.seconds == 0
    for wrong in (math.nan, "3", True, [1]):
        with pytest.raises(UsageError):
            Deadline.after(wrong)


def test_the_stricter_one_wins_whichever_is_asked():
    short, long, never = Deadline.after(1), Deadline.after(100), Deadline.after(None)
    for one, other in ((short, long), (long, short), (never, short), (short, never)):
        assert one.stricter(other) is short
    assert never.stricter(Deadline.after(None)).seconds is None


def test_scopes_nest_and_only_get_stricter():
    assert current_deadline().left() is None
    with deadline_scope(100) as outer:
        assert current_deadline() is outer
        with deadline_scope(1) as inner:
            assert current_deadline() is inner
            assert inner.seconds == 1
        for wider in (1000, None):
            with deadline_scope(wider) as inner:
                assert inner is outer
        assert current_deadline() is outer
    assert current_deadline().left() is None


async def test_a_scope_may_be_left_in_another_context():
    async def generator():
        with deadline_scope(5):
            yield 1

    async def first():
        return await anext(source)

    source = generator()
    await asyncio.create_task(first())
    await source.aclose()  # closed by another task than the one that began it
    assert current_deadline().left() is None


def test_an_error_of_the_rest_is_told_as_one_of_the_whole():
    error = DeadlineExceeded(0.0931, partial="so far")
    error.tries = 2
    told = Deadline.after(0).retold(error)
    assert (told.seconds, told.partial, told.tries) == (0, "so far", 2)
    assert Deadline.after(5).retold(error) is error
