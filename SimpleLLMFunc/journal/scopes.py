"""The steps inside a block, each at its place: runs, their replies, their tool calls, and the runs of these.

A place is a hash of the place around it, of the step, and of how often the same step has happened there before. It is
the same each time that the block runs, in any order of concurrent calls.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from SimpleLLMFunc.base.events import ToolCallFinished
from SimpleLLMFunc.base.run import KeptReply, RunIdentity
from SimpleLLMFunc.errors import (
    ContentBlocked,
    EmptyResponseError,
    OutcomeUnknown,
    OutputTruncated,
    ResponseParseError,
    RunPaused,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
    ToolFailed,
)
from SimpleLLMFunc.journal.log_file import NewRow
from SimpleLLMFunc.journal.steps import Steps
from SimpleLLMFunc.logger import mask_known
from SimpleLLMFunc.storage import key_of
from SimpleLLMFunc.tools import AnsweredInstead, Tool, ToolContext, as_tool, run_callable
from SimpleLLMFunc.type import ABSTAIN, ChatCompletion, ToolCall

RUN_AGAIN = "RUN_AGAIN: it never ran"
"""The answer to an unknown outcome if the tool has done nothing: the tool is run."""

_UNREAD = (ResponseParseError, EmptyResponseError, OutputTruncated, ContentBlocked, ToolCallLimitExceeded)
"""Errors of unusable answers; the model is asked again when the block runs again."""


class Scope:
    """The block, or a tool call: runs begin in it.

    Args:
        steps: of the block.
        place: of a call; None for the block itself, whose place is the journal's epoch.
        around: the scope around this, None for the block itself.

    Attributes:
        interrupted: why a step inside has no result: it waits for an answer, or failed.
    """

    def __init__(self, steps: Steps, place: bytes | None = None, around: Scope | None = None) -> None:
        self.steps = steps
        self._place = place
        self.around = around
        self.interrupted: SimpleLLMFuncError | None = None
        self._times: Counter[bytes] = Counter()

    @property
    def place(self) -> bytes:
        """The place of this scope."""
        return self.steps.epoch if self._place is None else self._place

    def next_place(self, *what: Any) -> bytes:
        """Return the place of the next such step.

        Raises:
            UsageError: the step holds an object that cannot be recognised when the block runs again.
        """
        same = key_of(self.place, what)
        self._times[same] += 1
        return key_of(same, self._times[same])

    def interrupt(self, error: SimpleLLMFuncError) -> SimpleLLMFuncError:
        """Note that no scope around has a result either; return the error."""
        scope: Scope | None = self
        while scope is not None:
            scope.interrupted = scope.interrupted or error
            scope = scope.around
        return error

    async def begin(self, identity: RunIdentity, trace_id: str) -> RunScope:
        """Return the run that begins here; a new run has this `trace_id`."""
        self.steps.check_open()
        try:
            await self.steps.check_version(identity)
        except SimpleLLMFuncError as error:
            raise self.interrupt(error) from None
        place = self.next_place("run", identity.name, identity.version, identity.options, identity.arguments)
        return RunScope(self, place, identity, trace_id)

    def call_of(self, name: str, arguments: Any) -> CallScope:
        """Return a tool call that the program makes itself."""
        self.steps.check_open()
        return CallScope(self, self.next_place("call", name, arguments), name)

    def moment(self, what: Any) -> float:
        """Return the time of `what`, in seconds since the epoch; the same each time that the block runs."""
        place = self.next_place("moment", what)
        if (row := self.steps.found(place)) is not None:
            return float(row.data)
        now = time.time()
        self.steps.later(("moment", place, now))
        return now


class RunScope:
    """One run.

    Args:
        around: the scope it begins in.
        place: of the run.
        identity: function, version, options and arguments.
        trace_id: for a new run.
    """

    def __init__(self, around: Scope, place: bytes, identity: RunIdentity, trace_id: str) -> None:
        self.steps = around.steps
        self.restarts = self.steps.restarts
        self.replayed: list[str] = []
        self._around = around
        self._place = place
        self._replies = 0
        self._calls: Counter[tuple[str, str]] = Counter()
        self._since_tools: list[bytes] = []
        self._is_new = False
        known = self.steps.found(place)
        self.trace_id: str = trace_id if known is None else known.data["trace_id"]
        facts = {"name": identity.name, "place": identity.place, "version": identity.version, "trace_id": trace_id}
        self._new: list[NewRow] = [] if known is not None else [("run", place, facts)]

    def _next(self, *, is_new: bool) -> bytes:
        place = key_of(self._place, self._replies)
        self._replies += 1
        self._is_new = is_new
        self._calls.clear()
        self._since_tools.append(place)
        return place

    def reply(self) -> KeptReply | None:
        """Return the next reply if it is in the journal."""
        self.steps.check_open()
        row = self.steps.found(key_of(self._place, self._replies))
        if row is None:
            return None
        self._next(is_new=False)
        self.replayed.append(f"reply {self._replies}")
        data = row.data
        reply = ChatCompletion.from_dict(data["reply"], tries=0, cached=data["cached"])
        if reply.usage is not None:
            reply = replace(reply, usage=replace(reply.usage, cost=data["cost"]))
        told = [(what, said) for what, said in data["downgrades"]]
        return KeptReply(reply, data["mode"], data["reason"], told)

    async def keep(self, kept: KeptReply) -> None:
        """Write a new reply."""
        reply, place = kept.reply, self._next(is_new=True)
        data = {
            "reply": {**reply.raw, **reply.to_dict()},
            "cached": reply.cached,
            "cost": reply.usage.cost if reply.usage is not None else None,
            "mode": kept.output_mode,
            "reason": kept.output_mode_reason,
            "downgrades": list(kept.downgrades),
        }
        new, self._new = self._new, []
        await self.steps.append(*new, ("reply", place, data))

    def call(self, call: ToolCall) -> CallScope:
        """Return a call of the last reply; equal calls are counted."""
        self._since_tools.clear()
        text = call.function.arguments
        asked = (call.function.name, mask_known(text) if self._is_new else text)  # as the journal has it
        self._calls[asked] += 1
        place = key_of(self._place, [self._replies, *asked, self._calls[asked]])
        return CallScope(self._around, place, call.function.name, self.replayed)

    def failed(self, error: BaseException) -> None:
        """Note that the run has ended without an answer."""
        if isinstance(error, _UNREAD) and self._since_tools:
            self.steps.unread.append((error, list(self._since_tools)))


class CallScope(Scope):
    """One tool call, and the scope of the runs that it begins.

    Args:
        around: the scope of the run that calls it.
        place: of the call.
        tool: its name.
        replayed: list to note a replay in.
    """

    def __init__(self, around: Scope, place: bytes, tool: str, replayed: list[str] | None = None) -> None:
        super().__init__(around.steps, place, around)
        self.tool = tool
        self.call_id = place.hex()[:16]
        self.idempotency_key = place.hex()
        self.has_begun = place in self.steps.begun
        self._replayed = replayed

    def finished(self, turn: int, call: ToolCall) -> ToolCallFinished | None:
        """Return the earlier result; None if the call had not finished.

        Raises:
            ToolFailed: the call had failed.
        """
        self.steps.check_open()
        row = self.steps.found(self.place)
        if row is None:
            return None
        data = row.data
        if self._replayed is not None:
            self._replayed.append(f"tool {self.tool}")
        if data["raised"] is not None:
            raise ToolFailed(self.tool, data["raised"])
        kept = {name: data[name] for name in ("content", "failed", "seconds", "error_type")}
        return ToolCallFinished(turn, call, **kept, replayed=True)

    async def outcome(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext[Any]) -> tuple[Any, ...]:
        """Return the result of a call that had begun, in a tuple; an empty tuple if it never ran."""
        if self.call_id in self.steps.answers:
            said = self.steps.answers[self.call_id]
            return () if said == RUN_AGAIN else (said,)
        if not tool.once:
            return ()  # it was a once-tool when it began
        cause: Exception | None = None
        if tool.recover is not None:
            finder = as_tool(tool.recover)
            known = finder.parameters.get("properties", {})
            try:
                args, kwargs = finder.bind({name: arguments[name] for name in arguments if name in known}, context)
                found = await run_callable(finder.func, args, kwargs)
            except (RunPaused, OutcomeUnknown):
                raise
            except Exception as error:  # noqa: BLE001 - a recovery that fails does not know the outcome
                cause, found = error, ABSTAIN
            if found is not ABSTAIN:
                return (found,)
        if self.call_id not in self.steps.pending:
            await self.steps.append(self._asked("outcome", arguments))
        raise self.interrupt(OutcomeUnknown(self.steps.key, self.call_id, self.tool, dict(arguments))) from cause

    def _asked(self, why: str, arguments: Mapping[str, Any]) -> NewRow:
        data = {"call_id": self.call_id, "tool": self.tool, "arguments": dict(arguments), "why": why}
        return "asked", self.place, data

    async def begins(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Write that the tool is about to run."""
        used = self.call_id if self.call_id in self.steps.answers else ""  # the answer serves once
        await self.steps.append(("began", self.place, {"tool": tool.name, "arguments": dict(arguments)}), used=used)
        self.has_begun = True

    async def ends(self, finished: ToolCallFinished, raised: str | None = None) -> None:
        """Write the result; `raised` is the text of an error that ends the run."""
        if self.interrupted is not None:  # also where the tool has caught the error
            await self.waits()
            raise self.interrupted
        kept = {name: getattr(finished, name) for name in ("content", "failed", "seconds", "error_type")}
        await self.steps.append(("tool", self.place, {**kept, "raised": raised}))

    async def waits(self) -> None:
        """Write that the call counts as not begun, since a step inside it waits for an answer."""
        if self.has_begun and getattr(self.interrupted, "call_id", "") != self.call_id:
            await self.steps.append(("undone", self.place, None))

    def confirmed(self, arguments: Mapping[str, Any]) -> bool:
        """Return the answer whether the tool may run; not for an event loop.

        Raises:
            AnsweredInstead: the answer is a text for the model.
            RunPaused: there is no answer yet.
        """
        steps, call_id = self.steps, self.call_id
        if self.place in steps.approved:
            return True
        if call_id in steps.answers:
            said = steps.answers[call_id]
            if isinstance(said, bool):
                return said
            raise AnsweredInstead(str(said))
        if call_id not in steps.pending:
            steps.append_now(self._asked("confirm", arguments))
        raise self.interrupt(RunPaused(steps.key, [steps.pending[call_id]]))
