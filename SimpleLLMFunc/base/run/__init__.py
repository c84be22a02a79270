"""One run: its state, who observes it, what limits it, how its answers are reviewed, and what is left of it."""

from __future__ import annotations

from SimpleLLMFunc.base.run.abort import Abort, AbortSignal, RunLimits
from SimpleLLMFunc.base.run.guards import Block, Change, Guards
from SimpleLLMFunc.base.run.journaled import (
    JOURNAL,
    Journal,
    JournaledCall,
    JournaledRun,
    KeptReply,
    RunIdentity,
    not_journaled,
)
from SimpleLLMFunc.base.run.mappable import Answer, Mappable
from SimpleLLMFunc.base.run.observer import current_observer
from SimpleLLMFunc.base.run.refusals import downgrades_of, json_actions, refused_by, refuses_mode, remember_refusal
from SimpleLLMFunc.base.run.repetition import Repetition
from SimpleLLMFunc.base.run.result import KEY_VARIABLE, AnswerSource, Preview, Result, curl_command
from SimpleLLMFunc.base.run.review import (
    AnswerReview,
    AnyReview,
    EmptyReview,
    check_quotes,
    read_answer,
    violations_text,
)
from SimpleLLMFunc.base.run.run import Run, generate_trace_id
from SimpleLLMFunc.base.run.shown import Shown
from SimpleLLMFunc.base.run.sinks import EventSink, watching, watching_everywhere
from SimpleLLMFunc.base.run.streamed_reply import QuestionCharge, StreamedReply

__all__ = [
    "JOURNAL", "KEY_VARIABLE", "Abort", "AbortSignal", "Answer", "AnswerReview", "AnswerSource", "AnyReview",
    "Block", "Change", "EmptyReview", "EventSink", "Guards", "Journal", "JournaledCall", "JournaledRun",
    "KeptReply", "Mappable", "Preview", "QuestionCharge", "Repetition", "Result", "Run", "RunIdentity",
    "RunLimits", "Shown", "StreamedReply", "check_quotes", "curl_command", "current_observer", "downgrades_of",
    "generate_trace_id", "json_actions", "not_journaled", "read_answer", "refused_by", "refuses_mode",
    "remember_refusal", "violations_text", "watching", "watching_everywhere",
]  # fmt: skip
