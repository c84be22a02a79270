"""The calls of one reply: found in it, run together, answered in their order."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallProgress, ToolCallStarted
from SimpleLLMFunc.base.messages import as_data, copied
from SimpleLLMFunc.base.parsing import mended_arguments
from SimpleLLMFunc.base.request import ToolPolicy
from SimpleLLMFunc.base.run import JOURNAL, JournaledCall, JournaledRun, current_observer
from SimpleLLMFunc.base.tool_result import holds_media, render_result
from SimpleLLMFunc.errors import OutcomeUnknown, RunPaused, SimpleLLMFuncError, ToolFailed, UsageError, cut
from SimpleLLMFunc.interface.wires import assemble_tool_calls, rekeyed
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
from SimpleLLMFunc.runtime import LARGE, off_loop_if_large
from SimpleLLMFunc.tools import (
    CALLER,
    AnsweredInstead,
    Caller,
    Confirm,
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
from SimpleLLMFunc.type import (
    ChatCompletion,
    ChatCompletionChunk,
    ContentPart,
    Message,
    ToolCall,
    ToolCallDelta,
    without_surrogates,
)

__all__ = [
    "Confirm",
    "accumulate_tool_calls_from_chunks",
    "build_tool_messages",
    "extract_tool_calls",
    "extract_tool_calls_from_stream_response",
    "process_tool_calls",
]

MAX_AT_ONCE: Final = 128
"""Calls of one reply that run at the same time; the others wait their turn."""

_POLICY: Final = ToolPolicy()
_MAX_RETRY_CHARS: Final = 4000
_TIDY_SECONDS: Final = 0.1
"""How long a run that ends waits for its tools to end too."""

_left: set[asyncio.Task[Any]] = set()
_WAITS = (RunPaused, OutcomeUnknown)
"""Somebody has to answer; the other tools of the turn are waited for."""

_PASSES = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, *_WAITS)
"""These are not the tool's failure; they end the run."""


def extract_tool_calls(response: Any) -> list[ToolCall]:
    """Return the tool calls of a reply, each under an id of its own.

    Args:
        response: ours, the openai package's, or a dict of that shape.
    """
    reply = response if isinstance(response, ChatCompletion) else ChatCompletion.from_dict(as_data(response) or {})
    return list(rekeyed(reply.tool_calls))


def extract_tool_calls_from_stream_response(chunk: Any) -> list[ToolCallDelta]:
    """Return the pieces of tool calls that a chunk brings.

    Args:
        chunk: ours, the openai package's, or a dict of that shape.
    """
    own = chunk if isinstance(chunk, ChatCompletionChunk) else ChatCompletionChunk.from_dict(as_data(chunk) or {})
    return own.tool_calls


def accumulate_tool_calls_from_chunks(chunks: Iterable[Any]) -> list[ToolCall]:
    """Return the tool calls that a whole stream adds up to, in order.

    Args:
        chunks: the chunks, or what `extract_tool_calls_from_stream_response` gave for each.
    """
    deltas: list[ToolCallDelta] = []
    for chunk in chunks:
        if isinstance(chunk, ToolCallDelta):
            deltas.append(chunk)
        elif isinstance(chunk, (list, tuple)):
            deltas.extend(
                piece if isinstance(piece, ToolCallDelta) else ToolCallDelta.from_dict(as_data(piece))
                for piece in chunk
            )
        else:
            deltas.extend(extract_tool_calls_from_stream_response(chunk))
    return assemble_tool_calls(deltas)


async def process_tool_calls(
    tool_calls: Sequence[Any],
    tool_map: Mapping[str, Callable[..., Any] | Tool],
    turn: int = 1,
    *,
    policy: ToolPolicy | None = None,
    trace_id: str = "",
    func_name: str = "",
    journal: JournaledRun | None = None,
    caller: Caller | None = None,
) -> AsyncGenerator[ToolCallStarted | ToolCallProgress | ToolCallFinished, None]:
    """Run the calls of one reply together and yield what happens; every call is answered exactly once.

    First `ToolCallStarted` for each call, then `ToolCallProgress` as tools tell of it, and `ToolCallFinished`
    in the order of the calls. What goes wrong becomes an answer for the model. Closing the generator, or
    cancelling its consumer, cancels the tools; sync tools are left to themselves, their results ignored.

    Args:
        tool_calls: of one reply; ours, the openai package's, or dicts.
        tool_map: what runs, by the name on the wire; plain callables are taken too.
        turn: number of the reply, from 1.
        policy: how they run; None reports every failure to the model and confirms nothing.
        trace_id: of the run, for the tools' `ToolContext`.
        func_name: the decorated function, for the tools' `ToolContext`.
        journal: knows of tools that have run before, and writes down what comes.
        caller: the run, for a tool whose server asks back.

    Raises:
        ToolFailed: a tool raised or timed out, and the policy says "raise".
        RunPaused: a confirmation is waited for elsewhere; the other tools have finished.
        OutcomeUnknown: nobody knows how far a once-tool came; the other tools have finished.
        UsageError: the policy says something else than "report" or "raise".
    """
    policy = policy or _POLICY
    if policy.on_tool_error not in {"report", "raise"}:
        raise UsageError(f'on_tool_error is "report" or "raise", not {policy.on_tool_error!r}')
    calls = [call if isinstance(call, ToolCall) else ToolCall.from_dict(as_data(call)) for call in tool_calls]
    for call in calls:
        yield ToolCallStarted(turn, call)
    room = asyncio.Semaphore(MAX_AT_ONCE) if len(calls) > MAX_AT_ONCE else None
    happened: asyncio.Queue[int | ToolCallProgress] = asyncio.Queue()
    round_ = _Round(tool_map, turn, trace_id, func_name, policy, happened, room, caller)
    tasks: list[asyncio.Task[ToolCallFinished | _Ended]] = []
    waits: list[BaseException] = []
    try:
        for number, call in enumerate(calls):
            step = None if journal is None else journal.call(call)
            task = asyncio.create_task(_settled(call, round_, step))
            task.add_done_callback(lambda _, number=number: happened.put_nowait(number))  # type: ignore[misc]
            tasks.append(task)
        shown = 0
        while shown < len(tasks):
            event = await happened.get()
            if isinstance(event, ToolCallProgress):
                yield event
                continue
            outcome = tasks[event].result()
            if isinstance(outcome, _Ended) and not isinstance(outcome.reason, _WAITS):
                raise outcome.reason
            while shown < len(tasks) and tasks[shown].done():
                answer = tasks[shown].result()
                shown += 1
                if not isinstance(answer, _Ended):
                    yield answer
                elif isinstance(answer.reason, _WAITS):
                    waits.append(answer.reason)
                else:
                    raise answer.reason
        if waits:
            raise _waited_for(waits)
    finally:
        await _cancelled(tasks)


def _waited_for(reasons: list[BaseException]) -> BaseException:
    """Return the one error that says what all of these wait for: an unknown outcome first."""
    first, *others = sorted(reasons, key=lambda reason: isinstance(reason, RunPaused))
    for other in others:
        if isinstance(first, RunPaused) and isinstance(other, RunPaused):
            first = RunPaused(first.key, [*first.pending, *other.pending])
    return first


async def _cancelled(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel the tools, and wait a moment until they have tidied up; who takes no notice is left to itself."""
    late = {task for task in tasks if not task.done()}
    for task in tasks:
        if task not in late:
            _forget(task)
    if not late:
        return
    for task in late:
        task.cancel()
        _left.add(task)
        task.add_done_callback(_forget)
    _, late = await asyncio.wait(late, timeout=_TIDY_SECONDS)
    if late:
        push_warning(f"{len(late)} of the tools go on although they were cancelled; what they return is ignored")


def _forget(task: asyncio.Task[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()


def build_tool_messages(finished: Sequence[ToolCallFinished]) -> list[Message]:
    """Return the messages that answer the calls of one reply: a tool message each, in their order.

    A tool message holds text only, so images and the like follow in one message of the user's role.
    """
    messages: list[dict[str, Any]] = []
    shown: list[ContentPart] = []
    for event in finished:
        content = event.content
        if not isinstance(content, str):
            media = [part for part in content if part.get("type") != "text"]
            texts = [str(part.get("text", "")) for part in content if part.get("type") == "text"]
            name = event.call.function.name
            if media:
                texts.append(f"[{len(media)} of what {name} returned can be seen in the next message]")
                shown += [{"type": "text", "text": f"Returned by {name} (call {event.call.id}):"}, *media]
            content = "\n".join(texts)
        messages.append({"role": "tool", "tool_call_id": event.call.id, "content": content})
    if shown:
        messages.append({"role": "user", "content": shown})
    return cast("list[Message]", messages)


@dataclass(frozen=True, slots=True)
class _Ended:
    """Why the run must end; as a value, since a task that raises KeyboardInterrupt would tear down the whole loop."""

    reason: BaseException


@dataclass(slots=True)
class _Round:
    """What the calls of one reply share.

    Attributes:
        happened: takes what tools tell.
        room: where there are more calls than may run at once.
        caller: the run.
        asking: one question at a time: two of them on one terminal would get each other's answers.
    """

    tool_map: Mapping[str, Callable[..., Any] | Tool]
    turn: int
    trace_id: str
    func_name: str
    policy: ToolPolicy
    happened: asyncio.Queue[int | ToolCallProgress]
    room: asyncio.Semaphore | None = None
    caller: Caller | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def emitter(self, call: ToolCall) -> Callable[[Any], None]:
        loop = asyncio.get_running_loop()

        def emit(progress: Any) -> None:
            try:
                loop.call_soon_threadsafe(self.happened.put_nowait, ToolCallProgress(self.turn, call, progress))
            except RuntimeError:
                return  # the loop is closed: nobody watches any more

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


async def _settled(call: ToolCall, round_: _Round, step: JournaledCall | None) -> ToolCallFinished | _Ended:
    """Return the answer to one call, or why the run must end."""
    if (observer := current_observer()) is not None:
        observer.tool_begins(call)
    CALLER.set(round_.as_caller())  # for this task
    try:
        async with round_.room or nullcontext():
            return await (_answer(call, round_) if step is None else _journaled(call, round_, step))
    except _PASSES as reason:
        task = asyncio.current_task()
        if isinstance(reason, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        return _Ended(reason)
    except SimpleLLMFuncError as reason:  # such as ToolFailed, and what is wrong with a journal
        if reason.__cause__ is not None:
            reason.__context__ = None  # the cause may be a copy without the secret that the original holds
        return _Ended(reason)


async def _journaled(call: ToolCall, round_: _Round, step: JournaledCall) -> ToolCallFinished:
    """Answer one call of which a journal knows: it is given again, or written before anybody reads it."""
    if (known := step.finished(round_.turn, call)) is not None:
        return known
    JOURNAL.enter(step)  # for this task: what the tool asks and runs is a part of the call
    try:
        answer = await _answer(call, round_, step)
    except ToolFailed as error:
        await step.ends(ToolCallFinished(round_.turn, call, "", failed=True, seconds=0.0), error.problem)
        raise
    except _WAITS:
        await step.waits()
        raise
    await step.ends(answer)
    return answer


async def _answer(call: ToolCall, round_: _Round, step: JournaledCall | None = None) -> ToolCallFinished:
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
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises is told to the model
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


def _find(call: ToolCall, round_: _Round) -> Tool:
    candidate = round_.tool_map.get(call.function.name)
    if candidate is None:
        known = cut(", ".join(round_.tool_map), 1000) or "none"
        raise _NotRunError(round_.policy.words.unknown(call.function.name, known), "unknown_tool")
    return as_tool(candidate)


async def _read(call: ToolCall, tool: Tool, round_: _Round, idempotency_key: str) -> _Arguments:
    text, policy = call.function.arguments, round_.policy
    context = ToolContext(
        round_.trace_id, round_.func_name, tool.name, call.id, policy.context, idempotency_key, round_.emitter(call)
    )
    try:
        return await off_loop_if_large(len(text), lambda: _bound(tool, text, context))
    except ArgumentsError as error:
        raise _NotRunError(round_.policy.words.unfit(tool.name, str(error)), "invalid_arguments") from None


def _bound(tool: Tool, text: str, context: ToolContext[Any]) -> _Arguments:
    values = tool.read(text, mended_arguments)
    return _Arguments(values, *tool.bind(values, context), context)


async def _confirm(tool: Tool, values: dict[str, Any], round_: _Round) -> None:
    try:
        if tool.confirm and not await _is_allowed(tool, values, round_):
            raise _NotRunError(round_.policy.words.not_confirmed(tool.name), "not_confirmed")
    except AnsweredInstead as answer:
        raise _NotRunError(str(answer), "not_confirmed") from None


async def _is_allowed(tool: Tool, values: dict[str, Any], round_: _Round) -> bool:
    confirm = round_.policy.confirm
    if confirm is None:
        return False
    async with round_.asking:
        return await is_agreed(confirm, tool.name, copied([values])[0])


async def _run(tool: Tool, arguments: _Arguments) -> Any:
    limit = asyncio.timeout(tool.timeout)
    try:
        async with limit:
            return await run_callable(tool.func, arguments.args, arguments.kwargs)
    except TimeoutError as error:
        if limit.expired():
            raise _TooSlowError from error
        raise


async def _render(value: Any, tool: Tool, policy: ToolPolicy) -> str | list[dict[str, Any]]:
    render = functools.partial(
        render_result, value, policy.max_result_chars, untrusted=tool.name if tool.untrusted else None
    )
    # Writing down a long result, or files, would hold up the loop.
    is_slow = holds_media(value) or not holds_little(value, LARGE)
    return await in_thread(render) if is_slow else render()


def _refusal(call: ToolCall, round_: _Round, text: str, error_type: str) -> ToolCallFinished:
    push_debug(lambda: text)
    content = without_surrogates(shown_text(text))
    return ToolCallFinished(round_.turn, call, content, failed=True, seconds=0.0, error_type=error_type)


def _failure(call: ToolCall, tool: Tool, round_: _Round, error: BaseException, seconds: float) -> ToolCallFinished:
    """Return what the model reads of a tool that raised.

    Raises:
        ToolFailed: where the policy says so.
    """
    words = round_.policy.words
    if isinstance(error, NotConfirmed):
        return _refusal(call, round_, words.not_confirmed(tool.name), "not_confirmed")
    if isinstance(error, ModelRetry):
        asked = without_surrogates(shown_text(str(error), _MAX_RETRY_CHARS))
        return ToolCallFinished(round_.turn, call, asked, failed=True, seconds=seconds, error_type="ModelRetry")
    if isinstance(error, _TooSlowError) and error.__cause__ is not None:
        error, problem = error.__cause__, words.too_slow(tool.timeout or 0.0)
    else:
        # Of a failure of ours, what failed: the advice that follows is for whoever writes the program.
        problem = error.problem if isinstance(error, ToolFailed) else shown_error(error)
    push_warning(lambda: f"tool {tool.name} failed: {shown_traceback(error)}")
    if round_.policy.on_tool_error == "raise":
        raise ToolFailed(tool.name, shown_text(problem)) from redacted_cause(error)
    text = without_surrogates(shown_text(words.failed(tool.name, problem), _MAX_RETRY_CHARS))
    # What a page or a server says in an error is as foreign as what it says elsewhere.
    content = render_result(text, 500, untrusted=tool.name) if tool.untrusted else cut(text)
    return ToolCallFinished(round_.turn, call, content, failed=True, seconds=seconds, error_type=type(error).__name__)
