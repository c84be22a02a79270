"""One run: its state and its record, who observes it, what limits it, how its answers are reviewed, and what is left of it."""

from __future__ import annotations

from SimpleLLMFunc.base.run.abort import Abort, AbortSignal, Limits
from SimpleLLMFunc.base.run.mappable import Answer, Mappable
from SimpleLLMFunc.base.run.observers import EventSink, watching, watching_everywhere
from SimpleLLMFunc.base.run.record import RunRecord
from SimpleLLMFunc.base.run.refusals import REFUSAL_WORDS, json_actions, names_refusal, refused_by, remember_refusal
from SimpleLLMFunc.base.run.result import AnswerSource, Preview, Result
from SimpleLLMFunc.base.run.review import LARGE_ANSWER, AnswerReview, EmptyReview, read_answer, violations_text
from SimpleLLMFunc.base.run.run import Recording, generate_trace_id
from SimpleLLMFunc.base.run.shown import Shown
from SimpleLLMFunc.base.run.streamed_reply import Arrived, Settled
from SimpleLLMFunc.base.run.watch import current_watch

__all__ = [
    "LARGE_ANSWER",
    "REFUSAL_WORDS",
    "Abort",
    "AbortSignal",
    "Answer",
    "AnswerReview",
    "AnswerSource",
    "Arrived",
    "EmptyReview",
    "EventSink",
    "Limits",
    "Mappable",
    "Preview",
    "Recording",
    "Result",
    "RunRecord",
    "Settled",
    "Shown",
    "current_watch",
    "generate_trace_id",
    "json_actions",
    "names_refusal",
    "read_answer",
    "refused_by",
    "remember_refusal",
    "violations_text",
    "watching",
    "watching_everywhere",
]
