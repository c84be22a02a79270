"""The frame around a run: what names it, what it is part of, and what its errors carry."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from SimpleLLMFunc import BudgetExceeded, RunError, budget
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.record import RunRecord
from SimpleLLMFunc.base.run import Recording, generate_trace_id
from SimpleLLMFunc.logger import get_current_context, get_current_trace_id, log_context
from SimpleLLMFunc.testing import ScriptedLLM

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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody forks here")
def test_a_forked_child_gives_other_ids_and_a_seed_of_the_users_changes_none():
    script = """
import os, random
from SimpleLLMFunc.base.run import generate_trace_id
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
