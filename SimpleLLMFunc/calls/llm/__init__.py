"""The LLM Call of note 003: a template is filled, the model is asked, its text streams out."""

from SimpleLLMFunc.calls.llm.llm import LLM
from SimpleLLMFunc.calls.llm.schema import LLMInput, LLMOutput

__all__ = ["LLM", "LLMInput", "LLMOutput"]
