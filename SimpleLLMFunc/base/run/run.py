"""One run: who asks, what limits it, who observes it, and what is known of it so far."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, TypeVar, assert_never

from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata
from SimpleLLMFunc.base.parsing import OutputMode, Parsed, Repair
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run.abort import Abort, RunLimits
from SimpleLLMFunc.base.run.journaled import JOURNAL, JournaledRun, RunIdentity
from SimpleLLMFunc.base.run.observer import Observer
from SimpleLLMFunc.base.run.sinks import EventSink, current_sinks, defaults
from SimpleLLMFunc.errors import DeadlineExceeded, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import LISTENER, Downgrades
from SimpleLLMFunc.interface.spending import Deadline, Spent, deadline_scope, strictest_time_limit
from SimpleLLMFunc.interface.wires import ServerTool, server_tools_in
from SimpleLLMFunc.logger import begin_run, get_current_trace_id, push_warning, shown_error
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, Message, ToolCall

E = TypeVar("E", bound=SimpleLLMFuncError)

_FIRST_UUID = re.compile(r"(?:\A|_)[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}", re.ASCII)
"""With it ends a trace id's own part; that of its parent follows."""


@dataclass(eq=False, repr=False)
class Run:
    """The state of one run, from its beginning to its end: one object, made for each call.

    Inside of ``async with run`` its deadline holds, its sinks see it, and what is raised carries the facts of the run.
    The log context of the run is entered before.

    Args:
        func_name: the function, in logs, messages and traces.
        trace_id: of the run.
        deadline: seconds for the whole run; a budget's time limit counts too.
        abort: ends the run when it is set.
        stream: ask for replies in pieces.
        sinks: see the events, as those of `watching` do.
        about: who runs and with what, for those who watch; None where only the name is known.

    Attributes:
        limits: what ends a wait inside the run; a deadline only while the run is in force.
        observer: shows the run to its sinks; None without sinks.
        may_ask_again: set to False once a part of the answer was given out.
        output_mode, output_mode_reason: how the answer is asked for, and why so.
        noted: the downgrades that the interface told of.
        attempts: told by the review, which alone knows what was wrong with an answer.
        messages: the conversation so far.
        last: the latest reply with its time, for the review.
        parsed: the accepted answer, written by the review of a typed one.
        finished: the last event of a run that has found its answer.
        known_by: by which arguments a journal knows the run; None for those of `metadata`.
        journal: writes the run down and gives it again; None outside of a `durable` block.
        changes: what guards changed before the model was asked.
        replaced: the accepted reply of a chat as a guard changed it.
    """

    func_name: str = ""
    trace_id: str = ""
    _: KW_ONLY
    deadline: float | None = None
    abort: Abort | None = None
    stream: bool = False
    sinks: tuple[EventSink, ...] = ()
    about: RunMetadata | None = None

    def __post_init__(self) -> None:
        self.limits = RunLimits(Deadline.after(None), self.abort)
        self.observer: Observer | None = None
        self.may_ask_again = True
        self.started = time.monotonic()
        self.attempts: list[events.Attempt] = []
        self.messages: list[Message] = []
        self.tool_calls: list[ToolCall] = []
        self.usage = NO_USAGE
        self._extras: list[Mapping[str, Any]] = []  # of the replies: what their service wants back is there
        self.last: events.ReplyReceived | None = None
        self.parsed: Parsed[Any] | None = None
        self.finished: events.RunFinished | None = None
        self.changes: list[Repair] = []
        self.replaced: ChatCompletion | None = None
        self.output_mode: OutputMode = "text"
        self.output_mode_reason = ""
        self.known_by: Any = None
        self.journal: JournaledRun | None = None
        self.noted = Downgrades()
        self._asked_otherwise: tuple[tuple[str, str], ...] = ()
        self._time_limit: Spent | None = None
        self._scopes = ExitStack()

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by parameter name, defaults applied; none where it is no call of a function."""
        return {}

    def metadata(self) -> RunMetadata:
        """Return who runs and with what; only called if there are sinks."""
        return self.about or RunMetadata(FunctionMetadata(self.func_name))

    def identity(self) -> RunIdentity:
        """Return by what a journal knows the run."""
        told = self.metadata()
        arguments = told.arguments if self.known_by is None else self.known_by
        return RunIdentity(told.function.name, told.function.version, told.function.kind, arguments)

    # --- in force ---

    async def __aenter__(self) -> Self:
        if (around := JOURNAL.get()) is not None:
            self.journal = await around.begin(self.identity(), self.trace_id)
            self.trace_id = self.journal.trace_id
        limited = self._time_limit = strictest_time_limit()
        if not defaults.are_settled():
            await defaults.look()
        sinks = defaults.besides((*current_sinks(), *self.sinks))
        if sinks:
            self.noted = self.observer = Observer(self.trace_id, sinks, self.attempts)
        # A run without sinks must not be taken for a part of the one around it.
        self._scopes.enter_context(LISTENER.within(self.noted))
        begin_run(self.trace_id)
        seconds = self.deadline
        if limited is not None and (left := limited.left_of("seconds")) is not None:
            seconds = left if seconds is None else min(seconds, left)
        self.limits = RunLimits(self._scopes.enter_context(deadline_scope(seconds)), self.abort)
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None and self.journal is not None:
            self.journal.failed(error)
        try:
            if error is not None:
                self._fail(error)
        finally:
            self._scopes.close()

    def _fail(self, error: BaseException) -> None:
        limited = self._time_limit
        told = error
        if isinstance(error, SimpleLLMFuncError):
            if isinstance(error, DeadlineExceeded) and limited and limited.left_of("seconds") == 0:
                told = self.explained(limited.exceeded("seconds"))
            else:
                self.explained(error)
        if self.observer is not None and self.finished is None:  # else it was left, or cancelled, after all was told
            if not self.observer.has_started:
                self.tell(events.RunStarted(self.trace_id, []))
            self.observer.failed(told)
        if told is not error:
            raise told from error

    # --- what happens ---

    def asks(self, request: ModelRequest) -> None:
        """Take in how the answer is asked for."""
        self.output_mode, self.output_mode_reason = request.output_mode, request.output_mode_reason
        self._asked_otherwise = request.downgrades

    def tell(self, event: events.ReActEvent) -> events.ReActEvent:
        """Take in one event and show it to the sinks; return it with what those who watch are told more."""
        match event:
            case events.MessageAppended(message=message):
                self.messages.append(message)
            case events.ReplyReceived(usage=usage):
                self.last = event
                self.usage += usage
                self._extras.append(event.reply.message.extra)
            case events.RunStarted(messages=messages):
                self.messages = list(messages)
                event = event if self.observer is None else replace(event, run=self._described(self.observer))
            case events.RunFinished(reply=reply):
                self.finished = event
                if self.observer is not None:
                    event = replace(event, value=reply.text if self.parsed is None else self.parsed.value)
            case events.ToolCallStarted(call=call):
                self.tool_calls.append(call)
            case events.ReplyDelta() | events.TurnStarted() | events.ToolCallProgress() | events.ToolCallFinished():
                pass
            case events.TryFailed() | events.AnswerReviewed() | events.RunFailed():
                pass  # the observer shows them
            case _:
                assert_never(event)
        if self.observer is not None:
            self.observer.shown(event)
        return event

    def _described(self, observer: Observer) -> RunMetadata:
        """Return who runs, with what, and inside of what."""
        try:
            about = self.metadata()
        except Exception as error:  # noqa: BLE001 - what cannot be told of a function must not keep it from running
            push_warning(f"{self.func_name!r} cannot be described: {shown_error(error)}")
            about = RunMetadata(FunctionMetadata(self.func_name))
        return observer.surrounded(about, 0 if self.journal is None else self.journal.restarts)

    # --- what is known ---

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began."""
        return time.monotonic() - self.started

    @property
    def reply(self) -> ChatCompletion | None:
        """The accepted reply, else the latest one."""
        if self.finished:
            return self.finished.reply
        return self.last.reply if self.last else None

    @property
    def downgrades(self) -> list[tuple[str, str]]:
        """What was asked for in another way, as in `Result`: by this run, and by the interface."""
        return list(dict.fromkeys((*self._asked_otherwise, *self.noted.told)))

    @property
    def server_tools(self) -> list[ServerTool]:
        """The tools that the service ran by itself, in order."""
        return server_tools_in(self._extras)

    def facts(self) -> dict[str, Any]:
        """Return what `Result` and an error have in common, by attribute name."""
        reply = self.reply
        return {
            "attempts": list(self.attempts),
            "output_mode": self.output_mode,
            "output_mode_reason": self.output_mode_reason,
            "downgrades": self.downgrades,
            "tool_calls": list(self.tool_calls),
            "messages": copied(self.messages),
            "usage": self.usage,
            "cost": self.usage.cost,
            "seconds": self.seconds,
            "trace_id": self.trace_id,
            "cached": reply.cached if reply else False,
            "finish_reason": reply.finish_reason if reply else None,
            "replayed": list(self.journal.replayed) if self.journal is not None else [],
        }

    def explained(self, error: E) -> E:
        """Return `error` with the facts of this run; one that an inner run explained keeps its own."""
        if error.trace_id:
            return error
        facts = self.facts()
        facts["text"] = error.text or (self.reply.text if self.reply else "")
        facts["finish_reason"] = error.finish_reason or facts["finish_reason"]
        return error.with_run(func_name=self.func_name, **facts)


def generate_trace_id(func_name: str) -> str:
    """Return a new trace id, ``{func_name}_{uuid}``, and ``_{parent}`` where a run is going on around it.

    Only the parent's own part is carried on, so that ids do not grow with the depth of nesting.
    """
    own = f"{func_name}_{uuid.uuid4()}"
    parent = get_current_trace_id()
    own_part = _FIRST_UUID.search(parent)
    return f"{own}_{parent[: own_part.end()] if own_part else parent}" if parent else own
