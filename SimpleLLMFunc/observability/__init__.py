"""Sinks on the event stream: spans and metrics of OpenTelemetry, and the trace store."""

__all__ = ["metrics", "otel", "reader", "reader_rows", "store"]
