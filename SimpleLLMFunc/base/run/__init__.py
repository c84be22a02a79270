"""One run: its state, who observes it, what limits it, how its answers are reviewed, and what is left of it."""

from SimpleLLMFunc.base.run.abort import Abort, AbortSignal, RunLimits
from SimpleLLMFunc.base.run.guards import Block, Change, Guards
from SimpleLLMFunc.base.run.journaled import (
    JOURNAL,
    Journal,
    JournaledCall,
    KeptReply,
    RunIdentity,
    kept_once,
    not_journaled,
)
from SimpleLLMFunc.base.run.mappable import Answer, Mappable
from SimpleLLMFunc.base.run.refusals import downgrades_of, json_actions, refused_by, refuses_mode, remember_refusal
from SimpleLLMFunc.base.run.result import KEY_VARIABLE, AnswerSource, Preview, Result, Shown, curl_command
from SimpleLLMFunc.base.run.review import AnswerReview, EmptyReview, check_quotes, read_answer, read_off_loop
from SimpleLLMFunc.base.run.run import Run, generate_trace_id
from SimpleLLMFunc.base.run.sinks import EventSink, is_sink, watching, watching_everywhere

__all__ = [
    "JOURNAL", "KEY_VARIABLE", "Abort", "AbortSignal", "Answer", "AnswerReview", "AnswerSource", "Block",
    "Change", "EmptyReview", "EventSink", "Guards", "Journal", "JournaledCall", "KeptReply", "Mappable",
    "Preview", "Result", "Run", "RunIdentity", "RunLimits", "Shown", "check_quotes", "curl_command",
    "downgrades_of", "generate_trace_id", "is_sink", "journaled", "json_actions", "kept_once", "not_journaled", "observer",
    "read_answer", "read_off_loop", "refused_by", "refuses_mode", "remember_refusal", "repetition", "review",
    "streamed_reply", "watching", "watching_everywhere",
]  # fmt: skip
