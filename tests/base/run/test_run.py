"""The frame around a run: what names it, what it is part of, and what its errors carry."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import types
import weakref
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any

import pytest

from SimpleLLMFunc import BudgetExceeded, RunError, budget, watching
from SimpleLLMFunc.base.events import ReActEvent, RunFailed, RunFinished, RunStarted, TurnStarted
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.run.record import RunRecord
from SimpleLLMFunc.base.run.run import Recording, generate_trace_id
from SimpleLLMFunc.interface.attempts.listener import LISTENER
from SimpleLLMFunc.interface.spending.deadline import current_deadline
from SimpleLLMFunc.logger import async_log_context, get_current_context, get_current_trace_id, log_context
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import Tool

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def test_an_id_is_name_and_uuid():
    first, second = generate_trace_id("grade"), generate_trace_id("grade")
    assert re.fullmatch(f"grade_{UUID}", first)
    assert first != second


def test_an_id_holds_the_own_part_of_its_parent():
    top = generate_trace_id("top")
    with log_context(top):
        middle = generate_trace_id("middle")
    with log_context(middle):
        bottom = generate_trace_id("bottom")
    assert re.fullmatch(f"middle_{UUID}_{top}", middle)
    assert re.fullmatch(f"bottom_{UUID}_middle_{UUID}", bottom)
    with log_context("of the user's own"):
        assert re.fullmatch(f"own_{UUID}_of the user's own", generate_trace_id("own"))


def begins(llm: ScriptedLLM, seen: list[Any]) -> Any:
    async def begin(clock: Any) -> Any:
        context = get_current_context()
        seen.append((context.trace_id, context.function_name))
        return react_events(llm, [{"role": "user", "content": "?"}], deadline=clock)

    return begin


async def test_a_run_is_named_in_the_log_and_not_outside():
    seen: list[Any] = []
    record = RunRecord("grade", "grade_1")
    names = [type(event).__name__ async for event in Recording(record, begins(ScriptedLLM("yes"), seen)).events()]
    assert seen == [("grade", "grade_1")[::-1]]
    assert get_current_trace_id() == ""
    assert names == ["RunStarted", "TurnStarted", "ReplyReceived", "MessageAppended", "RunFinished"]
    assert record.finished is not None
    assert record.usage.total_tokens > 0


async def test_an_error_carries_the_facts_of_the_run():
    record = RunRecord("grade", "grade_1")
    with pytest.raises(RunError) as caught:
        async for _ in Recording(record, begins(ScriptedLLM(RunError("no")), [])).events():
            pass
    assert (caught.value.trace_id, caught.value.func_name) == ("grade_1", "grade")


async def test_the_time_of_a_budget_is_told_as_the_budgets():
    with budget(seconds=0.001), pytest.raises(BudgetExceeded) as caught:
        async for _ in Recording(RunRecord("grade", "grade_1"), begins(ScriptedLLM(never), []), deadline=60).events():
            pass
    assert (caught.value.trace_id, caught.value.limit) == ("grade_1", 0.001)


async def never(request: Any) -> str:
    await asyncio.Event().wait()
    return ""


# --- however it ends -----------------------------------------------------------------------------------------


class Seen(list[ReActEvent]):
    """A sink that keeps what it is shown, and may end the program at one of the events."""

    def __init__(self, stops_at: type | None = None) -> None:
        self.stops_at = stops_at

    def __call__(self, _: str, event: ReActEvent) -> None:
        self.append(event)
        if self.stops_at is type(event):
            raise SystemExit

    @property
    def ends(self) -> list[ReActEvent]:
        return [event for event in self if isinstance(event, (RunFailed, RunFinished))]


class Stepped:
    """A run that waits wherever one can: in its log context, where it begins, for the model, for two tools."""

    def __init__(self, *, stream: bool) -> None:
        self.record = RunRecord("grade", "grade_1")
        self.stream = stream
        self.is_named = False
        self.recording = Recording(self.record, self.begin, log_context=self.named, deadline=60)

    @asynccontextmanager
    async def named(self) -> AsyncGenerator[None, None]:
        await asyncio.sleep(0)
        async with async_log_context("grade_1", "grade"):
            self.is_named = True
            try:
                await asyncio.sleep(0)
                yield
            finally:
                self.is_named = False
                await asyncio.sleep(0)

    async def begin(self, clock: Any) -> AsyncGenerator[ReActEvent, None]:
        async def look(number: int) -> int:
            await asyncio.sleep(0)
            return number

        async def answer(_: Any) -> str:
            await asyncio.sleep(0)
            return "yes"

        await asyncio.sleep(0)
        tool = Tool(look)
        llm = ScriptedLLM(tool_calls(("look", {"number": 1}), ("look", {"number": 2})), answer)
        return react_events(
            llm,
            [{"role": "user", "content": "?"}],
            [tool.to_openai_tool()],
            {"look": tool},
            stream=self.stream,
            deadline=clock,
        )

    async def read(self) -> None:
        async with aclosing(self.recording.events()) as events:
            async for _ in events:
                await asyncio.sleep(0)


@types.coroutine
def cancelled_at(step: int, work: Coroutine[Any, Any, None]) -> Generator[Any, Any, bool]:
    """Await `work`, and cancel the task when it waits for the time `step`; say whether it ended before that."""
    waits, value, thrown = 0, None, None
    while True:
        try:
            waited_for = work.send(value) if thrown is None else work.throw(thrown)
        except StopIteration:
            return waits <= step
        task = asyncio.current_task()
        assert task is not None
        if waits == step:
            task.cancel()
        waits += 1
        value = thrown = None
        try:
            value = yield waited_for
        except BaseException as error:
            thrown = error


@contextmanager
def left_open() -> Iterator[list[str]]:
    """Note the async generators that nobody closed before they were given up."""
    names: list[str] = []
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(finalizer=lambda generator: names.append(generator.__qualname__))
    try:
        yield names
    finally:
        sys.set_asyncgen_hooks(*before)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("view", ["finish", "events"])
async def test_wherever_it_is_cancelled_it_tells_so_once_and_leaves_nothing(view: str, stream: bool):
    task = asyncio.current_task()
    assert task is not None
    for step in range(500):
        run, seen, others = Stepped(stream=stream), Seen(), asyncio.all_tasks()
        work = run.recording.finish() if view == "finish" else run.read()
        with watching(seen), left_open() as open_ones:
            try:
                has_ended = await cancelled_at(step, work)
            except asyncio.CancelledError:
                task.uncancel()
                has_ended = False
        assert (get_current_context(), LISTENER.get(), current_deadline(), run.is_named) == (None, None, None, False)
        assert (asyncio.all_tasks(), open_ones) == (others, [])
        assert [type(event) for event in seen].count(RunStarted) == 1
        (end,) = seen.ends
        if isinstance(end, RunFailed):
            # The reader itself may have been cancelled, between two events.
            assert end.how == "cancelled" or (view, end.how) == ("events", "abandoned")
        assert isinstance(end, RunFinished) == (run.record.finished is not None)
        if has_ended:
            break
    assert has_ended
    assert step > 6


@pytest.mark.parametrize("view", ["finish", "events"])
async def test_a_sink_that_ends_the_program_ends_the_run_at_once(view: str):
    seen, told = Seen(stops_at=TurnStarted), []

    async def events() -> AsyncGenerator[ReActEvent, None]:
        try:
            yield RunStarted("grade_1", [])
            yield TurnStarted(1)
        finally:
            told.append("closed")

    async def begin(_: Any) -> AsyncGenerator[ReActEvent, None]:
        return events()

    recording = Recording(RunRecord("grade", "grade_1"), begin)
    with watching(seen), pytest.raises(SystemExit):
        if view == "finish":
            await recording.finish()
        else:
            async for _ in recording.events():
                pass
    assert told == ["closed"]
    assert [event.how for event in seen.ends] == ["cancelled"]


@pytest.mark.parametrize("place", ["enter", "exit"])
@pytest.mark.parametrize("view", ["finish", "events"])
async def test_what_the_log_context_raises_is_told_and_carries_the_facts(view: str, place: str):
    @asynccontextmanager
    async def named() -> AsyncGenerator[None, None]:
        if place == "enter":
            raise RunError("no log")
        try:
            yield
        finally:
            raise RunError("no log")

    seen = Seen()
    model = ScriptedLLM(RuntimeError("no model"))
    recording = Recording(RunRecord("grade", "grade_1"), lambda _: begins_unnamed(model), log_context=named)
    with watching(seen), pytest.raises(RunError, match="no log") as caught:
        if view == "finish":
            await recording.finish()
        else:
            async for _ in recording.events():
                pass
    assert (caught.value.trace_id, LISTENER.get()) == ("grade_1", None)
    assert [event.error for event in seen.ends] == [caught.value]


async def begins_unnamed(llm: ScriptedLLM) -> AsyncGenerator[ReActEvent, None]:
    return react_events(llm, [{"role": "user", "content": "?"}])


async def test_a_run_that_was_broken_off_does_not_begin_again():
    seen: list[Any] = []
    record = RunRecord("grade", "grade_1")
    recording = Recording(record, begins(ScriptedLLM("yes"), seen))
    events = recording.events()
    assert isinstance(await anext(events), RunStarted)
    await recording.finish()
    await events.aclose()
    await recording.finish()
    assert (len(seen), record.finished) == (1, None)


async def test_an_error_goes_with_whoever_holds_it():
    async def error_of_a_run() -> weakref.ref[BudgetExceeded]:
        try:
            with budget(seconds=0.001):
                await Recording(RunRecord("grade", "grade_1"), begins(ScriptedLLM(never), [])).finish()
        except BudgetExceeded as error:
            return weakref.ref(error)
        raise AssertionError("it had no time")

    gc.disable()  # what is left for it to find may wait for a long time
    try:
        assert (await error_of_a_run())() is None
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody forks here")
def test_a_forked_child_gives_other_ids_and_a_seed_of_the_users_changes_none():
    script = """
import os, random
from SimpleLLMFunc.base.run.run import generate_trace_id
generate_trace_id("f")
random.seed(1)
if os.fork():
    os.wait()
print(generate_trace_id("f"), flush=True)
random.seed(1)
print(generate_trace_id("f"), flush=True)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=True).stdout
    assert len(set(said.split())) == 4
