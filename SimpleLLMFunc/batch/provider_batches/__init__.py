"""The batches of a service: the rows of a map as files of requests, at half the price, sent and fetched by us or by hand."""

from __future__ import annotations

from SimpleLLMFunc.batch.provider_batches.answer_store import AnswerStore, KeptLine
from SimpleLLMFunc.batch.provider_batches.engine import answered_in_batches
from SimpleLLMFunc.batch.provider_batches.lines import (
    MOST_BYTES,
    MOST_LINES,
    BatchFunction,
    RequestId,
    answer_of,
    check_single_shot,
    endpoint_of,
    line_id,
    request_line,
)

__all__ = [
    "MOST_BYTES",
    "MOST_LINES",
    "AnswerStore",
    "BatchFunction",
    "KeptLine",
    "RequestId",
    "answer_of",
    "answered_in_batches",
    "check_single_shot",
    "endpoint_of",
    "line_id",
    "request_line",
]
