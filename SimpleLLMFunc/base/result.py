"""The path that pickles of 1.0 name; the classes live in `base/run/result.py`."""

from SimpleLLMFunc.base.events import Attempt
from SimpleLLMFunc.base.parsing import Parsed
from SimpleLLMFunc.base.run import Preview, Result

__all__ = ["Attempt", "Parsed", "Preview", "Result"]
