"""The LLM Call of note 003."""

from __future__ import annotations

from SimpleLLMFunc.calls.llm.llm import LLM
from SimpleLLMFunc.calls.llm.schema import LLMInput, LLMOutput

__all__ = ["LLM", "LLMInput", "LLMOutput"]
