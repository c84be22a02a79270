"""The records that a trace store returns: frozen dataclasses, ready for `dataclasses.asdict` and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from SimpleLLMFunc.base.run import Shown

RunStatus: TypeAlias = Literal["running", "ok", "error", "cancelled", "lost"]
"""State of a run; "lost": its process died before the run ended."""


Thumb: TypeAlias = Literal["up", "down"]
"""A person's verdict on a run."""

RunOrder: TypeAlias = Literal["started", "seconds", "tokens", "cost"]
"""What a list of runs is sorted by."""


@dataclass(frozen=True, slots=True)
class RunQuery:
    """A filter of runs; a field that is None filters nothing.

    Attributes:
        function, model, version: exact names.
        status: see `RunStatus`.
        since, until: seconds since the epoch; runs that began at `since` or later, and before `until`.
        text: is searched in arguments, answer, error and tool names; upper and lower case are equal.
        parent: trace id of the parent run; "" for runs without a parent.
        session, user: the conversation, and the user that the program named.
        error: name of the error's type.
        asked_again, repaired, failed_tries: True: runs in which it happened; False: runs in which it did not.
        min_seconds, max_seconds: wall-clock time, `min_seconds` included, `max_seconds` not.
        min_cost, max_cost: USD, as above; runs of unknown cost match no range.
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
        parent: trace id of the parent run, "" without one.
        parent_call: id of the parent's tool call that began this run, "" without one.
        kind: of the caller: "function", "chat", "call", "assistant".
        session, user: the conversation, and the user that the program named; "" without.
        status: see `RunStatus`.
        error: name of the error's type, "" without an error.
        error_text: the beginning of its text, redacted.
        started: seconds since the epoch.
        seconds: wall-clock time; None while the run goes on.
        first_chunk_seconds: from the first request to the first chunk of a streamed reply; None where nothing was streamed.
        turns: replies received.
        failed_tries: HTTP requests that failed.
        reasks: rejected answers.
        repairs: of the accepted answer.
        cost: USD, None when unknown.
        question: the beginning of the arguments, for a list.
        answer: the beginning of the answer, for a list.
        thumb, score, comment, tags: of its mark; "", None, "" and [] without a mark.
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
    """A page of the list, in the requested order.

    Attributes:
        runs: at most `limit`.
        next: `after` for the next page; None on the last page.
        seq: of the latest change in the whole store, for `TraceReader.changes`.
    """

    card: ClassVar[str] = "SimpleLLMFunc.display.results:page_card"

    runs: list[RunSummary]
    next: str | None
    seq: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The runs that changed since a sequence number, in the order of their changes.

    Attributes:
        seq: `since` for the next call.
        more: there are further changes now.
    """

    runs: list[RunSummary]
    seq: int
    more: bool


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One request and its reply.

    Attributes:
        number: of the request, from 1; a turn that was asked again in another output mode has two.
        turn: of the run.
        started: seconds since the beginning of the run.
        seconds: to the end of the reply; None without a reply.
        first_chunk_seconds: to the first chunk; None where the reply was not streamed.
        url: of the request; "" for a model in this process.
        request: the body that was sent, redacted; None where it is unknown.
        reply: the whole reply, as JSON data; None without a reply.
        headers: of the request, with the name of a variable in place of the key; None in files of 1.0.
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
class FailedTry:
    """One HTTP request that failed.

    Attributes:
        turn: of the run.
        error, text: the name and the text of the error.
        status: of HTTP, None without a response.
        pause: seconds until the next request.
        model, next_model: the model that failed, and the one that is asked next.
    """

    turn: int
    error: str
    text: str
    status: int | None
    pause: float
    model: str
    next_model: str


@dataclass(frozen=True, slots=True)
class StoredTry(FailedTry):
    """The same in the store; `at` is in seconds since the beginning of the run."""

    number: int
    at: float


@dataclass(frozen=True, slots=True)
class Review:
    """The verdict on one answer.

    Attributes:
        at: seconds since the beginning of the run.
        accepted: False: the answer was rejected.
        violations: ``[path, expected, got]`` each.
        repairs: ``[path, repair]`` each.
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
        seconds: inside the tool; None while it runs, or where the run ended first.
        content: the result that the model read; None while the tool runs.
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
    """One version of a function.

    Attributes:
        version: hash of docstring, signature, types and tools.
        place: ``module:qualname`` where it was defined, "" where that is unknown.
        first_seen, last_seen: start of its first and latest run, seconds since the epoch.
        schema: JSON Schema of the answer, None without one.
        tools: in wire form.
        prompts: the system messages that its runs began with, the latest first, at most ten.
        runs, errors: counts.
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
        versions: count.
        latest: the version of its latest run.
        runs, errors: counts.
        last_seen: start of its latest run, seconds since the epoch.
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
        user: of its latest run; "" where the program named none.
        functions: names, separated by commas.
        runs, errors: counts.
        began, latest: start of its first and of its latest run, seconds since the epoch.
        cost: USD of the runs whose cost is known; None where no run's is.
        question: the beginning of the arguments of its first run.
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

    A store that keeps no content has ``{"omitted": {"chars": 12, "sha256": "…"}}`` in place of each text or JSON value:
    `arguments`, `answer`, `value`, messages, requests, replies, results of tools.

    Attributes:
        error_text: the whole of it, redacted.
        arguments: by parameter name, as JSON data, redacted.
        answer: the accepted answer's text, else the last one's.
        value: the value that the caller got, as JSON data; None without an answer.
        messages: the conversation: the first request's messages, and those added later.
        children: runs inside this one, the oldest first.
        parent_run: the run around this one, where the store holds it.
        function_version: the function's version in this run.
        incomplete: events were dropped because the writer was too slow.
        restarts: how often an interrupted `durable` block continued it.
    """

    card: ClassVar[str] = "SimpleLLMFunc.display.results:run_card"

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
