"""The path that pickles of 1.0 name; the class lives in `interface/local/local_model.py`."""

from SimpleLLMFunc.interface.local import LocalModel

__all__ = ["LocalModel"]
