"""The trace store: every run in one SQLite file, written by a thread so that no call waits; and its readers."""

from SimpleLLMFunc.observability.store.content import is_omitted
from SimpleLLMFunc.observability.store.export import RunFormat, exported_runs
from SimpleLLMFunc.observability.store.marks import mark_run
from SimpleLLMFunc.observability.store.metrics import Dimension, MetricRow, metrics
from SimpleLLMFunc.observability.store.query import place_of
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import (
    Changes,
    Conversation,
    RunDetail,
    RunOrder,
    RunPage,
    RunQuery,
    RunStatus,
    RunSummary,
    StoredTurn,
    Thumb,
)
from SimpleLLMFunc.observability.store.trace_store import TraceStore, TraceStoreWarning
from SimpleLLMFunc.observability.store.writer import delete_runs, shrink

__all__ = [
    "Changes", "Conversation", "Dimension", "MetricRow", "RunDetail", "RunFormat", "RunOrder", "RunPage", "RunQuery",
    "RunStatus", "RunSummary", "StoredTurn", "Thumb", "TraceReader", "TraceStore", "TraceStoreWarning", "delete_runs",
    "exported_runs", "is_omitted", "mark_run", "metrics", "place_of", "rows", "shrink",
]  # fmt: skip
