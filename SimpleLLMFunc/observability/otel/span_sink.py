"""OpenTelemetry: runs, model calls and tools as spans, tokens and seconds as metrics.

This module imports no SDK. Without one the API does nothing, and `default_sink` returns None.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from opentelemetry import baggage, context, metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.metadata import RunMetadata, SentRequest
from SimpleLLMFunc.errors import ProviderError, SimpleLLMFuncError
from SimpleLLMFunc.logger import shown_text
from SimpleLLMFunc.observability.otel.attributes import address, described, is_in_process, known, request_params
from SimpleLLMFunc.observability.otel.content import chat_input, json_text, output_messages, parsed, tool_definitions
from SimpleLLMFunc.observability.otel.environment import captures_content, is_set_up, length_limit
from SimpleLLMFunc.observability.otel.semconv import METRICS, PROVIDERS, SCHEMA_URL, Attribute, Event, Metric, Operation
from SimpleLLMFunc.observability.paths import declared_path
from SimpleLLMFunc.type import ToolCall, Usage

_MOST_REPAIRS = 32


@dataclass(slots=True)
class _Call:
    """A model call under way."""

    span: Span
    started: float
    labels: dict[str, Any]
    first_chunk: float | None = None


@dataclass(slots=True)
class _ToolSpan:
    """A tool under way."""

    span: Span
    ended: int | None = None


@dataclass(slots=True)
class _Run:
    """A run under way.

    Attributes:
        outside: the context around the run; restored at its end.
        refused: the last error of an attempt.
        rejected: the rejected answer that the next request asks for again.
    """

    span: Span
    inside: Context
    outside: Context
    about: RunMetadata
    session_id: str
    call: _Call | None = None
    tools: dict[str, _ToolSpan] = field(default_factory=dict)
    refused: BaseException | None = None
    rejected: events.AnswerReviewed | None = None


class SpanSink:
    """Shows runs as spans, after the GenAI conventions: a sink for `watching`.

    A process that has set a tracer provider needs no sink: one watches every run by itself. Make a sink to use other
    providers, or to put the content of the messages into the spans.

    Args:
        tracer_provider: None takes the global one.
        meter_provider: None takes the global one.
        capture_content: put prompts, answers, arguments and values into the spans, redacted; None asks the variable
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        capture_content: bool | None = None,
    ) -> None:
        self.captures_content = captures_content() if capture_content is None else capture_content
        name = ("SimpleLLMFunc", __version__)
        self._tracer: Tracer = trace.get_tracer(*name, tracer_provider, SCHEMA_URL)
        self._meters = {
            metric: metrics.get_meter(*name, meter_provider, SCHEMA_URL).create_histogram(
                metric, unit, told, explicit_bucket_boundaries_advisory=buckets
            )
            for metric, unit, told, buckets in METRICS
        }
        self._limit = length_limit()
        self._runs: dict[str, _Run] = {}

    def __call__(self, trace_id: str, event: ReActEvent, /) -> None:  # noqa: C901, PLR0912 - one line for each kind of event
        """Take in one event."""
        if isinstance(event, events.RunStarted):
            self._run_started(trace_id, event)
            return
        run = self._runs.get(trace_id)
        if run is None:
            return  # it began before this sink was there
        match event:
            case events.TurnStarted(sent=sent):
                if sent is not None:
                    self._turn_started(run, sent)
            case events.TryFailed():
                self._try_failed(run, event)
            case events.ReplyDelta():
                if run.call is not None and run.call.first_chunk is None:
                    run.call.first_chunk = time.perf_counter() - run.call.started
            case events.ReplyReceived():
                self._reply_received(run, event)
            case events.AnswerReviewed():
                self._answer_reviewed(run, event)
            case events.ToolCallStarted(call=call):
                self._tool_started(run, call)
            case events.ToolCallFinished():
                self._tool_finished(run, event)
            case events.RunFinished(value=value, usage=usage, downgrades=downgrades):
                self._show(run.span, Attribute.OUTPUT_VALUE, lambda: value, Attribute.OUTPUT_MIME_TYPE)
                self._end_run(trace_id, run, usage, downgrades)
            case events.RunFailed():
                self._run_failed(trace_id, run, event)
            case events.ToolCallProgress() | events.MessageAppended():
                pass
            case _:
                assert_never(event)

    def enter_tool(self, trace_id: str, call: ToolCall) -> None:
        """Make the span of the tool the current one in the task that runs it, so that further spans are its children."""
        run = self._runs.get(trace_id)
        tool = run.tools.get(call.id) if run is not None else None
        if run is None or tool is None:
            return
        context.attach(trace.set_span_in_context(tool.span, run.inside))
        task = asyncio.current_task()
        if task is not None:
            # Events of results come in the order of the calls: only here is the end of an early tool known.
            task.add_done_callback(lambda _: setattr(tool, "ended", time.time_ns()))

    # --- the run ---

    def _run_started(self, trace_id: str, event: events.RunStarted) -> None:
        about = event.run
        if about is None:
            return
        outside = context.get_current()
        session_id = about.session_id or str(baggage.get_baggage(Attribute.SESSION, outside) or "")
        attributes = {
            Attribute.AGENT_NAME: about.function.name,
            Attribute.TRACE_ID: trace_id,
            Attribute.FUNCTION_VERSION: about.function.version,
            Attribute.SPAN_KIND: "AGENT",
            Attribute.SESSION: session_id,
            Attribute.USER: about.user_id or str(baggage.get_baggage(Attribute.USER, outside) or ""),
            Attribute.RESTARTS: about.restarts or None,
        }
        span = self._begin(Operation.INVOKE_AGENT, about.function.name, outside, attributes)
        self._show(span, Attribute.INPUT_VALUE, lambda: dict(about.arguments), Attribute.INPUT_MIME_TYPE)
        run = _Run(span, trace.set_span_in_context(span, outside), outside, about, session_id)
        self._runs[trace_id] = run
        context.attach(run.inside)

    def _run_failed(self, trace_id: str, run: _Run, event: events.RunFailed) -> None:
        error = event.error
        marked = None if event.how == "abandoned" else error
        self._end_call(run, marked)
        for tool in run.tools.values():
            self._mark(tool.span, marked)
            tool.span.end(tool.ended)
        if marked is None:
            run.span.add_event(Event.ABANDONED)
        self._mark(run.span, marked)
        usage, downgrades = (error.usage, error.downgrades) if isinstance(error, SimpleLLMFuncError) else (None, ())
        self._end_run(trace_id, run, usage, downgrades)

    def _end_run(self, trace_id: str, run: _Run, usage: Usage | None, downgrades: Sequence[tuple[str, str]]) -> None:
        if downgrades:
            run.span.set_attribute(Attribute.DOWNGRADES, [what for what, _ in downgrades])
        if usage is not None and usage.cost is not None:
            run.span.set_attributes({Attribute.USAGE_COST: usage.cost, Attribute.OPERATION_COST: usage.cost})
        run.span.end()
        del self._runs[trace_id]
        context.attach(run.outside)

    # --- a model call ---

    def _turn_started(self, run: _Run, sent: SentRequest) -> None:
        self._asked_again(run)
        self._end_call(run, run.refused)  # one that goes on was refused, and is asked in another mode now
        if sent.llm.is_traced:
            return
        llm = sent.llm
        labels = {
            Attribute.OPERATION: Operation.CHAT,
            Attribute.PROVIDER: PROVIDERS.get(llm.provider, llm.provider),
            Attribute.REQUEST_MODEL: llm.model_name,
            **address(llm),
        }
        attributes: dict[str, Any] = {
            **labels,
            Attribute.REQUEST_STREAM: sent.stream,
            Attribute.OUTPUT_TYPE: "text" if sent.output_mode in {"text", "choice"} else "json",
            Attribute.CONVERSATION: run.session_id,
            **request_params(sent.params()),
        }
        kind = SpanKind.INTERNAL if is_in_process(llm) else SpanKind.CLIENT
        span = self._begin(Operation.CHAT, llm.model_name, run.inside, attributes, kind)
        if self.captures_content and span.is_recording():
            self._capture_request(span, sent)
        run.call = _Call(span, time.perf_counter(), labels)
        context.attach(trace.set_span_in_context(span, run.inside))

    def _capture_request(self, span: Span, sent: SentRequest) -> None:
        wire = sent.wire()
        instructions, messages = chat_input(wire["messages"])
        if instructions:
            self._show(span, Attribute.SYSTEM_INSTRUCTIONS, lambda: instructions)
        self._show(span, Attribute.INPUT_MESSAGES, lambda: messages)
        if wire["tools"]:
            self._show(span, Attribute.TOOL_DEFINITIONS, lambda: tool_definitions(wire["tools"]))

    def _try_failed(self, run: _Run, event: events.TryFailed) -> None:
        run.refused = event.error
        span = run.call.span if run.call is not None else run.span
        if not span.is_recording():
            return
        attributes = {
            Attribute.TURN: event.turn,
            Attribute.TRIES: event.tries,
            Attribute.PAUSE: event.pause,
            Attribute.REQUEST_MODEL: event.model,
            Attribute.NEXT_MODEL: event.next_model,
            Attribute.ERROR_TYPE: type(event.error).__name__,
            Attribute.MESSAGE: self._told(event.error),
        }
        span.add_event(Event.TRY_FAILED, known(attributes))

    def _reply_received(self, run: _Run, event: events.ReplyReceived) -> None:
        call = run.call
        if call is None:
            return
        reply, usage = event.reply, event.usage
        reasons = [choice.finish_reason for choice in reply.choices if choice.finish_reason]
        call.labels[Attribute.RESPONSE_MODEL] = reply.model
        attributes: dict[str, Any] = {
            Attribute.RESPONSE_ID: reply.id,
            Attribute.RESPONSE_MODEL: reply.model,
            Attribute.FINISH_REASONS: reasons or None,
            Attribute.FIRST_CHUNK: call.first_chunk,
            Attribute.CACHED: reply.cached or None,
            Attribute.REPLAYED: event.replayed or None,
        }
        if usage.total_tokens and not event.replayed:
            attributes |= {
                Attribute.INPUT_TOKENS: usage.input_tokens,
                Attribute.OUTPUT_TOKENS: usage.output_tokens,
                Attribute.CACHED_TOKENS: usage.cached_tokens or None,
                Attribute.CACHE_WRITE_TOKENS: usage.cache_write_tokens or None,
                Attribute.REASONING_TOKENS: usage.reasoning_tokens or None,
            }
        call.span.set_attributes(known(attributes))
        self._show(call.span, Attribute.OUTPUT_MESSAGES, lambda: output_messages(reply))
        self._end_call(run, None, event)

    def _end_call(self, run: _Run, error: BaseException | None, replied: events.ReplyReceived | None = None) -> None:
        call, run.call = run.call, None
        if call is None:
            return
        self._mark(call.span, error)
        call.span.end()
        context.attach(run.inside)
        if replied is not None and replied.replayed:
            return  # no model was asked
        labels = known(call.labels)
        failed = {} if error is None else {Attribute.ERROR_TYPE: type(error).__name__}
        self._meters[Metric.OPERATION_DURATION].record(time.perf_counter() - call.started, {**labels, **failed})
        if call.first_chunk is not None:
            self._meters[Metric.FIRST_CHUNK].record(call.first_chunk, labels)
        if replied is not None and replied.usage.total_tokens:
            tokens = self._meters[Metric.TOKEN_USAGE]
            tokens.record(replied.usage.input_tokens, {**labels, Attribute.TOKEN_TYPE: "input"})
            tokens.record(replied.usage.output_tokens, {**labels, Attribute.TOKEN_TYPE: "output"})

    def _answer_reviewed(self, run: _Run, event: events.AnswerReviewed) -> None:
        if not run.span.is_recording():
            return
        for path, what in event.attempt.repairs[:_MOST_REPAIRS]:
            where = self._path(run, path)
            attributes = {Attribute.TURN: event.turn, Attribute.PATH: where, Attribute.MESSAGE: self._content(what)}
            run.span.add_event(Event.REPAIR, known(attributes))
        run.rejected = None if event.accepted else event

    def _asked_again(self, run: _Run) -> None:
        event, run.rejected = run.rejected, None
        if event is None or not run.span.is_recording():
            return
        violations = event.attempt.violations[:_MOST_REPAIRS]
        paths = [self._path(run, path) or "the whole answer" for path, _, _ in violations]
        problems = [f"{path or 'the whole answer'}: expected {wanted}, got {got}" for path, wanted, got in violations]
        attributes = {Attribute.TURN: event.turn, Attribute.PATHS: paths or None}
        run.span.add_event(Event.RE_ASK, known({**attributes, Attribute.MESSAGE: self._content("; ".join(problems))}))

    # --- a tool ---

    def _tool_started(self, run: _Run, call: ToolCall) -> None:
        name = call.function.name
        attributes = {
            Attribute.TOOL_NAME: name,
            Attribute.TOOL_CALL_ID: call.id,
            Attribute.TOOL_TYPE: "function",
            Attribute.TOOL_DESCRIPTION: described(run.about, name),
        }
        span = self._begin(Operation.EXECUTE_TOOL, name, run.inside, attributes)
        self._show(span, Attribute.TOOL_ARGUMENTS, lambda: parsed(call.function.arguments))
        run.tools[call.id] = _ToolSpan(span)

    def _tool_finished(self, run: _Run, event: events.ToolCallFinished) -> None:
        tool = run.tools.pop(event.call.id, None)
        if tool is None:
            return
        if event.replayed:
            tool.span.set_attribute(Attribute.REPLAYED, True)
        if event.failed:
            tool.span.set_attribute(Attribute.ERROR_TYPE, event.error_type or "_OTHER")
            tool.span.set_status(Status(StatusCode.ERROR, self._content(str(event.content)) or event.error_type))
        self._show(tool.span, Attribute.TOOL_RESULT, lambda: parsed(event.content))
        tool.span.end(tool.ended)

    # --- spans ---

    def _begin(
        self, operation: str, name: str, inside: Context, attributes: dict[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        """Begin a span, with those attributes that have a value."""
        attributes = known({Attribute.OPERATION: operation, **attributes})
        return self._tracer.start_span(f"{operation} {name}", inside, kind, attributes)

    def _mark(self, span: Span, error: BaseException | None) -> None:
        if error is not None:
            span.set_attribute(Attribute.ERROR_TYPE, type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, self._told(error)))

    def _told(self, error: BaseException) -> str:
        """Return the text of an error for a span: without content only its type, since the text may quote messages."""
        if self.captures_content:
            return shown_text(str(error), 4000) or type(error).__name__
        status = error.status if isinstance(error, ProviderError) else None
        return f"{type(error).__name__} ({status})" if status else type(error).__name__

    def _content(self, text: str) -> str:
        return shown_text(text, 4000) if self.captures_content else ""

    def _path(self, run: _Run, path: str) -> str:
        return self._content(path) if self.captures_content else declared_path(path, run.about.function.output_schema)

    def _show(self, span: Span, name: str, value: Callable[[], Any], mime_type: str = "") -> None:
        """Put content into a span, as JSON, where content is asked for; `mime_type` names the attribute for its type."""
        if self.captures_content and span.is_recording():
            span.set_attribute(name, json_text(value(), self._limit))
            if mime_type:
                span.set_attribute(mime_type, "application/json")


_chosen: list[bool | None] = [None]


def choose_content(capture_content: bool | None) -> None:
    """Set whether the default sink puts content into the spans; None asks the environment."""
    _chosen[0] = capture_content


def default_sink() -> SpanSink | None:
    """Return the sink that watches every run of the process; None while OpenTelemetry is not set up."""
    return SpanSink(capture_content=_chosen[0]) if is_set_up() else None
