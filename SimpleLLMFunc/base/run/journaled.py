"""What the core knows of a journal: what is around a run, what is written of it, and what is given again.

The journal itself stands on a floor above (`SimpleLLMFunc.journal`). The loop asks it where a reply comes in and where the
result of a tool comes in, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from SimpleLLMFunc.base.events import ToolCallFinished
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.errors import OutcomeUnknown, RunPaused
from SimpleLLMFunc.tools import Tool, ToolContext
from SimpleLLMFunc.type import ChatCompletion, FunctionCall, ToolCall
from SimpleLLMFunc.utils import ScopedVar


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Identifies a run when its block runs again.

    Attributes:
        name: of the function.
        version: of the function itself, its options left out.
        options: that the answer depends on; data.
        arguments: data.
        place: where a decorated function was defined: a change of its version is an error; empty if it is not one.
    """

    name: str
    version: str
    options: Any
    arguments: Any
    place: str = ""


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reply, and how it was asked for.

    Attributes:
        reply: an answer that was given as the call of a tool is its text.
        output_mode, output_mode_reason, downgrades: as in `Result`.
    """

    reply: ChatCompletion
    output_mode: OutputMode = "text"
    output_mode_reason: str = ""
    downgrades: Sequence[tuple[str, str]] = ()


class Journal(Protocol):
    """What is around a run: the block, or the call of a tool inside of it."""

    async def begin(self, identity: RunIdentity, trace_id: str) -> JournaledRun:
        """Return the run that begins here; `trace_id` is its own if it is new.

        Raises:
            CheckpointError: the function has changed.
            UsageError: the block has been left.
        """
        ...

    def call_of(self, name: str, arguments: Any) -> JournaledCall:
        """Return the call of a tool that no model makes."""
        ...

    def moment(self, what: Any) -> float:
        """Return the time of `what`, in seconds since the epoch: the same each time that the block runs."""
        ...


class JournaledCall(Journal, Protocol):
    """One call of a tool, as the journal knows it.

    Attributes:
        idempotency_key: the same each time that this call is tried.
        has_begun: a once-tool had begun when its process ended.
    """

    idempotency_key: str
    has_begun: bool

    def finished(self, turn: int, call: ToolCall) -> ToolCallFinished | None:
        """Return how the call ended in an earlier process, None if it did not end.

        Raises:
            ToolFailed: it ended the run.
        """
        ...

    async def outcome(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext[Any]) -> tuple[Any, ...]:
        """Return the result of a call that had begun, in a tuple; an empty one where it is known that it never ran.

        Raises:
            OutcomeUnknown: it is not known.
        """
        ...

    async def begins(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Note that the tool is about to run."""

    async def ends(self, finished: ToolCallFinished, raised: str | None = None) -> None:
        """Write the result; `raised` is the problem where it ends the run.

        Raises:
            RunPaused: something inside of it waits for an answer, so that it has no result.
            OutcomeUnknown: the outcome of something inside of it is not known.
        """

    async def waits(self) -> None:
        """Note that the call has no result, since something inside of it waits for an answer: it counts as not begun."""


class JournaledRun(Protocol):
    """One run, as the journal knows it.

    Attributes:
        trace_id: of the run when it was first begun.
        restarts: how often its block had been begun before.
        replayed: the steps that were given again.
    """

    trace_id: str
    restarts: int
    replayed: list[str]

    def reply(self) -> KeptReply | None:
        """Return the next reply where it is known."""
        ...

    async def keep(self, kept: KeptReply) -> None:
        """Write a reply that has come."""

    def call(self, call: ToolCall) -> JournaledCall:
        """Return a call of the last reply; the same name and arguments again are another one."""
        ...

    def failed(self, error: BaseException) -> None:
        """Note that the run has ended without an answer."""


JOURNAL: ScopedVar[Journal | None] = ScopedVar("SimpleLLMFunc.journal", None)
"""Of the `durable` block around, None outside of any."""


def not_journaled() -> AbstractContextManager[None]:
    """Keep what runs inside out of the journal around."""
    return JOURNAL.within(None)


async def kept_once(name: str, arguments: Any, work: Callable[[JournaledCall | None], Awaitable[Any]]) -> Any:
    """Return what `work` gives, JSON data; in a `durable` block that runs again, what it gave before.

    Args:
        name: of the step, a call that the program makes itself.
        arguments: by which it is known.
        work: is given the call as the journal knows it; None outside of a block.
    """
    if (around := JOURNAL.get()) is None:
        return await work(None)
    step, call = around.call_of(name, arguments), ToolCall("", FunctionCall(name, ""))
    if (known := step.finished(0, call)) is not None:
        return json.loads(str(known.content) or "null")  # earlier journals hold no data of a memory
    with JOURNAL.within(step):
        try:
            data = await work(step)
        except (RunPaused, OutcomeUnknown):
            await step.waits()
            raise
    await step.ends(ToolCallFinished(0, call, json.dumps(data), failed=False, seconds=0.0))
    return data
