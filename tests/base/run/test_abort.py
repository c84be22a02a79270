"""`AbortSignal`: whoever listens is told, whenever and from wherever it is set."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from SimpleLLMFunc import UsageError
from SimpleLLMFunc.base.run.abort import AbortSignal
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import function_of


class Interrupted(set):  # type: ignore[type-arg]
    """A set in which a signal handler comes in when something is added: before it is there, or after."""

    def __init__(self, signal: AbortSignal, *, before: bool) -> None:
        super().__init__()
        self.signal = signal
        self.before = before

    def add(self, listener: Any) -> None:
        if self.before:
            self.signal.abort("ctrl-c")
            self.signal._listeners.add(listener)  # what `add` then does to the set that it was called on is lost
        else:
            super().add(listener)
            self.signal.abort("ctrl-c")


@pytest.mark.parametrize("before", [True, False])
def test_a_signal_handler_may_abort_while_someone_begins_to_listen(before: bool) -> None:
    signal = AbortSignal()
    signal._listeners = Interrupted(signal, before=before)
    told: list[str] = []
    undo = signal.listen(lambda: told.append(signal.reason))
    undo()
    assert told == ["ctrl-c"]


def test_a_listener_is_told_once() -> None:
    signal = AbortSignal()
    told: list[str] = []
    signal.listen(lambda: told.append("kept"))
    signal.listen(lambda: told.append("undone"))()
    signal.abort("first")
    signal.abort("second")
    signal.listen(lambda: told.append("late"))
    assert told == ["kept", "late"]
    assert (signal.is_aborted, signal.reason) == (True, "first")


@pytest.mark.parametrize("view", ["call", "preview"])
def test_another_signal_is_refused_at_the_call(view: str) -> None:
    ask = function_of(ScriptedLLM("ok"))
    with pytest.raises(UsageError, match=r"an AbortSignal or an asyncio\.Event, not <threading"):
        getattr(ask, view)("x", _abort_signal=threading.Event())
