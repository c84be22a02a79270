import asyncio

import pytest

from SimpleLLMFunc.errors import DeadlineExceeded
from SimpleLLMFunc.interface.http.timeouts import Silence, TryTimeout
from SimpleLLMFunc.interface.spending.deadline import Deadline
from tests.support.busy_loop import keep_loop_busy


def timeout(*, deadline=None, first_byte=60.0, idle=60.0):
    return TryTimeout(Deadline.after(deadline), first_byte=first_byte, idle=idle)


async def never():
    await asyncio.Event().wait()


async def test_silence_before_the_first_byte_and_after_progress():
    first, further, thinks = timeout(first_byte=0.02), timeout(idle=0.02), timeout(first_byte=0.02, idle=0.01)
    further.progress()
    thinks.progress(is_writing=False)
    for clock in (first, further, thinks):
        with pytest.raises(Silence, match=r"0\.02 s"):
            await clock.wait(never())


async def test_waits_without_progress_add_up():
    clock = timeout(first_byte=0.05)
    with pytest.raises(Silence):
        for _ in range(100):
            await clock.wait(asyncio.sleep(0.01))


async def test_progress_begins_again():
    clock = timeout(first_byte=0.3, idle=0.3)
    for _ in range(8):
        await clock.wait(asyncio.sleep(0.05))
        clock.progress()


async def test_only_waiting_counts():
    clock = timeout(first_byte=0.05)
    await asyncio.sleep(0.06)
    assert await clock.wait(asyncio.sleep(0, 1)) == 1


async def test_what_came_while_the_loop_was_busy_for_too_long_counts():
    loop = asyncio.get_running_loop()
    waiting = asyncio.ensure_future(timeout(first_byte=0.05).wait(asyncio.shield(answer := loop.create_future())))
    await asyncio.sleep(0)
    loop.call_soon(answer.set_result, keep_loop_busy(0.1))
    assert await waiting is None


async def test_the_deadline_stands_above_both():
    with pytest.raises(DeadlineExceeded, match="reading") as caught:
        await timeout(deadline=0.02).wait(never(), "reading")
    assert caught.value.seconds == 0.02


async def test_a_shortened_timeout_stays_short():
    clock = timeout()
    clock.shorten(0.02)
    clock.progress()
    with pytest.raises(Silence):
        await clock.wait(never())


async def test_a_timeout_of_someone_else_is_passed_on():
    async def failing():
        raise TimeoutError("theirs")

    with pytest.raises(TimeoutError, match="theirs"):
        await timeout().wait(failing())
