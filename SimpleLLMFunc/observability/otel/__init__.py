"""OpenTelemetry: runs, model calls and tools as spans, tokens and seconds as metrics, after the GenAI conventions."""
