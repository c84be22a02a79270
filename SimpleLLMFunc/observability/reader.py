"""The path that the reference of 1.0 names; what is in it lives in `observability/store/reader.py`."""

from SimpleLLMFunc.observability.store import TraceReader

__all__ = ["TraceReader"]
