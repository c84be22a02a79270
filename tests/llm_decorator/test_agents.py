"""Agents of agents: decorated functions as tools of decorated functions, and what holds over all levels.

`top` asks `middle`, and `middle` asks `bottom`; each is a `def` or an `async def`, offered by `as_tool()` or called inside a
tool. Budgets, deadlines, aborts and cancellations of the top reach the bottom in every mixture.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import (
    AbortSignal,
    BudgetExceeded,
    DeadlineExceeded,
    ProviderError,
    RunAborted,
    ToolFailed,
    budget,
    llm_function,
    tool,
    watching,
)
from SimpleLLMFunc.base.events import ReActEvent, RunFinished, RunStarted
from SimpleLLMFunc.errors import ServerUnavailable
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.runtime.sync import run_sync
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.functions import async_decorated, decorated

KINDS = ["aaa", "sss", "sas", "asa"]
"""Of top, middle and bottom: `a` for async def, `s` for def; each calls each here."""
DOORS = ["as_tool", "inside a tool"]
EVERYWHERE = pytest.mark.parametrize(("kinds", "door"), list(itertools.product(KINDS, DOORS)))


# --- three levels ---


@dataclass
class Agents:
    """Three functions, each a tool of the one above, and the models they ask."""

    top: Any
    models: list[ScriptedLLM]

    @property
    def requests(self) -> int:
        return sum(len(model.calls) for model in self.models)

    async def ask(self, **options: Any) -> Any:
        """Ask the top, on this loop or from a thread."""
        return await asked(self.top, **options)


async def asked(function: Any, **options: Any) -> Any:
    signal = {"_abort_signal": options.pop("abort")} if "abort" in options else {}
    function = function.with_options(**options)
    if asyncio.iscoroutinefunction(function):
        return await function.call("?", **signal)
    return await asyncio.to_thread(function.call, "?", **signal)


def function_of(kind: str, name: str, llm: LLM_Interface, toolkit: list[Any], **options: Any) -> Any:
    return (async_decorated if kind == "a" else decorated)(str, llm, name=name, toolkit=toolkit, **options)


def tool_of(function: Any, door: str) -> Any:
    if door == "as_tool":
        return function.as_tool()
    if asyncio.iscoroutinefunction(function):

        async def call(text: str) -> str:
            """Ask the next one."""
            return str(await function(text))
    else:

        def call(text: str) -> str:  # type: ignore[misc]
            """Ask the next one."""
            return str(function(text))

    call.__name__ = function.__name__
    return call


def agents(kinds: str, door: str, *last: Any, bottom: LLM_Interface | None = None, **options: Any) -> Agents:
    """Build them; `last` is what the bottom's model replies, `bottom` that model itself."""
    lowest: Any = bottom or ScriptedLLM(*(last or ("deep",)))
    middle = ScriptedLLM(tool_calls(("bottom", {"text": "2"})), "halfway", "halfway")
    highest = ScriptedLLM(tool_calls(("middle", {"text": "1"})), "done", "done")
    function = function_of(kinds[2], "bottom", lowest, [], **options)
    function = function_of(kinds[1], "middle", middle, [tool_of(function, door)], **options)
    return Agents(
        function_of(kinds[0], "top", highest, [tool_of(function, door)], **options), [highest, middle, lowest]
    )


async def nothing_is_left() -> None:
    """Wait until no thread of a tool and no task is left, here and on the bridge; fail if that does not come."""

    async def others() -> int:
        return len(asyncio.all_tasks()) - 1

    async with asyncio.timeout(1):
        while any(thread.name.startswith("SimpleLLMFunc-tool") for thread in threading.enumerate()):
            await asyncio.sleep(0.001)
        while await asyncio.to_thread(run_sync, others()):
            await asyncio.sleep(0.001)
    assert len(asyncio.all_tasks()) == 1


class Hanging(ScriptedLLM):
    """Never answers; tells when it was asked, and when it was given up."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.is_given_up = threading.Event()

    async def chat(self, *_: Any, **__: Any) -> Any:
        self.is_asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.is_given_up.set()

    async def asked(self) -> None:
        await asyncio.to_thread(self.is_asked.wait, 5)


@EVERYWHERE
async def test_three_levels_and_their_trace_ids(kinds: str, door: str) -> None:
    three = agents(kinds, door)
    seen: list[tuple[str, ReActEvent]] = []
    with watching(lambda trace_id, event: seen.append((trace_id, event))):
        result = await three.ask()
    assert result.value == "done"
    assert three.requests == 5
    assert three.models[1].requests[0][-1]["content"].endswith("text: 1")
    assert three.models[1].requests[1][-1]["content"] == "deep"
    assert three.models[0].requests[1][-1]["content"] == "halfway"
    top, middle, bottom = [event.trace_id for _, event in seen if isinstance(event, RunStarted)]
    assert top == result.trace_id
    assert (top[:4], middle[:7], bottom[:7]) == ("top_", "middle_", "bottom_")
    assert middle.endswith(f"_{top}")
    assert bottom.endswith(f"_{middle.removesuffix(f'_{top}')}")
    assert [trace_id for trace_id, event in seen if isinstance(event, RunFinished)] == [bottom, middle, top]
    assert {trace_id for trace_id, _ in seen} == {top, middle, bottom}
    # Every request carries the id of its run.
    assert [model.calls[0].trace_id for model in three.models] == [top, middle, bottom]
    # The usage of an inner run is its own: a result counts what its own model took.
    assert result.usage.input_tokens < sum(e.usage.input_tokens for _, e in seen if isinstance(e, RunFinished))
    await nothing_is_left()


class Trip(BaseModel):
    city: str
    days: int


async def test_a_typed_function_is_a_typed_tool() -> None:
    @llm_function(ScriptedLLM('{"city": "Rome", "days": 3}'))
    async def plan(trip: Trip, *, cheap: bool = False) -> Trip:
        """Plan a trip.

        Args:
            trip: What is wished for.
        """

    made = plan.as_tool("trips.plan")
    spec = made.to_openai_tool()["function"]
    assert spec["name"] == "trips_plan"
    assert spec["description"] == "Plan a trip."
    assert set(spec["parameters"]["properties"]) == {"trip", "cheap"}
    assert spec["parameters"]["properties"]["trip"]["description"] == "What is wished for."
    llm = ScriptedLLM(tool_calls(("trips_plan", {"trip": {"city": "Rome", "days": 2}})), "ok")
    result = await function_of("a", "top", llm, [made]).call("?")
    assert json.loads(result.messages[-2]["content"]) == {"city": "Rome", "days": 3}
    # A toolkit may hold the decorated function itself.
    llm = ScriptedLLM(tool_calls(("plan", {"trip": {"city": "Rome"}})), "ok")
    result = await function_of("a", "top", llm, [plan]).call("?")
    assert "days" in result.messages[-2]["content"]


# --- budgets ---


@EVERYWHERE
async def test_a_budget_around_the_top_counts_all_levels(kinds: str, door: str) -> None:
    three = agents(kinds, door)
    used: list[int] = []
    with (
        watching(lambda _, event: used.append(event.usage.total_tokens) if isinstance(event, RunFinished) else None),
        budget(requests=5, tokens=100_000, seconds=30) as spent,
    ):
        await three.ask()
    assert spent.requests == 5
    assert spent.tokens == sum(used) > 0


@pytest.mark.parametrize("limit", range(5))
@pytest.mark.parametrize("kinds", KINDS)
async def test_a_budget_stops_every_level_before_the_request_that_would_break_it(kinds: str, limit: int) -> None:
    three = agents(kinds, "as_tool")
    with budget(requests=limit) as spent, pytest.raises(BudgetExceeded) as caught:
        await three.ask()
    assert spent.requests == three.requests == limit
    assert caught.value.limit == limit
    assert caught.value.func_name == "top"
    await nothing_is_left()


# --- deadlines, aborts, cancellations ---


@EVERYWHERE
async def test_the_deadline_of_the_top_ends_the_bottom(kinds: str, door: str) -> None:
    hanging = Hanging()
    three = agents(kinds, door, bottom=hanging)
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded) as caught:
        await three.ask(deadline=0.5)
    assert 0.5 <= time.monotonic() - started < 5
    assert caught.value.func_name == "top"
    assert caught.value.seconds == 0.5
    assert hanging.is_asked.is_set()
    await nothing_is_left()
    assert hanging.is_given_up.is_set()


@EVERYWHERE
async def test_an_abort_at_the_top_ends_everything(kinds: str, door: str) -> None:
    hanging, signal = Hanging(), AbortSignal()
    three = agents(kinds, door, bottom=hanging)
    task = asyncio.create_task(three.ask(abort=signal))
    await hanging.asked()
    started = time.monotonic()
    signal.abort("enough")
    with pytest.raises(RunAborted, match="enough") as caught:
        await task
    assert time.monotonic() - started < 5
    assert caught.value.func_name == "top"
    assert [m["role"] for m in caught.value.messages] == ["system", "user", "assistant", "tool"]
    await nothing_is_left()
    assert hanging.is_given_up.is_set()
    assert three.requests == 2  # of top and middle; no model was asked after the abort


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kinds", [kinds for kinds in KINDS if kinds[0] == "a"])
async def test_a_cancellation_of_the_top_leaves_nothing(kinds: str, door: str) -> None:
    hanging = Hanging()
    three = agents(kinds, door, bottom=hanging)
    task = asyncio.create_task(three.ask())
    await hanging.asked()
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5
    await nothing_is_left()
    assert hanging.is_given_up.is_set()
    assert three.requests == 2


# --- errors ---


@EVERYWHERE
async def test_an_inner_error_is_told_to_the_model_above_without_secrets(kinds: str, door: str) -> None:
    error = ServerUnavailable("m", status=503, body="at postgres://u:hunter2-secret@h/db key=sk-CANARY1234567890abcdef")
    three = agents(kinds, door, error)
    result = await three.ask()
    assert result.value == "done"
    (told,) = [m["content"] for m in three.models[1].requests[1] if m["role"] == "tool"]
    assert "ServerUnavailable" in told
    assert len(told) <= 500
    assert "hunter2" not in told
    assert "CANARY" not in told


@EVERYWHERE
async def test_an_inner_error_is_raised_where_that_is_wanted(kinds: str, door: str) -> None:
    error = ServerUnavailable("m", status=503, body="down")
    three = agents(kinds, door, error, on_tool_error="raise")
    with pytest.raises(ToolFailed) as caught:
        await three.ask()
    assert caught.value.func_name == "top"
    assert isinstance(caught.value.__cause__, ToolFailed)
    assert caught.value.__cause__.func_name == "middle"
    assert isinstance(caught.value.__cause__.__cause__, ProviderError)
    assert caught.value.__cause__.__cause__.func_name == "bottom"
    assert three.requests == 3
    await nothing_is_left()


# --- what a tool is given ---


async def test_a_confirmation_is_not_handed_down() -> None:
    ran: list[str] = []

    @tool(confirm=True)
    def wipe() -> str:
        """Delete everything."""
        ran.append("wiped")
        return "wiped"

    inner = function_of("a", "inner", ScriptedLLM(tool_calls(("wipe", {})), "tried"), [wipe])
    llm = ScriptedLLM(tool_calls(("inner", {"text": "x"})), "ok")
    outer = function_of("a", "outer", llm, [inner.as_tool()], toolkit_confirm=lambda name, arguments: True)
    assert await outer("?") == "ok"
    assert ran == []
