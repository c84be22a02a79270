import asyncio
import gc
import weakref
from contextvars import ContextVar

from SimpleLLMFunc.runtime.shared_timer import Alarm, alarm_for

_SEEN: ContextVar[object] = ContextVar("seen")


class Sleeper:
    def __init__(self, struck=None):
        self.struck = [] if struck is None else struck
        self.woken = asyncio.Event()

    def strike(self):
        self.struck.append(self)
        self.woken.set()


def begin(alarm, sleeper):
    loop = asyncio.get_running_loop()
    alarm.begin(sleeper, loop, loop.time())
    return sleeper


async def test_who_waits_too_long_is_struck_in_the_order_of_coming():
    alarm, struck = Alarm(0.02), []
    sleepers = [begin(alarm, Sleeper(struck)) for _ in range(5)]
    alarm.end(sleepers[2])
    await sleepers[-1].woken.wait()
    assert struck == [*sleepers[:2], *sleepers[3:]]
    alarm.end(sleepers[0])  # late, and no matter


async def test_nobody_is_struck_before_the_time():
    loop, alarm = asyncio.get_running_loop(), Alarm(0.05)
    first = begin(alarm, Sleeper())
    await asyncio.sleep(0.03)
    began = loop.time()
    second = begin(alarm, Sleeper())
    await first.woken.wait()
    assert not second.struck
    await second.woken.wait()
    assert loop.time() - began >= 0.049


async def test_one_timer_serves_for_all_and_goes_on_after_a_rest():
    alarm = Alarm(0.02)
    for _ in range(3):
        ended, late = begin(alarm, Sleeper()), begin(alarm, Sleeper())
        alarm.end(ended)
        await late.woken.wait()
        assert len(late.struck) == 1
        assert not ended.struck
        await asyncio.sleep(0.03)  # nobody waits, and nothing is set


async def test_lengths_are_known_for_one_loop_and_only_so_many():
    loop = asyncio.get_running_loop()
    assert alarm_for(1.0, loop) is alarm_for(1.0, loop)
    assert alarm_for(1.0, loop) is not alarm_for(2.0, loop)
    known, sleeper = alarm_for(0.02, loop), Sleeper()
    begin(known, sleeper)
    for number in range(200):
        alarm_for(float(number), loop)
    await sleeper.woken.wait()  # also an alarm that nobody can ask for any more


def test_neither_a_loop_nor_the_variables_of_the_first_to_wait_are_kept():
    class Large:
        pass

    async def wait():
        large = Large()
        _SEEN.set(large)
        loop = asyncio.get_running_loop()
        alarm = alarm_for(600.0, loop)
        alarm.end(begin(alarm, Sleeper()))
        return weakref.ref(large), weakref.ref(loop), alarm

    async def run():
        large, loop, alarm = await asyncio.create_task(wait())
        await asyncio.sleep(0)  # until the step in which the task told of its end is over
        gc.collect()
        assert large() is None
        return loop, alarm

    loop, alarm = asyncio.run(run())
    gc.collect()
    assert loop() is None
    assert asyncio.run(run())[1] is not alarm
