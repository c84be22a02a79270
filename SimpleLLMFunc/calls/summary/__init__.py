"""The Summary Call of note 004: what happened so far, in three sentences."""

from SimpleLLMFunc.calls.summary.schema import SummaryOutput
from SimpleLLMFunc.calls.summary.summary import Summary, summarize

__all__ = ["Summary", "SummaryOutput", "summarize"]
