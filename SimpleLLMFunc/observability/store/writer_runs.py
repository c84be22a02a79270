"""Events become rows: the runs under way, until a trace store has written them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, assert_never

from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.metadata import FunctionMetadata, SentRequest
from SimpleLLMFunc.base.run import KEY_VARIABLE
from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.observability.paths import declared_path
from SimpleLLMFunc.observability.store.content import Content, pack, storable
from SimpleLLMFunc.observability.store.items import Ended, Item
from SimpleLLMFunc.observability.store.rows import FailedTry
from SimpleLLMFunc.type import NO_USAGE, ToolCall, Usage

_HEAD = 300
"""Characters of arguments and answer in the list of runs."""

_SEARCHED = 2_000
"""Characters of each text in the full-text index."""


Row: TypeAlias = dict[str, Any]


@dataclass(slots=True, eq=False)
class OpenRun:
    """A run under way.

    Attributes:
        began: on the monotonic clock.
        columns: of its row.
        rows: unwritten rows of other tables, by table and number; a system message is a `prompt`, stored once.
        id: of its row; None until that is written.
        is_dirty: its row has unwritten changes.
        is_rejected: the latest answer was rejected.
        version: row of the function's version; None once it is written.
        texts: for the full-text index.
        numbers: of the last row, by table.
        calls: running tool calls, by id.
        turn: row of the latest turn.
        output_schema: of the function's answer.
    """

    trace_id: str
    began: float
    columns: Row
    rows: dict[tuple[str, int], Row] = field(default_factory=dict)
    id: int | None = None
    is_dirty: bool = True
    has_ended: bool = False
    is_rejected: bool = False
    version: Row | None = None
    texts: dict[str, str] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)
    calls: dict[str, Row] = field(default_factory=dict)
    turn: Row | None = None
    usage: Usage = NO_USAGE
    output_schema: Mapping[str, Any] | None = None

    def add(self, table: str, row: Row) -> Row:
        """Give a new row of a table its number, have it written, and return it."""
        self.numbers[table] += 1
        row["number"] = self.numbers[table]
        return self.change(table, row)

    def change(self, table: str, row: Row) -> Row:
        """Have a row of a table written again, and return it."""
        self.rows[table, row["number"]] = row
        return row


class Fold:
    """Turns the items of runs into rows.

    Args:
        content: decides which content is kept.

    Attributes:
        runs: by trace id; under way, or ended and not written yet.
    """

    def __init__(self, content: Content) -> None:
        self.content = content
        self.runs: dict[str, OpenRun] = {}

    def take(self, trace_id: str, at: float, item: Item) -> None:
        """Process one item; `at` is its time on the monotonic clock."""
        if isinstance(item, events.RunStarted):
            self.runs[trace_id] = run = self._begin(trace_id, at, item)
            for message in item.messages:
                self._message(run, 0, message)
            return
        known = self.runs.get(trace_id)
        # Without a beginning: it was dropped, or belongs to the parent process.
        if known is not None and not known.has_ended:
            self._note(known, at, item)
            known.is_dirty = True

    def forget_written(self) -> None:
        """Drop the runs that have ended and are written."""
        self.runs = {trace_id: run for trace_id, run in self.runs.items() if not run.has_ended or run.is_dirty}

    def _note(self, run: OpenRun, at: float, item: Item) -> None:
        since = at - run.began
        match item:
            case events.TurnStarted():
                self._begin_turn(run, since, item)
            case events.ReplyDelta():
                self._first_chunk(run, since)
            case events.ReplyReceived():
                self._end_turn(run, since, item)
            case FailedTry():
                self._failed_try(run, since, item)
            case events.AnswerReviewed():
                self._review(run, since, item)
            case events.ToolCallStarted(turn=turn, call=call):
                self._begin_call(run, since, turn, call)
            case events.ToolCallFinished():
                self._end_call(run, since, item)
            case events.MessageAppended(turn=turn, message=message):
                self._message(run, turn, message)
            case events.RunFinished():
                self._finish(run, since, item)
            case Ended():
                self._end(run, since, item)
            case events.RunStarted() | events.TryFailed() | events.RunFailed() | events.ToolCallProgress():
                pass  # the first is processed by `take`, the others do not come here
            case _:
                assert_never(item)

    # --- the run -----------------------------------------------------------------------------------------

    def _begin(self, trace_id: str, at: float, item: events.RunStarted) -> OpenRun:
        facts = item.run
        function = facts.function if facts is not None else FunctionMetadata(trace_id.partition("_")[0])
        arguments = facts.arguments if facts is not None else {}
        kept = self.content.kept_fields(arguments)
        name = self.content.text(function.name)
        columns: Row = {**dict.fromkeys(_COUNTS, 0), **dict.fromkeys(_TEXTS, ""), **dict.fromkeys(_OPEN)}
        columns |= {"trace_id": self.content.text(trace_id), "function": name, "version": function.version}
        columns |= {"kind": function.kind, "status": "running", "arguments": pack(kept)}
        columns["started"] = time.time() - (time.monotonic() - at)
        if facts is not None:
            told = {"parent": facts.parent_trace_id, "parent_call": facts.parent_call_id}
            told |= {"session": facts.session_id, "user": facts.user_id}
            columns |= {column: self.content.text(text) for column, text in told.items()}
            columns["restarts"] = facts.restarts
        run = OpenRun(trace_id, at, columns, texts={"function": name}, output_schema=function.output_schema)
        if arguments and self.content.keep:
            columns["question"] = cut(storable(_shown(_said(kept))), _HEAD)
            run.texts["arguments"] = storable(_shown(kept))[:_SEARCHED]
        run.version = {**self._version(function), "first_seen": columns["started"]}
        return run

    def _version(self, function: FunctionMetadata) -> Row:
        texts = {name: self.content.text(getattr(function, name)) for name in ("docstring", "signature", "place")}
        return {
            "function": self.content.text(function.name),
            "version": function.version,
            "kind": function.kind,
            **texts,
            "schema": None if function.output_schema is None else pack(self.content.data(function.output_schema)),
            "tools": pack(self.content.data(list(function.tools))),
        }

    def _finish(self, run: OpenRun, since: float, item: events.RunFinished) -> None:
        run.columns |= {
            "status": "ok",
            "seconds": since,
            "finish_reason": item.reply.finish_reason or "",
            "cached": item.reply.cached,
            "value": self.content.packed(item.value),
        }
        self._answer(run, item.reply.text)
        run.has_ended = True

    def _end(self, run: OpenRun, since: float, item: Ended) -> None:
        text = self.content.head(item.text, 2000)
        run.columns |= {"status": item.status, "seconds": since, "error": item.error, "error_text": text}
        run.texts["error"] = f"{item.error} {text}"
        run.has_ended = True

    def _answer(self, run: OpenRun, text: str) -> None:
        run.columns["answer"] = self.content.packed(text)
        run.columns["answer_head"] = self.content.head(text, _HEAD)
        run.texts["answer"] = self.content.head(text, _SEARCHED)

    # --- turns -------------------------------------------------------------------------------------------

    def _begin_turn(self, run: OpenRun, since: float, item: events.TurnStarted) -> None:
        run.columns["reasks"] += run.is_rejected  # a rejected last answer is no re-ask
        run.is_rejected = False
        if item.sent is None and run.turn is not None and run.turn["turn"] == item.turn and run.turn["reply"] is None:
            # The request of a broken stream, sent again unchanged.
            run.turn["first_chunk_seconds"] = None
            return
        columns = {
            **dict.fromkeys(("model", "provider", "url", "finish_reason"), ""),
            **dict.fromkeys(("seconds", "first_chunk_seconds", "request", "reply", "cost", "headers")),
            **dict.fromkeys((*_USAGE, "tries", "cached"), 0),
        }
        run.turn = run.add("turns", {**columns, "turn": item.turn, "started": since})
        if item.sent is not None:
            self._sent(run, run.turn, item.sent)

    def _sent(self, run: OpenRun, row: Row, sent: SentRequest) -> None:
        model = self.content.text(str(sent.llm.model_name))
        provider = self.content.text(str(sent.llm.provider))
        url, body, headers = _request(sent)
        row |= {"model": model, "provider": provider, "url": self.content.text(url)}
        run.columns |= {"model": model, "provider": provider, "output_mode": sent.output_mode}
        run.columns["streamed"] = run.columns["streamed"] or sent.stream
        row["request"] = self.content.packed(body)
        row["headers"] = pack(dict(self._header(*header) for header in headers.items()))

    def _header(self, name: str, value: str) -> tuple[str, str]:
        return name, value if KEY_VARIABLE.fullmatch(f"{name}: {value}") else self.content.text(value)

    def _first_chunk(self, run: OpenRun, since: float) -> None:
        if run.turn is None or run.turn["first_chunk_seconds"] is not None:
            return
        run.turn["first_chunk_seconds"] = since - run.turn["started"]
        run.change("turns", run.turn)
        if run.columns["first_chunk_seconds"] is None:
            run.columns["first_chunk_seconds"] = since

    def _end_turn(self, run: OpenRun, since: float, item: events.ReplyReceived) -> None:
        reply, usage = item.reply, item.usage
        if item.replayed and reply.usage is not None:
            usage = reply.usage.tokens  # a replayed reply of the same run: its tokens count once, in this run
        if run.turn is None:
            return
        run.usage += usage
        run.turn |= {
            "seconds": since - run.turn["started"],
            "reply": self.content.packed(reply.to_dict()),
            "finish_reason": reply.finish_reason or "",
            "tries": reply.tries,
            "cached": reply.cached,
            **_counts(usage),
        }
        run.change("turns", run.turn)
        run.columns |= {"turns": run.columns["turns"] + 1, **_counts(run.usage)}
        if not reply.tool_calls:
            self._answer(run, reply.text)

    def _failed_try(self, run: OpenRun, since: float, item: FailedTry) -> None:
        kept = {"text": self.content.head(item.text, 2000), "model": self.content.text(item.model)}
        kept["next_model"] = self.content.text(item.next_model)
        run.add("tries", {**asdict(item), **kept, "at": since})
        run.columns["failed_tries"] += 1

    def _review(self, run: OpenRun, since: float, item: events.AnswerReviewed) -> None:
        attempt = item.attempt
        row: Row = {
            "turn": item.turn,
            "at": since,
            "accepted": item.accepted,
            "text": self.content.packed(attempt.text),
        }
        row["violations"] = pack([self._without_content(run, each, 2) for each in attempt.violations])
        row["repairs"] = pack([self._without_content(run, each, 1) for each in attempt.repairs])
        run.add("reviews", row)
        if item.accepted:
            run.columns["repairs"] = len(attempt.repairs)
        run.is_rejected = not item.accepted

    def _without_content(self, run: OpenRun, parts: tuple[str, ...], plain: int) -> list[str]:
        """Return the parts of a violation or a repair; those after the first `plain` may quote content.

        The first part is a path, which may hold keys that the model chose.
        """
        if not self.content.keep:
            path, *others = parts
            kept = others[: plain - 1]
            parts = (declared_path(path, run.output_schema), *kept, *([""] * (len(others) - len(kept))))
        return [self.content.text(part) for part in parts]

    # --- tools and messages ------------------------------------------------------------------------------

    def _begin_call(self, run: OpenRun, since: float, turn: int, call: ToolCall) -> Row:
        name = self.content.text(call.function.name)
        row: Row = {"turn": turn, "call_id": self.content.text(call.id), "name": name, "started": since}
        row |= {"seconds": None, "content": None, "failed": False}
        row["arguments"] = self.content.packed(call.function.arguments)
        run.calls[call.id] = run.add("tool_calls", row)
        run.columns["tool_calls"] += 1
        run.texts["tools"] = f"{run.texts.get('tools', '')} {name}"[-_SEARCHED:]
        return row

    def _end_call(self, run: OpenRun, since: float, item: events.ToolCallFinished) -> None:
        row = run.calls.pop(item.call.id, None)
        if row is None:
            row = self._begin_call(run, max(since - item.seconds, 0.0), item.turn, item.call)
            del run.calls[item.call.id]
        row |= {"seconds": item.seconds, "content": self.content.packed(item.content), "failed": item.failed}
        run.change("tool_calls", row)
        run.columns["failed_tool_calls"] += item.failed

    def _message(self, run: OpenRun, turn: int, message: Mapping[str, Any]) -> None:
        # Roles, names and call ids are not content.
        stored = pack(self.content.kept_fields(message, always={"role", "name", "tool_call_id"}))
        is_prompt = message.get("role") == "system" and not run.numbers["messages"]
        row: Row = {"turn": turn, "message": None, "prompt": None}
        run.add("messages", {**row, "prompt" if is_prompt else "message": stored})


_USAGE = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cache_write_tokens")
_COUNTS = (
    *_USAGE, "turns", "failed_tries", "reasks", "repairs", "tool_calls", "failed_tool_calls", "cached", "streamed",
    "incomplete", "restarts",
)  # fmt: skip
_TEXTS = (
    "parent", "parent_call", "model", "provider", "session", "user", "error", "error_text", "finish_reason",
    "output_mode", "question", "answer_head",
)  # fmt: skip
_OPEN = ("seconds", "first_chunk_seconds", "cost", "answer", "value")
"""First values of a run's columns: 0, "" and None."""


def _counts(usage: Usage) -> Row:
    return {name: getattr(usage, name) for name in (*_USAGE, "cost")}


def _shown(value: Any) -> str:
    """Return arguments for a list: a single one without its name."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            return _shown(next(iter(value.values())))
        return ", ".join(f"{name}={_shown(each)}" for name, each in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _said(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments without histories: the last message tells runs of a chat apart."""
    return {name: value for name, value in arguments.items() if not _is_history(name, value)} or arguments


def _is_history(name: str, value: Any) -> bool:
    if not isinstance(value, list):
        return False
    said = all(isinstance(each, dict) and "role" in each for each in value)
    return said and (bool(value) or name in {"history", "chat_history"})


def _request(sent: SentRequest) -> tuple[str, Any, Mapping[str, str]]:
    """Return address, body and headers of the request; messages and parameters where the interface cannot render it."""
    wire = sent.wire()
    messages = wire.pop("messages")
    llm, stream = sent.llm, sent.stream
    try:
        body = llm.render(messages, stream=stream, **wire)
        return llm.url(stream=stream), body, llm.shown_headers(messages, stream=stream, **wire)
    except Exception:  # noqa: BLE001 - a user's interface may raise anything; the run goes on
        return "", {"messages": messages, **wire}, {}
