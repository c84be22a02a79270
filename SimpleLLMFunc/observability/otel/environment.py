"""What the environment and the process say about OpenTelemetry: content, limits, providers."""

from __future__ import annotations

import os

from opentelemetry import metrics, trace

_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES = frozenset({"true", "1", "yes", "on", "span_only", "span_and_event"})
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")
_NO_PROVIDERS = frozenset({"ProxyTracerProvider", "NoOpTracerProvider", "_ProxyMeterProvider", "NoOpMeterProvider"})


def captures_content() -> bool:
    """Say whether the environment asks for the content of messages in the spans."""
    return os.environ.get(_CAPTURE, "").strip().lower() in _CAPTURES


def length_limit() -> int | None:
    """Return the length at which an SDK cuts attributes: JSON that an SDK has cut is no longer JSON."""
    for name in _LIMITS:
        text = os.environ.get(name, "").strip()
        if text.isdecimal():
            return int(text)
    return None


def is_set_up() -> bool:
    """Say whether the process has given OpenTelemetry a provider."""
    providers = (trace.get_tracer_provider(), metrics.get_meter_provider())
    return any(type(each).__name__ not in _NO_PROVIDERS for each in providers)
