"""The run that a log record belongs to: a context variable with the run's id, name and tokens."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field

from SimpleLLMFunc.runtime import ForkSafeLock
from SimpleLLMFunc.type import Usage
from SimpleLLMFunc.utils import Block, ScopedVar


@dataclass(slots=True)
class LogContext:
    """The current run; its token counts grow with `count_tokens`.

    Attributes:
        trace_id: the run's id.
        function_name: name of the decorated function, or of other running code.
        parent_trace_id: id of the run around this one, empty without one.
        input_tokens, output_tokens: read and written by the model so far, in this run alone.
        run_id: the trace id of the run, or of the nearest one around it: a log context need not be a run.
    """

    trace_id: str = ""
    function_name: str = ""
    parent_trace_id: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    run_id: str = field(default="", compare=False)


_current: ScopedVar[LogContext | None] = ScopedVar("SimpleLLMFunc.log_context", None)
_counting = ForkSafeLock()


def _inherit(context: LogContext, around: LogContext) -> None:
    if context.trace_id and context.trace_id != around.trace_id:
        context.parent_trace_id = around.trace_id
    else:
        context.trace_id = around.trace_id
        context.parent_trace_id = around.parent_trace_id
    context.function_name = context.function_name or around.function_name
    context.run_id = around.run_id


class log_context(AbstractContextManager[None], AbstractAsyncContextManager[None]):  # noqa: N801 - called like a function
    """Stamp the log records made inside the ``with`` block with this run.

    Empty arguments take the values of the surrounding block. An id that is no text, such as the number of an order, is
    written as one. Tasks and threads that copy the context share its counts.
    With ``async with``, another task may leave the block than the one that entered it.
    """

    def __init__(
        self, trace_id: object = "", function_name: str = "", input_tokens: int = 0, output_tokens: int = 0
    ) -> None:
        self._given = ("" if trace_id is None else str(trace_id), function_name, "", input_tokens, output_tokens)
        self._blocks: list[Block[LogContext | None]] = []  # it may be entered again, also inside itself

    def __enter__(self) -> None:
        context, around = LogContext(*self._given), _current.get()
        if around is not None:
            _inherit(context, around)
        self._blocks.append(_current.enter(context))

    def __exit__(self, *_: object) -> None:
        _current.leave_one(self._blocks)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


async_log_context = log_context


def get_current_context() -> LogContext | None:
    """Return the current run (the live object); None outside of a run."""
    return _current.get()


def get_current_trace_id() -> str:
    """Return the id of the current run; empty outside of a run."""
    context = _current.get()
    return "" if context is None else context.trace_id


def begin_run(trace_id: str) -> None:
    """Mark the current log context as a run; a resumed run has its earlier id."""
    context = _current.get()
    if context is not None:
        context.run_id = context.trace_id = trace_id


def get_current_run_id() -> str:
    """Return the trace id of the nearest run around this code; empty outside of a run."""
    context = _current.get()
    return "" if context is None else context.run_id


def count_tokens(usage: Usage) -> None:
    """Add the tokens of one request to the current run; without a run, do nothing."""
    context = _current.get()
    if context is None:
        return
    with _counting:  # tools of one run may count from several threads
        context.input_tokens += usage.input_tokens
        context.output_tokens += usage.output_tokens
