"""What a trace store gives out: plain facts, frozen, ready for `dataclasses.asdict` and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from SimpleLLMFunc.base.run import Shown

RunStatus: TypeAlias = Literal["running", "ok", "error", "cancelled", "lost"]
"""How a run stands; "lost" is one whose process has gone without a word."""


Thumb: TypeAlias = Literal["up", "down"]
"""What a person thought of a run."""

RunOrder: TypeAlias = Literal["started", "seconds", "tokens", "cost"]
"""What a list of runs is sorted by."""


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs are wanted; None leaves a field open.

    Attributes:
        function, model, version: exact names.
        status: how they stand.
        since, until: seconds since the epoch; runs that began at `since` or later, and before `until`.
        text: what arguments, answer, error or tool names hold, in any case.
        parent: the trace id of the run that they are part of; "" for runs that are part of none.
        session, user: the conversation they belong to, and whom they served.
        error: name of the error's type.
        asked_again, repaired, failed_tries: True: runs in which that happened; False: runs in which it did not.
        min_seconds, max_seconds: of wall-clock time; runs that took as long as that or longer, or shorter.
        min_cost, max_cost: USD; runs without a known cost are in no range.
        thumb, tag: of their mark; see `TraceStore.mark`.
        marked: True: runs with a mark; False: runs without one.
    """

    function: str | None = None
    model: str | None = None
    version: str | None = None
    status: RunStatus | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None
    parent: str | None = None
    session: str | None = None
    user: str | None = None
    error: str | None = None
    asked_again: bool | None = None
    repaired: bool | None = None
    failed_tries: bool | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    min_cost: float | None = None
    max_cost: float | None = None
    thumb: Thumb | None = None
    tag: str | None = None
    marked: bool | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the list.

    Attributes:
        id: of the row; later runs have higher ones.
        seq: grows with every change of any run; see `TraceReader.changes`.
        parent: trace id of the run that it is part of, "" for none.
        parent_call: id of the tool call of that run that began this one, "" where none did.
        kind: who asked: "function", "chat", "call", "assistant".
        session, user: the conversation it belongs to and whom it served, where somebody said.
        status: see `RunStatus`.
        error: name of the error's type, "" where there is none.
        error_text: the head of what it said, redacted.
        started: seconds since the epoch.
        seconds: wall-clock time; None while it goes on.
        first_chunk_seconds: from the first request to the first piece of a streamed reply; None where nothing was streamed.
        turns: replies received.
        failed_tries: HTTP requests that failed.
        reasks: answers that were sent back.
        repairs: of the accepted answer.
        cost: USD, None when unknown.
        question: the head of the arguments, for a list.
        answer: the head of the answer, for a list.
        thumb, score, comment, tags: its mark; "", None, "" and nothing where there is none.
    """

    id: int
    seq: int
    trace_id: str
    parent: str
    parent_call: str
    function: str
    version: str
    kind: str
    model: str
    provider: str
    status: RunStatus
    error: str
    error_text: str
    started: float
    seconds: float | None
    first_chunk_seconds: float | None
    turns: int
    failed_tries: int
    reasks: int
    repairs: int
    tool_calls: int
    failed_tool_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cache_write_tokens: int
    cost: float | None
    cached: bool
    streamed: bool
    finish_reason: str
    session: str
    user: str
    question: str
    answer: str
    thumb: Thumb | Literal[""]
    score: float | None
    comment: str
    tags: list[str]


@dataclass(frozen=True, slots=True)
class RunPage(Shown):
    """A page of the list, in the order that was asked for.

    Attributes:
        runs: at most as many as were asked for.
        next: give this as `after` for the next page; None where there is none.
        seq: of the latest change in the whole store; give it to `TraceReader.changes`.
    """

    card: ClassVar[str] = "SimpleLLMFunc.display.runs:page_card"

    runs: list[RunSummary]
    next: str | None
    seq: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The runs that changed since a sequence number, in the order of their changes.

    Attributes:
        seq: give this the next time.
        more: there are further ones, at once.
    """

    runs: list[RunSummary]
    seq: int
    more: bool


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One request and what came of it.

    Attributes:
        number: of the request, from 1; a turn that was asked otherwise (another output mode) has two.
        turn: of the run.
        started: seconds since the beginning of the run.
        seconds: to the end of the reply; None where none came.
        first_chunk_seconds: to the first piece; None where it was not streamed.
        url: where it went; "" for a model in this process.
        request: the body as it was sent, redacted; None where it was not told.
        reply: the whole reply, as JSON data; None where none came.
        headers: that the service asks for, with the name of a variable in place of the key; None in files of 1.0.
    """

    number: int
    turn: int
    started: float
    seconds: float | None
    first_chunk_seconds: float | None
    model: str
    provider: str
    url: str
    request: Any
    reply: Any
    finish_reason: str
    tries: int
    cached: bool
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cache_write_tokens: int
    cost: float | None
    headers: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class StoredTry:
    """One HTTP request that failed.

    Attributes:
        turn: of the run.
        at: seconds since the beginning of the run.
        status: of HTTP, None where there was none.
        pause: seconds until the next one.
        model, next_model: which failed, and which was asked next.
    """

    number: int
    turn: int
    at: float
    error: str
    text: str
    status: int | None
    pause: float
    model: str
    next_model: str


@dataclass(frozen=True, slots=True)
class Review:
    """What was thought of one answer.

    Attributes:
        at: seconds since the beginning of the run.
        accepted: False: the model was asked again.
        violations: ``[path, expected, got]`` each.
        repairs: ``[path, what was done]`` each.
        text: the answer.
    """

    number: int
    turn: int
    at: float
    accepted: bool
    violations: list[Any]
    repairs: list[Any]
    text: Any


@dataclass(frozen=True, slots=True)
class StoredToolCall:
    """One call of a tool.

    Attributes:
        started: seconds since the beginning of the run.
        seconds: inside the tool; None while it runs, or where it was given up.
        content: what the model read; None while it runs.
    """

    number: int
    turn: int
    call_id: str
    name: str
    started: float
    seconds: float | None
    arguments: Any
    content: Any
    failed: bool


@dataclass(frozen=True, slots=True)
class FunctionVersion:
    """What a function was at one time.

    Attributes:
        version: hash of docstring, signature, types and tools.
        place: ``module:qualname`` where it was defined, "" where there is none.
        first_seen, last_seen: when runs of it began, seconds since the epoch.
        schema: JSON Schema of the answer, None where there is none.
        tools: in wire form.
        prompts: the system messages that its runs began with, the latest first, at most ten.
        runs, errors: how many there are.
    """

    function: str
    version: str
    kind: str
    docstring: str
    signature: str
    place: str
    schema: Any
    tools: list[Any]
    prompts: list[Any]
    first_seen: float
    last_seen: float
    runs: int
    errors: int


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A function in the list of functions.

    Attributes:
        versions: how many there are.
        latest: the version of its latest run.
        runs, errors: how many there are.
        last_seen: when its latest run began, seconds since the epoch.
    """

    name: str
    kind: str
    versions: int
    latest: str
    runs: int
    errors: int
    last_seen: float


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session in the list of sessions.

    Attributes:
        user: whom its latest run served; "" where nobody said.
        functions: names of what ran in it, separated by commas.
        runs, errors: how many there are.
        began, latest: when its first and its latest run began, seconds since the epoch.
        cost: USD of the runs whose cost is known; None where that is none.
        question: the head of the arguments of its first run.
    """

    session: str
    user: str
    functions: str
    runs: int
    errors: int
    began: float
    latest: float
    input_tokens: int
    output_tokens: int
    cost: float | None
    question: str


@dataclass(frozen=True, slots=True)
class RunDetail(Shown):
    """Everything about one run.

    Where the store was told to keep no content, ``{"omitted": {"chars": 12, "sha256": "…"}}`` stands in place of each
    text or JSON value: `arguments`, `answer`, `value`, messages, requests, replies, contents of tools.

    Attributes:
        error_text: the whole of it, redacted.
        arguments: by parameter name, as JSON data, redacted.
        answer: the accepted answer's text, else the last one's.
        value: what the caller got, as JSON data; None where there was no answer.
        messages: the conversation: what the model was shown first, and what came to it.
        children: runs that were part of this one, the oldest first.
        parent_run: the run that this one is part of, where the store holds it.
        function_version: what the function was then.
        incomplete: something was dropped because the writer could not follow.
        restarts: how often it went on in a `durable` block that had been broken off.
    """

    card: ClassVar[str] = "SimpleLLMFunc.display.runs:run_card"

    summary: RunSummary
    error_text: str
    arguments: Any
    answer: Any
    value: Any
    output_mode: str
    messages: list[Any]
    turns: list[StoredTurn]
    tries: list[StoredTry]
    reviews: list[Review]
    tool_calls: list[StoredToolCall]
    children: list[RunSummary]
    parent_run: RunSummary | None
    function_version: FunctionVersion | None
    incomplete: bool
    restarts: int = 0

    def __rich_repr__(self) -> Iterator[tuple[str, Any]]:
        yield "summary", self.summary
        yield "arguments", self.arguments
        yield "value", self.value
        yield "turns", len(self.turns)
        yield "tool_calls", [call.name for call in self.tool_calls]
