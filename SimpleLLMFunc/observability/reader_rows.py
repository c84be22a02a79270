"""The path that the pages of 1.0 name; what is in it lives in `observability/store/rows.py`."""

from SimpleLLMFunc.observability.store.rows import *  # noqa: F403
