"""What the steps need and is no step: the toolkit made ready."""

from SimpleLLMFunc.llm_decorator.utils.tools import process_tools

__all__ = ["process_tools"]
