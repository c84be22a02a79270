"""The path that pickles of 1.0 name; what is in it lives in `interface/composite/cache.py`."""

from SimpleLLMFunc.interface.composite import CachedLLM
from SimpleLLMFunc.interface.composite import cached_llm_again as _rebuilt

__all__ = ["CachedLLM", "_rebuilt"]
