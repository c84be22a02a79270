"""What a model may call: tools, their schemas, and a registry of them."""

from SimpleLLMFunc.tools.context import CALLER, Caller, ModelRetry, NotConfirmed, ToolContext
from SimpleLLMFunc.tools.registry import ToolRegistry
from SimpleLLMFunc.tools.running import AnsweredInstead, Confirm, NobodyToAsk, in_thread, is_agreed, run_callable
from SimpleLLMFunc.tools.schemas import ArgumentsError
from SimpleLLMFunc.tools.search import FIND_TOOLS, Embed, TextIndex, ToolSearch, best_of
from SimpleLLMFunc.tools.tool import FunctionTool, Tool, as_tool, tool
from SimpleLLMFunc.tools.wire import read_arguments, wire_name, wire_names

__all__ = ["ArgumentsError", "FunctionTool", "ModelRetry", "Tool", "ToolContext", "ToolRegistry", "as_tool", "tool"]
# For other rooms.
__all__ += [
    "CALLER", "FIND_TOOLS", "AnsweredInstead", "Caller", "Confirm", "Embed", "NobodyToAsk", "NotConfirmed", "TextIndex",
    "ToolSearch", "best_of", "in_thread", "is_agreed", "mcp", "read_arguments", "run_callable", "schemas",
    "wire_name", "wire_names",
]  # fmt: skip
