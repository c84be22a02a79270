"""A helper of the steps: the toolkit in wire form."""

from SimpleLLMFunc.llm_decorator.utils.tools import process_tools

__all__ = ["process_tools"]
