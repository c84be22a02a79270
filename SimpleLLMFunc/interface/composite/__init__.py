"""Models made of models: the next one when one is down (`FallbackLLM`), answers kept in a file (`CachedLLM`)."""

from __future__ import annotations

from SimpleLLMFunc.interface.composite.cache import CachedLLM, cached_llm_again
from SimpleLLMFunc.interface.composite.fallback import FallbackLLM, fallback_llm_again
from SimpleLLMFunc.interface.composite.in_front import ModelInFront
from SimpleLLMFunc.interface.composite.question import current_sample, sample_scope

__all__ = [
    "CachedLLM", "FallbackLLM", "ModelInFront", "cached_llm_again", "current_sample", "fallback_llm_again",
    "sample_scope",
]  # fmt: skip
