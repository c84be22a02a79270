"""The path that the pages of 1.0 name; what is in it lives in `runtime/sync.py`."""

from SimpleLLMFunc.runtime import iterate_sync, run_sync

__all__ = ["iterate_sync", "run_sync"]
