"""The path that pickles of 1.0 name; what is in it lives in `interface/attempts/key_pool.py`."""

from SimpleLLMFunc.interface.attempts import APIKeyPool
from SimpleLLMFunc.interface.attempts import key_pool_again as _without_keys

__all__ = ["APIKeyPool", "_without_keys"]
