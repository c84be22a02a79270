"""`RunTool`: a plain callable as a step."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import Tool, ToolContext, budget, durable, tool
from SimpleLLMFunc.calls.call_data import CallOutputType, ExecutorHistory
from SimpleLLMFunc.calls.run_tool import RunTool
from SimpleLLMFunc.errors import CallError, ToolDefinitionError
from SimpleLLMFunc.interface.spending.deadline import deadline_scope

SECRET = "sk-abcdefghijklmnopqrstuvwxyz123456"


class Place(BaseModel):
    name: str
    founded: dt.date | None = None


async def made(func, /, on=None, **params: Any) -> tuple[RunTool, Any]:
    on = on or SimpleNamespace(task=None, llm=None, step=None)
    return await RunTool.instance(on, func=func, **params), on


async def result(func, /, on=None, **params: Any) -> Any:
    call, on = await made(func, on, **params)
    (chunk,) = [chunk async for chunk in call.exec(on, call.input)]
    assert chunk.type is CallOutputType.DATA
    return chunk.content


# --- results -------------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("returned", "content"),
    [
        ({"a": 1}, {"a": 1}),
        (Place(name="杭州", founded=dt.date(589, 1, 1)), {"name": "杭州", "founded": "0589-01-01"}),
        (Point(3), {"x": 3}), ("text", {"result": "text"}), (None, {"result": None}),
        ([Place(name="a"), 2], {"result": [{"name": "a", "founded": None}, 2]}),
        (dt.date(2024, 1, 2), {"result": "2024-01-02"}), ({1: {2}}, {"1": [2]}), (float("nan"), {"result": None}),
        (b"\xff", {"result": "_w=="}), (iter([1, 2]), {"result": [1, 2]}),
    ],
)  # fmt: skip
async def test_an_object_is_the_data_and_anything_else_stands_under_result(returned, content):
    assert await result(lambda: returned) == content


@pytest.mark.parametrize("returned", [object(), {"a": object()}])
async def test_a_result_that_is_no_json_is_an_error(returned):
    with pytest.raises(CallError, match="the result of function cannot be written as JSON"):
        await result(lambda: returned)


# --- what runs -----------------------------------------------------------------------------------------------


async def test_an_async_callable_runs_on_the_loop_and_a_sync_one_in_a_thread():
    async def here(n: int) -> bool:
        await asyncio.sleep(0)
        return threading.current_thread() is threading.main_thread()

    def there(n: int) -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await result(here, n=1) == {"result": True}
    assert await result(there, n=1) == {"result": False}


class Office:
    def greet(self, who: str) -> str:
        return f"hi {who}"

    def __call__(self, who, times: int = 1):
        return who * times


class Adder(Tool):
    """Adds."""

    def run(self, a: int, b: int) -> int:
        return a + b


@tool
def double(n: int) -> int:
    """Double it."""
    return n * 2


@pytest.mark.parametrize(
    ("func", "params", "content"),
    [
        (Office().greet, {"who": "Bo"}, "hi Bo"), (Office(), {"who": "Bo", "times": "2"}, "BoBo"),
        (functools.partial(Office().greet, who="Li"), {}, "hi Li"), (functools.partial(pow, exp=2), {"base": 3}, 9),
        (Adder(), {"a": "1", "b": 2}, 3), (double, {"n": 4}, 8),
        (lambda *many, **more: [many, more], {"many": [1], "x": 2}, [[1], {"x": 2}]),
    ],
)  # fmt: skip
async def test_every_kind_of_callable(func, params, content):
    assert await result(func, **params) == {"result": content}


@pytest.mark.parametrize("func", [3, None, "print", Adder, max])
async def test_what_cannot_be_called_is_an_error_before_it_runs(func):
    with pytest.raises(CallError) as caught:
        await made(func)
    assert isinstance(caught.value.__cause__, ToolDefinitionError)


# --- arguments -----------------------------------------------------------------------------------------------


async def test_arguments_are_converted_by_type():
    def plan(place: Place, day: dt.date, n: int = 3) -> Any:
        return {"is_place": isinstance(place, Place), "weekday": day.weekday(), "n": n}

    given = {"place": {"name": "a"}, "day": "2024-01-01"}
    assert await result(plan, **given, n="5") == {"is_place": True, "weekday": 0, "n": 5}
    assert await result(plan, place=Place(name="a"), day=dt.date(2024, 1, 1)) == {
        "is_place": True,
        "weekday": 0,
        "n": 3,
    }


async def test_arguments_that_do_not_fit_are_named():
    def plan(city: str, n: int) -> None: ...

    with pytest.raises(CallError, match=r"n: .*'many'") as caught:
        await result(plan, n="many", town="x")
    assert {violation[0] for violation in caught.value.data["violations"]} == {"city", "n", "town"}
    with pytest.raises(CallError, match="the arguments cannot be written as JSON"):
        await result(lambda a: a, a=object())


async def test_a_parameter_without_a_type_takes_anything():
    def mixed(a, b: int, c: Place):
        return {"a": a, "b": b, "c": type(c).__name__}

    call, _ = await made(mixed)
    assert call.input_schema()["properties"] == {"a": {}, "b": {"type": "integer"}, "c": {"$ref": "#/$defs/Place"}}
    assert await result(mixed, a=["x", 1], b="2", c={"name": "y"}) == {"a": ["x", 1], "b": 2, "c": "Place"}


async def test_a_tool_stays_as_it_is_also_where_its_function_has_no_types():
    @tool(name="double", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}, once=True)
    def doubled(n): ...

    call, _ = await made(doubled, n=3)
    assert call.tool is doubled

    class Shop:
        @tool
        def price(self, n: int): ...

    with pytest.raises(CallError, match="it is a method"):
        await made(Shop.price, n=3)


async def test_a_parameter_may_have_the_name_of_a_field():
    def post(name: str, description: str = "-", to_user: bool = False) -> str:
        return f"{name} {description} {to_user}"

    on = SimpleNamespace(task=None, llm=None, step=SimpleNamespace(name="step", description="of the step"))
    call, _ = await made(post, on, name="Bo", to_user=True)
    assert (call.name, call.description, call.to_user) == ("step", "of the step", False)
    assert await result(post, on, name="Bo", to_user=True) == {"result": "Bo - True"}
    assert await result(post, on, name="Bo", arguments={"description": "d"}) == {"result": "Bo d False"}


async def test_arguments_may_come_from_the_history():
    def plan(city: str, days: int = 1) -> list[Any]:
        return [city, days]

    slot = ExecutorHistory("slot", "", {"slot_data": {"city": "杭州", "days": 2}, "remaining_schema": {}})
    on = SimpleNamespace(task=SimpleNamespace(history=[slot]), llm=None, step=None)
    assert await result(plan, on, arguments="slot/slot_data") == {"result": ["杭州", 2]}
    assert await result(plan, on, arguments="slot/slot_data", days=5) == {"result": ["杭州", 5]}
    with pytest.raises(CallError, match=r"no object stands at 'slot/data'.*steps: slot"):
        await made(plan, on, arguments="slot/data")

    def post(name: str) -> str:
        return name

    with pytest.raises(CallError, match="give name in `arguments`"):
        await made(post, on, arguments="slot/slot_data", name="x")


async def test_the_schema_is_that_of_the_parameters_and_the_context_is_ours():
    def work(city: str, context: ToolContext) -> str:
        """Work.

        Args:
            city: where.
            context: ours.
        """
        return f"{context.tool_name} {context.func_name}"

    call, _ = await made(work, name="step")
    assert call.input_schema()["properties"] == {"city": {"type": "string", "description": "where."}}
    assert await result(work, city="x", name="step") == {"result": "work step"}


# --- failures and limits -------------------------------------------------------------------------------------


async def test_what_the_callable_raises_is_a_call_error_without_secrets():
    def fail() -> None:
        raise PermissionError(f"no {SECRET}")

    with pytest.raises(CallError, match="PermissionError: no sk-") as caught:
        await result(fail, name="s")
    assert SECRET not in f"{caught.value} {caught.value.__cause__!r}"
    error = ZeroDivisionError("by zero")

    async def raise_it() -> None:
        raise error

    with pytest.raises(CallError, match="s: ZeroDivisionError: by zero") as caught:
        await result(raise_it, name="s")
    assert caught.value.__cause__ is error


async def hang() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("limit", "error"),
    [(lambda: deadline_scope(0.05), "DeadlineExceeded"), (lambda: budget(seconds=0.05), "BudgetExceeded")],
)
async def test_a_limit_of_time_ends_it(limit, error):
    with limit(), pytest.raises(CallError) as caught:
        await result(hang)
    assert caught.value.data["error"] == error
    with pytest.raises(CallError, match=r"0\.05 s passed while running hang"):
        await result(Tool(func=hang, timeout=0.05))


async def test_cancelling_cancels_the_callable():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(result(work))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


# --- in a durable block --------------------------------------------------------------------------------------


async def test_a_once_tool_as_a_step_of_a_task(tmp_path):
    runs = []

    def found(amount: int, context: ToolContext) -> str:
        return f"found {amount} {context.idempotency_key in runs}"

    @tool(once=True, recover=found)
    def pay(amount: int, context: ToolContext) -> str:
        """Pay."""
        runs.append(context.idempotency_key)
        if len(runs) == 1:
            raise asyncio.CancelledError  # as if the process had died
        return "paid"

    async def paid(key):
        with durable(tmp_path / "runs.sqlite", key):
            return await result(pay, amount=3)

    with pytest.raises(asyncio.CancelledError):
        await paid("k")
    assert await paid("k") == await paid("k") == {"result": "found 3 True"}
    assert await paid("other") == await paid("other") == {"result": "paid"}
    assert len(runs) == len(set(runs)) == 2
    assert await result(pay, amount=3) == {"result": "paid"}
