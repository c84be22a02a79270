"""What the package offers: the contract's names, and what the guide uses."""

from __future__ import annotations

import inspect

import SimpleLLMFunc
from SimpleLLMFunc import assistant
from SimpleLLMFunc.assistant import AIAssistant, ToolInvoker


def test_everything_listed_is_there() -> None:
    wanted = {"AIAssistant", "ToolInvoker", "ContextBuilder", "ChatMemoryIntegration", "LLMCaller", "MemoryStore",
              "SearchClient", "SqliteMemory", "TavilySearch", "WikipediaSearch", "StaticSearch", "is_uncertain",
              "add_phrases", "explain", "builtin_tools"}  # fmt: skip
    assert wanted <= set(assistant.__all__)
    assert all(hasattr(assistant, name) for name in assistant.__all__)
    assert SimpleLLMFunc.AIAssistant is AIAssistant
    assert SimpleLLMFunc.ToolInvoker is ToolInvoker


def test_the_signatures_are_the_contracts() -> None:
    made = inspect.signature(AIAssistant).parameters
    assert list(made)[:5] == ["llm", "search", "memory", "tools", "language"]
    defaults = {name: made[name].default for name in ("memory_timeout", "max_tool_rounds", "detector", "language")}
    assert defaults == {"memory_timeout": 2.0, "max_tool_rounds": 5, "detector": None, "language": "zh"}
    for method in (AIAssistant.process_query, AIAssistant.stream_query):
        _, *asked = inspect.signature(method).parameters.values()
        assert [each.name for each in asked] == [
            "user_input", "session_id", "user_id", "ai_id", "image_data", "file_data",
        ]  # fmt: skip
        assert all(each.default is None for each in asked[1:])
    registered = list(inspect.signature(ToolInvoker.register_tool).parameters)
    assert registered == ["self", "name", "func", "description", "parameters"]
    assert inspect.iscoroutinefunction(AIAssistant.process_query)
