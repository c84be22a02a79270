"""The path that pickles of 1.0 name; the class lives in `interface/local/local_model.py`."""

from __future__ import annotations

from SimpleLLMFunc.interface.local import LocalModel

__all__ = ["LocalModel"]
