"""`f.improve` as a view of a function, and what it returns. The search is in `SimpleLLMFunc.improve`, above this room."""

from SimpleLLMFunc.llm_decorator.improving.patch import patched_source
from SimpleLLMFunc.llm_decorator.improving.result import Change, Improved, ImproveOptions, improved

__all__ = ["Change", "ImproveOptions", "Improved", "improved"]
__all__ += ["patched_source"]  # for other rooms
