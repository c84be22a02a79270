"""The calls of one reply: found in it, run together, answered in their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallProgress, ToolCallStarted
from SimpleLLMFunc.base.messages import as_data
from SimpleLLMFunc.base.request import ToolPolicy
from SimpleLLMFunc.base.run.journaled import JournaledRun
from SimpleLLMFunc.base.tool_answer import WAITS, Round, settled
from SimpleLLMFunc.errors import RunPaused, UsageError
from SimpleLLMFunc.interface.wires import assemble_tool_calls, rekeyed
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.tools import Caller, Confirm, Tool
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, ContentPart, Message, ToolCall, ToolCallDelta

__all__ = [
    "Confirm", "accumulate_tool_calls_from_chunks", "build_tool_messages", "extract_tool_calls",
    "extract_tool_calls_from_stream_response", "process_tool_calls",
]  # fmt: skip

_POLICY: Final = ToolPolicy()
_TIDY_SECONDS: Final = 0.1
"""How long a run that ends waits for its tools to end too."""

_left: set[asyncio.Task[Any]] = set()


def extract_tool_calls(response: Any) -> list[ToolCall]:
    """Return the tool calls of a reply, each under a unique id.

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
        OutcomeUnknown: it is not known how far a once-tool came; the other tools have finished.
        UsageError: the policy says something else than "report" or "raise".
    """
    policy = policy or _POLICY
    if policy.on_tool_error not in {"report", "raise"}:
        raise UsageError(f'on_tool_error is "report" or "raise", not {policy.on_tool_error!r}')
    calls = [call if isinstance(call, ToolCall) else ToolCall.from_dict(as_data(call)) for call in tool_calls]
    for call in calls:
        yield ToolCallStarted(turn, call)
    happened: asyncio.Queue[int | ToolCallProgress] = asyncio.Queue()
    round_ = Round(tool_map, turn, trace_id, func_name, policy, happened, caller)
    tasks: list[asyncio.Task[ToolCallFinished | BaseException]] = []
    outcomes: dict[int, ToolCallFinished | BaseException] = {}
    try:
        for number, call in enumerate(calls):
            task = asyncio.create_task(settled(call, round_, None if journal is None else journal.call(call)))
            task.add_done_callback(lambda _, number=number: happened.put_nowait(number))  # type: ignore[misc]
            tasks.append(task)
        shown = 0
        while shown < len(tasks):
            event = await happened.get()
            if isinstance(event, ToolCallProgress):
                yield event
                continue
            outcomes[event] = outcome = tasks[event].result()
            if isinstance(outcome, BaseException) and not isinstance(outcome, WAITS):
                raise outcome
            while shown in outcomes:  # in the order of the calls
                if isinstance(answer := outcomes[shown], ToolCallFinished):
                    yield answer
                shown += 1
        if waits := [each for _, each in sorted(outcomes.items()) if isinstance(each, BaseException)]:
            raise _waited_for(waits)
    finally:
        await _cancelled(tasks)


def _waited_for(reasons: list[BaseException]) -> BaseException:
    """Return the one error that says what all of these wait for: an unknown outcome first."""
    pending = [each for reason in reasons if isinstance(reason, RunPaused) for each in reason.pending]
    first = min(reasons, key=lambda reason: isinstance(reason, RunPaused))
    return RunPaused(first.key, pending) if isinstance(first, RunPaused) and reasons[1:] else first


async def _cancelled(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel the tools, and wait a moment until they have tidied up; who takes no notice is left to itself."""
    late = {task for task in tasks if not task.done()}
    for task in set(tasks) - late:
        _forget(task)
    if not late:
        return
    for task in late:
        task.cancel()
        _left.add(task)
        task.add_done_callback(_forget)
    _, late = await asyncio.wait(late, timeout=_TIDY_SECONDS)
    if late:
        push_warning(f"{len(late)} of the tools still run although they were cancelled; their results are ignored")


def _forget(task: asyncio.Task[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()


def build_tool_messages(finished: Sequence[ToolCallFinished]) -> list[Message]:
    """Return the messages that answer the calls of one reply: a tool message each, in their order.

    Where a tool failed, `is_error` says so: Messages and generateContent have a mark for it, the other wires drop it.
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
        failed = {"is_error": True} if event.failed else {}
        messages.append({"role": "tool", "tool_call_id": event.call.id, "content": content, **failed})
    if shown:
        messages.append({"role": "user", "content": shown})
    return cast("list[Message]", messages)
