"""What a model may call: tools, their schemas, and a registry of them."""

from SimpleLLMFunc.tools.arguments import read_arguments
from SimpleLLMFunc.tools.confirming import AnsweredInstead, Confirm, NobodyToAsk, is_agreed
from SimpleLLMFunc.tools.context import CALLER, Caller, ModelRetry, NotConfirmed, ToolContext
from SimpleLLMFunc.tools.names import wire_name, wire_names
from SimpleLLMFunc.tools.registry import ToolRegistry
from SimpleLLMFunc.tools.running import in_thread, run_callable
from SimpleLLMFunc.tools.schemas import ArgumentsError
from SimpleLLMFunc.tools.search import ToolSearch
from SimpleLLMFunc.tools.similar_texts import Embed, TextIndex, best_of
from SimpleLLMFunc.tools.tool import FunctionTool, Tool, as_tool, tool

__all__ = ["ArgumentsError", "FunctionTool", "ModelRetry", "Tool", "ToolContext", "ToolRegistry", "as_tool", "tool"]
# For other rooms.
__all__ += [
    "CALLER", "AnsweredInstead", "Caller", "Confirm", "Embed", "NobodyToAsk", "NotConfirmed", "TextIndex",
    "ToolSearch", "best_of", "in_thread", "is_agreed", "mcp", "read_arguments", "run_callable", "schemas",
    "wire_name", "wire_names",
]  # fmt: skip
