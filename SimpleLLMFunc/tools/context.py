"""What a tool can say to us: `ToolContext`, which it is given, and `ModelRetry`, which it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Generic

from typing_extensions import TypeVar

from SimpleLLMFunc.type import ChatCompletion, Message

C = TypeVar("C", default=Any)


class ModelRetry(ValueError):
    """Raised by a tool, a guard or a validator to make the model try again; the model reads the message.

    Example: ``raise ModelRetry("There is no city 'Rom'. Did you mean 'Rome'?")``.
    """


class NotConfirmed(ModelRetry):
    """Raised by a tool that asks by itself whether it may run, and may not; a run tells it in its own language."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        super().__init__(tool)

    def __str__(self) -> str:
        return f"The tool {self.tool} was not run: it needs a confirmation, and none was given. Go on without it."


def nowhere(_: Any) -> None:
    """Take progress and drop it."""


@dataclass(frozen=True, slots=True)
class ToolContext(Generic[C]):
    """What a tool knows about the run that calls it.

    A parameter annotated ``ToolContext`` or ``ToolContext[AppState]`` is filled by us and hidden from the model.

    Attributes:
        trace_id: of the run; empty outside one.
        func_name: the decorated function that is running.
        tool_name: the tool's own name.
        call_id: the model's id of this call.
        context: the value that the caller of the run passed along, None where it passed none.
        idempotency_key: inside of a `durable` block the same at each try of this call, and that of no other call; empty
            outside of one.
    """

    trace_id: str = ""
    func_name: str = ""
    tool_name: str = ""
    call_id: str = ""
    context: C = None  # type: ignore[assignment]  # None where the caller passed none, for any C
    idempotency_key: str = field(default="", repr=False)
    _emit: Callable[[Any], None] = field(default=nowhere, repr=False, compare=False)

    def emit(self, progress: Any) -> None:
        """Tell those who watch the run how far the tool is; from any thread, never waits, never fails."""
        self._emit(progress)


@dataclass(frozen=True, slots=True)
class Caller:
    """The run that calls a tool, for a tool whose server asks back.

    Attributes:
        model: that of the run.
        ask: ``await ask(name, messages, params)`` asks it, in a run of that name.
        confirm: the run's `toolkit_confirm`, None where it has none.
        limit: of the time that the tool has.
    """

    model: Any
    ask: Callable[[str, list[Message], dict[str, Any]], Awaitable[ChatCompletion]]
    confirm: Callable[[str, dict[str, Any]], Awaitable[Any]] | None
    limit: asyncio.Timeout | None = None


CALLER: Final[ContextVar[Caller | None]] = ContextVar("CALLER", default=None)
"""Set while a run calls a tool."""
