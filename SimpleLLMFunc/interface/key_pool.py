"""The path that pickles of 1.0 name; the class lives in `interface/attempts/key_pool.py`."""

from __future__ import annotations

from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool, _without_keys  # noqa: F401 - pickles of 1.0 name it too

__all__ = ["APIKeyPool"]
