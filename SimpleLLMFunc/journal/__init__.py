"""Runs that cannot be lost: a block keeps each reply and each result of a tool before it is used, and goes on after a crash."""

from SimpleLLMFunc.errors import OutcomeUnknown, RunPaused
from SimpleLLMFunc.journal.durable import answer, durable, forget, pause_run, paused, prune, told_answer
from SimpleLLMFunc.journal.scopes import RUN_AGAIN

__all__ = ["RUN_AGAIN", "OutcomeUnknown", "RunPaused", "answer", "durable", "forget", "pause_run", "paused", "prune"]
__all__ += ["told_answer"]  # for other rooms
