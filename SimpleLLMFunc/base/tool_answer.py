"""The answer to one tool call: its tool found, its arguments read, confirmed, run; every failure told to the model."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallProgress
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.parsing import mended_arguments
from SimpleLLMFunc.base.request import ToolPolicy
from SimpleLLMFunc.base.run import JOURNAL, JournaledCall
from SimpleLLMFunc.base.run.observer import current_observer
from SimpleLLMFunc.base.tool_result import render_result
from SimpleLLMFunc.errors import OutcomeUnknown, RunPaused, SimpleLLMFuncError, ToolFailed, cut
from SimpleLLMFunc.logger import (
    holds_little,
    push_debug,
    push_warning,
    redacted_cause,
    render_arguments,
    shown_error,
    shown_text,
    shown_traceback,
)
from SimpleLLMFunc.runtime import LARGE
from SimpleLLMFunc.tools import (
    CALLER,
    AnsweredInstead,
    Caller,
    ModelRetry,
    NotConfirmed,
    Tool,
    ToolContext,
    as_tool,
    in_thread,
    is_agreed,
    run_callable,
)
from SimpleLLMFunc.tools.schemas import ArgumentsError
from SimpleLLMFunc.type import ToolCall, holds_multimodal, without_surrogates

MAX_AT_ONCE: Final = 128
"""Calls of one reply that run at the same time; the others wait their turn."""

_MAX_RETRY_CHARS: Final = 4000
WAITS = (RunPaused, OutcomeUnknown)
"""The run ends with these, after the other tools of the turn have finished: they need an answer from outside."""

_PASSES = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, *WAITS)
"""These are not the tool's failure; they end the run."""


@dataclass(slots=True)
class Round:
    """What the calls of one reply share.

    Attributes:
        happened: takes what tools tell.
        caller: the run.
        room: for as many calls as may run at once.
        asking: one question at a time: two of them on one terminal would get each other's answers.
    """

    tool_map: Mapping[str, Callable[..., Any] | Tool]
    turn: int
    trace_id: str
    func_name: str
    policy: ToolPolicy
    happened: asyncio.Queue[int | ToolCallProgress]
    caller: Caller | None = None
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_AT_ONCE))
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def emitter(self, call: ToolCall) -> Callable[[Any], None]:
        """Return what a tool tells its progress to; from any thread."""
        loop = asyncio.get_running_loop()

        def emit(progress: Any) -> None:
            try:
                loop.call_soon_threadsafe(self.happened.put_nowait, ToolCallProgress(self.turn, call, progress))
            except RuntimeError:
                return  # the loop is closed: no reader is left

        return emit

    def as_caller(self) -> Caller | None:
        """Return the run as a tool's server may ask it, a person one question at a time."""
        confirm = self.policy.confirm
        if self.caller is None or confirm is None:
            return self.caller

        async def in_turn(tool: str, form: dict[str, Any]) -> Any:
            async with self.asking:
                return await run_callable(confirm, [tool, form], {})

        return replace(self.caller, confirm=in_turn)


async def settled(call: ToolCall, round_: Round, step: JournaledCall | None) -> ToolCallFinished | BaseException:
    """Return the answer to one call, or why the run must end.

    It is returned, since a task that raises KeyboardInterrupt would tear down the whole loop.
    """
    if (observer := current_observer()) is not None:
        observer.tool_begins(call)
    CALLER.set(round_.as_caller())  # for this task
    try:
        async with round_.room:
            return await (_answer(call, round_) if step is None else _journaled(call, round_, step))
    except _PASSES as reason:
        task = asyncio.current_task()
        if isinstance(reason, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        return reason
    except SimpleLLMFuncError as reason:  # such as ToolFailed, and what is wrong with a journal
        if reason.__cause__ is not None:
            reason.__context__ = None  # the cause may be a copy without the secret that the original holds
        return reason


async def _journaled(call: ToolCall, round_: Round, step: JournaledCall) -> ToolCallFinished:
    """Answer one call of which a journal knows: it is given again, or written before it is used."""
    if (known := step.finished(round_.turn, call)) is not None:
        return known
    JOURNAL.enter(step)  # for this task: what the tool asks and runs is a part of the call
    try:
        answer = await _answer(call, round_, step)
    except ToolFailed as error:
        await step.ends(ToolCallFinished(round_.turn, call, "", failed=True, seconds=0.0), error.problem)
        raise
    except WAITS:
        await step.waits()
        raise
    await step.ends(answer)
    return answer


async def _answer(call: ToolCall, round_: Round, step: JournaledCall | None = None) -> ToolCallFinished:
    """Answer one call: find its tool, read its arguments, ask for confirmation, run it, render what it returned."""
    known: tuple[Any, ...] = ()
    try:
        tool = _find(call, round_)
        arguments = await _read(call, tool, round_, step.idempotency_key if step is not None else "")
        if step is not None and step.has_begun:
            known = await step.outcome(tool, arguments.values, arguments.context)
        else:
            await _confirm(tool, arguments.values, round_)
    except _NotRunError as refusal:
        return _refusal(call, round_, str(refusal), refusal.error_type)
    if step is not None and tool.once and not known:
        await step.begins(tool, arguments.values)
    push_debug(lambda: f"tool {tool.name} called with {render_arguments(arguments.values)}")
    started = time.monotonic()
    try:
        value = known[0] if known else await _run(tool, arguments)
        seconds = time.monotonic() - started
        content = await _render(value, tool, round_.policy)
    except _PASSES:
        raise
    except BaseException as error:  # noqa: BLE001 - every error of a tool is told to the model
        return _failure(call, tool, round_, error, time.monotonic() - started)
    push_debug(lambda: f"tool {tool.name} answered after {seconds:.3f} s")
    return ToolCallFinished(round_.turn, call, content, failed=False, seconds=seconds)


class _NotRunError(Exception):
    """The call was not carried out; its text is what the model reads."""

    def __init__(self, text: str, error_type: str) -> None:
        super().__init__(text)
        self.error_type = error_type


class _TooSlowError(Exception):
    """The tool was stopped after its time; the cause is the `TimeoutError`."""


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of one call: as an object, and as the tool takes them."""

    values: dict[str, Any]
    args: list[Any]
    kwargs: dict[str, Any]
    context: ToolContext[Any]


def _find(call: ToolCall, round_: Round) -> Tool:
    candidate = round_.tool_map.get(call.function.name)
    if candidate is None:
        known = cut(", ".join(round_.tool_map), 1000) or "none"
        raise _NotRunError(round_.policy.told("unknown", name=call.function.name, known=known), "unknown_tool")
    return as_tool(candidate)


async def _read(call: ToolCall, tool: Tool, round_: Round, idempotency_key: str) -> _Arguments:
    text, policy = call.function.arguments, round_.policy
    context = ToolContext(
        round_.trace_id, round_.func_name, tool.name, call.id, policy.context, idempotency_key, round_.emitter(call)
    )
    try:
        return await in_thread(_bound, tool, text, context)
    except ArgumentsError as error:
        raise _NotRunError(policy.told("unfit", name=tool.name, problem=error), "invalid_arguments") from None


def _bound(tool: Tool, text: str, context: ToolContext[Any]) -> _Arguments:
    values = tool.read(text, mended_arguments)
    return _Arguments(values, *tool.bind(values, context), context)


async def _confirm(tool: Tool, values: dict[str, Any], round_: Round) -> None:
    if not tool.confirm:
        return
    confirm = round_.policy.confirm
    try:
        async with round_.asking:
            is_allowed = confirm is not None and await is_agreed(confirm, tool.name, copied([values])[0])
    except AnsweredInstead as answer:
        raise _NotRunError(str(answer), "not_confirmed") from None
    if not is_allowed:
        raise _NotRunError(round_.policy.told("not confirmed", name=tool.name), "not_confirmed")


async def _run(tool: Tool, arguments: _Arguments) -> Any:
    limit = asyncio.timeout(tool.timeout)
    try:
        async with limit:
            if (caller := CALLER.get()) is not None:
                CALLER.set(replace(caller, limit=limit))
            return await run_callable(tool.func, arguments.args, arguments.kwargs)
    except TimeoutError as error:
        if limit.expired():
            raise _TooSlowError from error
        raise


async def _render(value: Any, tool: Tool, policy: ToolPolicy) -> str | list[dict[str, Any]]:
    untrusted = tool.name if tool.untrusted else None
    render = functools.partial(render_result, value, policy.max_result_chars, untrusted=untrusted)
    # Writing down a long result, or files, would hold up the loop.
    is_slow = not holds_little(value, LARGE) or holds_multimodal(value)
    return await in_thread(render) if is_slow else render()


def _refusal(call: ToolCall, round_: Round, text: str, error_type: str) -> ToolCallFinished:
    push_debug(lambda: text)
    content = without_surrogates(shown_text(text))
    return ToolCallFinished(round_.turn, call, content, failed=True, seconds=0.0, error_type=error_type)


def _failure(call: ToolCall, tool: Tool, round_: Round, error: BaseException, seconds: float) -> ToolCallFinished:
    """Return what the model reads of a tool that raised.

    Raises:
        ToolFailed: where the policy says so.
    """
    policy = round_.policy
    if isinstance(error, NotConfirmed):
        return _refusal(call, round_, policy.told("not confirmed", name=tool.name), "not_confirmed")
    if isinstance(error, ModelRetry):
        asked = without_surrogates(shown_text(str(error), _MAX_RETRY_CHARS))
        return ToolCallFinished(round_.turn, call, asked, failed=True, seconds=seconds, error_type="ModelRetry")
    if isinstance(error, _TooSlowError) and error.__cause__ is not None:
        error, problem = error.__cause__, policy.told("too slow", seconds=tool.timeout or 0.0)
    else:
        # Of a failure of ours, what failed: the advice that follows is for the programmer.
        problem = error.problem if isinstance(error, ToolFailed) else shown_error(error)
    push_warning(lambda: f"tool {tool.name} failed: {shown_traceback(error)}")
    if policy.on_tool_error == "raise":
        raise ToolFailed(tool.name, shown_text(problem)) from redacted_cause(error)
    text = without_surrogates(shown_text(policy.told("failed", name=tool.name, problem=problem), _MAX_RETRY_CHARS))
    # What a page or a server says in an error is as foreign as what it says elsewhere.
    content = render_result(text, 500, untrusted=tool.name) if tool.untrusted else cut(text)
    return ToolCallFinished(round_.turn, call, content, failed=True, seconds=seconds, error_type=type(error).__name__)
