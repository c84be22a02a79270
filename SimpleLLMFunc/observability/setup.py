"""The path that the pages of 1.0 name; what is in it lives in `observability/otel/setup.py`."""

from SimpleLLMFunc.observability.otel import setup_tracing

__all__ = ["setup_tracing"]
