"""What a model may call: tools, their schemas, and a registry of them."""

from SimpleLLMFunc.tools.context import ModelRetry, ToolContext
from SimpleLLMFunc.tools.registry import ToolRegistry
from SimpleLLMFunc.tools.schemas.callable_schema import ArgumentsError
from SimpleLLMFunc.tools.tool import FunctionTool, Tool, as_tool, tool

__all__ = [
    "ArgumentsError",
    "FunctionTool",
    "ModelRetry",
    "Tool",
    "ToolContext",
    "ToolRegistry",
    "as_tool",
    "tool",
]
