"""The path that pickles of 1.0 name; the class lives in `interface/composite/fallback.py`."""

from __future__ import annotations

from SimpleLLMFunc.interface.composite.fallback import FallbackLLM, _rebuilt  # noqa: F401 - pickles of 1.0 name it too

__all__ = ["FallbackLLM"]
