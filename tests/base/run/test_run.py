"""The frame around a run: what names it, what it is part of, and what its errors carry."""

from __future__ import annotations

import asyncio
import re
import sys
import types
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import pytest

from SimpleLLMFunc import BudgetExceeded, RunError, budget, watching
from SimpleLLMFunc.base.events import ReActEvent, ReplyDelta, RunFailed, RunFinished, RunStarted
from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ModelRequest, Toolset
from SimpleLLMFunc.base.run.run import Run, generate_trace_id
from SimpleLLMFunc.interface.attempts.listener import LISTENER
from SimpleLLMFunc.interface.spending.deadline import current_deadline
from SimpleLLMFunc.logger import async_log_context, get_current_context, get_current_trace_id, log_context
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import Tool
from tests.support.seen import Seen

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


async def events_of(run: Run, llm: ScriptedLLM, tools: Toolset | None = None) -> AsyncGenerator[ReActEvent, None]:
    """Yield the events of a run as every pipeline does: the log context, the run, the loop."""
    request = ModelRequest(llm, [{"role": "user", "content": "?"}], tools.specs if tools else None)
    async with async_log_context(run.trace_id, run.func_name), run:
        async with aclosing(react_events(request, tools, None, run)) as events:
            async for event in events:
                yield event


async def read(run: Run, llm: ScriptedLLM) -> None:
    async for _ in events_of(run, llm):
        pass


async def test_a_run_is_named_in_the_log_and_not_outside():
    seen: list[Any] = []

    def answer(_: Any) -> str:
        context = get_current_context()
        seen.append((context.trace_id, context.function_name))
        return "yes"

    run = Run("grade", "grade_1")
    names = [type(event).__name__ async for event in events_of(run, ScriptedLLM(answer))]
    assert seen == [("grade_1", "grade")]
    assert get_current_trace_id() == ""
    assert names == ["RunStarted", "TurnStarted", "ReplyReceived", "MessageAppended", "RunFinished"]
    assert run.finished is not None
    assert run.usage.total_tokens > 0


def test_a_journal_knows_a_run_by_its_arguments_or_by_what_stands_for_them():
    run = Run("grade", about=RunMetadata(FunctionMetadata("grade"), {"essay": "x"}))
    assert run.identity().arguments == {"essay": "x"}
    run.known_by = ["y"]
    assert run.identity().arguments == ["y"]


async def test_an_error_carries_the_facts_of_the_run():
    with pytest.raises(RunError) as caught:
        await read(Run("grade", "grade_1"), ScriptedLLM(RunError("no")))
    assert (caught.value.trace_id, caught.value.func_name, caught.value.cached) == ("grade_1", "grade", False)


@pytest.mark.parametrize("deadline", [60, None])
async def test_the_time_of_a_budget_is_told_as_the_budgets(deadline: float | None):
    with budget(seconds=0.001), pytest.raises(BudgetExceeded) as caught:
        await read(Run("grade", "grade_1", deadline=deadline), ScriptedLLM(never))
    assert (caught.value.trace_id, caught.value.limit) == ("grade_1", 0.001)


async def never(request: Any) -> str:
    await asyncio.Event().wait()
    return ""


# --- however it ends -----------------------------------------------------------------------------------------


class Stepped:
    """A run that waits wherever one can: for the model, for two tools, between two events."""

    def __init__(self, *, stream: bool) -> None:
        async def look(number: int) -> int:
            await asyncio.sleep(0)
            return number

        async def answer(_: Any) -> str:
            await asyncio.sleep(0)
            return "yes"

        tool = Tool(look)
        self.tools = Toolset({"look": tool}, [tool.to_openai_tool()])
        self.llm = ScriptedLLM(tool_calls(("look", {"number": 1}), ("look", {"number": 2})), answer)
        self.run = Run("grade", "grade_1", deadline=60, stream=stream)

    async def read(self) -> None:
        async with aclosing(events_of(self.run, self.llm, self.tools)) as events:
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
async def test_wherever_it_is_cancelled_it_tells_so_once_and_leaves_nothing(stream: bool):
    task = asyncio.current_task()
    assert task is not None
    for step in range(500):
        stepped, seen, others = Stepped(stream=stream), Seen(), asyncio.all_tasks()
        with watching(seen), left_open() as open_ones:
            try:
                has_ended = await cancelled_at(step, stepped.read())
            except asyncio.CancelledError:
                task.uncancel()
                has_ended = False
        assert (get_current_context(), LISTENER.get(), current_deadline().left()) == (None, None, None)
        assert (asyncio.all_tasks(), open_ones) == (others, [])
        assert len(seen.of(RunStarted)) == 1
        (end,) = seen.of(RunFailed, RunFinished)
        if isinstance(end, RunFailed):
            # The reader itself may have been cancelled, between two events.
            assert end.how in {"cancelled", "abandoned"}
        assert isinstance(end, RunFinished) == (stepped.run.finished is not None)
        if has_ended:
            break
    assert has_ended
    assert step > 6


async def test_a_sink_that_ends_the_program_ends_the_run_at_once():
    seen, closed = Seen(), []

    def stops(_: str, event: ReActEvent) -> None:
        if isinstance(event, ReplyDelta):
            raise SystemExit

    class Watched(ScriptedLLM):
        async def chat_stream(self, messages: Any, **options: Any) -> AsyncGenerator[Any, None]:
            try:
                async with aclosing(super().chat_stream(messages, **options)) as pieces:
                    async for piece in pieces:
                        yield piece
            finally:
                closed.append("closed")

    with watching(seen, stops), left_open() as open_ones, pytest.raises(SystemExit):
        await read(Run("grade", "grade_1", stream=True), Watched("yes"))
    assert (closed, [name for name in open_ones if name != "_steps"]) == (["closed"], [])
    assert [event.how for event in seen.of(RunFailed, RunFinished)] == ["cancelled"]
