"""The border: which frames of an error are printed, and where the others are."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import traceback
import weakref
from collections.abc import AsyncGenerator, Generator

import pytest

import SimpleLLMFunc
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, ToolFailed
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls


def functions(trace) -> list[str]:
    return [frame.f_code.co_name for frame, _ in traceback.walk_tb(trace)]


@llm_function(llm_interface=ScriptedLLM("many", repeat=True))
def count(text: str) -> int:
    """Count the words."""


def caught(call) -> SimpleLLMFuncError:
    with pytest.raises(SimpleLLMFuncError) as told:
        call()
    return told.value


@pytest.mark.parametrize("value", ["1", "true"])
def test_nothing_is_left_out_where_all_is_asked_for(value, monkeypatch):
    monkeypatch.setenv("SIMPLELLMFUNC_DEBUG", value)
    error = caught(lambda: count("a b"))
    assert len(functions(error.__traceback__)) > 10
    assert error.whole_traceback is error.__traceback__
    monkeypatch.setenv("SIMPLELLMFUNC_DEBUG", "0")
    assert len(functions(caught(lambda: count("a b")).__traceback__)) == 3


def test_an_error_that_is_raised_again_has_the_frames_of_the_last_time():
    failing = ConfigError("always")
    ask = count.with_options(llm_interface=ScriptedLLM(failing, repeat=True))
    lengths = {len(functions(caught(lambda: ask("a b")).whole_traceback)) for _ in range(4)}
    assert len(lengths) == 1


def test_frames_do_not_travel():
    error = caught(lambda: count("a b"))
    for same in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert str(same) == str(error)
        assert same.whole_traceback is None
    assert "traceback" not in repr(vars(error))


def test_an_error_that_is_let_go_holds_no_frames():
    class Held:
        pass

    def call() -> weakref.ref[Held]:
        held = Held()
        with pytest.raises(SimpleLLMFuncError):
            count(f"{held}")
        return weakref.ref(held)

    held = call()
    gc.collect()
    assert held() is None


def test_a_hidden_cause_is_still_the_context():
    error = caught(border(lambda: load_extra("no_such_module", "tea", purpose="tea")))
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert isinstance(error.__context__, ModuleNotFoundError)


def broken(n: int) -> str:
    """Do something."""
    raise LookupError(n)


def test_the_frames_of_a_tool_stay_however_deep_it_is():
    inner = count.with_options(
        llm_interface=ScriptedLLM(tool_calls(("broken", {"n": 1}))), toolkit=[broken], on_tool_error="raise"
    )
    outer = count.with_options(
        llm_interface=ScriptedLLM(tool_calls(("count", {"text": "a"}))),
        toolkit=[inner.as_tool()],
        on_tool_error="raise",
    )
    error = caught(lambda: outer("a b"))
    assert isinstance(error, ToolFailed)
    assert isinstance(error.__cause__, ToolFailed)
    assert isinstance(error.__cause__.__cause__, LookupError)
    printed = "".join(traceback.format_exception(error))
    assert "in broken" in printed
    assert f'  File "{SimpleLLMFunc.__path__[0]}' not in printed


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_what_is_not_ours_passes_as_it_is(error):
    def inner() -> None:
        raise error

    with pytest.raises(type(error)) as told:
        border(inner)()
    assert told.value is error
    assert functions(error.__traceback__)[-2:] == ["called", "inner"]
    assert not hasattr(error, "frames")


async def test_iterators_are_closed_with_what_is_around_them():
    closed: list[str] = []

    @border
    async def several() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("async")

    @border
    def some() -> Generator[int, None, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("sync")

    items, plain = several(), some()
    assert await anext(items) == next(plain) == 1
    await items.aclose()
    plain.close()
    assert closed == ["async", "sync"]
