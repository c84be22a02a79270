"""The path that pickles of 1.0 name; the class lives in `interface/composite/cache.py`."""

from __future__ import annotations

from SimpleLLMFunc.interface.composite.cache import CachedLLM, _rebuilt  # noqa: F401 - pickles of 1.0 name it too

__all__ = ["CachedLLM"]
