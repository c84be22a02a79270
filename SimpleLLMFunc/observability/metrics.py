"""The path that the pages of 1.0 name; what is in it lives in `observability/store/metrics.py`."""

from SimpleLLMFunc.observability.store import Dimension, MetricRow, metrics

__all__ = ["Dimension", "MetricRow", "metrics"]
