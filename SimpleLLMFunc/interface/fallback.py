"""The path that pickles of 1.0 name; what is in it lives in `interface/composite/fallback.py`."""

from SimpleLLMFunc.interface.composite import FallbackLLM
from SimpleLLMFunc.interface.composite import fallback_llm_again as _rebuilt

__all__ = ["FallbackLLM", "_rebuilt"]
