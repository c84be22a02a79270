"""The trace store: every run in one SQLite file, written beside the calls and never in their way; and what reads it."""

from __future__ import annotations

from SimpleLLMFunc.observability.store.metrics import Dimension, MetricRow, metrics
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import (
    Changes,
    RunDetail,
    RunPage,
    RunQuery,
    RunStatus,
    RunSummary,
    StoredTurn,
)
from SimpleLLMFunc.observability.store.trace_store import TraceStore, TraceStoreWarning
from SimpleLLMFunc.observability.store.writer import delete_runs, shrink

__all__ = [
    "Changes",
    "Dimension",
    "MetricRow",
    "RunDetail",
    "RunPage",
    "RunQuery",
    "RunStatus",
    "RunSummary",
    "StoredTurn",
    "TraceReader",
    "TraceStore",
    "TraceStoreWarning",
    "delete_runs",
    "metrics",
    "shrink",
]
