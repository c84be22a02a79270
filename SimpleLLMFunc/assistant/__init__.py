"""A dialogue partner with tools, memory, and a search where the model is unsure."""

from SimpleLLMFunc.assistant.assistant import AIAssistant
from SimpleLLMFunc.assistant.builtin import builtin_tools
from SimpleLLMFunc.assistant.caller import LLMCaller, StreamItem, ToolInvoker
from SimpleLLMFunc.assistant.context import ContextBuilder, new_session_id
from SimpleLLMFunc.assistant.memory import ChatMemoryIntegration, Memory, MemoryStore, SqliteMemory
from SimpleLLMFunc.assistant.search.search import SearchClient, StaticSearch
from SimpleLLMFunc.assistant.search.tavily_search import TavilySearch
from SimpleLLMFunc.assistant.search.uncertainty import Phrasebook, add_phrases, explain, is_uncertain
from SimpleLLMFunc.assistant.search.wikipedia_search import WikipediaSearch

__all__ = [
    "AIAssistant", "ChatMemoryIntegration", "ContextBuilder", "LLMCaller", "Memory", "MemoryStore", "Phrasebook",
    "SearchClient", "SqliteMemory", "StaticSearch", "TavilySearch", "ToolInvoker", "WikipediaSearch", "add_phrases",
    "builtin_tools", "explain", "is_uncertain",
]  # fmt: skip
__all__ += ["StreamItem", "new_session_id"]  # for other rooms
