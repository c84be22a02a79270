"""OpenTelemetry: runs, model calls and tools as spans, tokens and seconds as metrics, after the GenAI conventions."""

from SimpleLLMFunc.observability.otel.setup import setup_tracing
from SimpleLLMFunc.observability.otel.span_sink import SpanSink

__all__ = ["SpanSink", "setup_tracing"]
