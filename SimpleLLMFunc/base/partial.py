"""The path that the pages of 1.0 name; what is in it lives in `base/parsing/partial.py`."""

from SimpleLLMFunc.base.parsing import ItemReader, PartialReader

__all__ = ["ItemReader", "PartialReader"]
