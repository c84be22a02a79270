"""The path that the pages of 1.0 name; what is in it lives in `observability/store/metrics.py`."""

from __future__ import annotations

from SimpleLLMFunc.observability.store import MetricRow, metrics

__all__ = ["MetricRow", "metrics"]
