"""The path that pickles of 1.0 name; the class lives in `interface/attempts/token_bucket.py`."""

from SimpleLLMFunc.interface.attempts import TokenBucket

__all__ = ["TokenBucket"]
