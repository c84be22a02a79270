"""What an assistant is given is checked when it is made, not at the first question that needs it."""

from __future__ import annotations

from typing import Any

import pytest

from SimpleLLMFunc.assistant.assistant import AIAssistant
from SimpleLLMFunc.assistant.memory.sqlite_memory import SqliteMemory
from SimpleLLMFunc.assistant.search.wikipedia_search import WikipediaSearch
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.testing import ScriptedLLM


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"llm": "gpt-5-mini"}, "llm= is a model"), ({"language": ["zh"]}, 'language= is "zh" or "en", not list'),
        ({"language": "fr"}, "'fr'"), ({"search": "wikipedia"}, "search="), ({"search": object()}, "search="),
        ({"search": WikipediaSearch}, "search="), ({"memory": SqliteMemory}, "not the class SqliteMemory"),
        ({"memory": object()}, "recall, remember and delete_user"), ({"tools": "weather"}, "tools="),
        ({"tools": 3}, "tools="), ({"detector": "Model"}, "detector="),
        ({"toolkit_confirm": True}, "toolkit_confirm="), ({"system_prompt": 3}, "system_prompt="),
        ({"max_tool_rounds": -1}, "max_tool_rounds="), ({"max_tool_rounds": "5"}, "max_tool_rounds="),
        ({"max_tool_rounds": True}, "max_tool_rounds="), ({"max_sessions": 0}, "max_sessions="),
        ({"session_seconds": 0}, "session_seconds="), ({"memory_timeout": float("nan")}, "memory_timeout="),
        ({"memory_timeout": "2"}, "memory_timeout="), ({"search_timeout": -1}, "search_timeout="),
        ({"deadline": 0}, "deadline="), ({"deadline": "x"}, "deadline="),
        ({"temprature": 0}, "Did you mean temperature"), ({"model": "x"}, "llm="),
        ({"extra_body": {"model": "x"}}, "model in extra_body"), ({"stream": True}, "stream_query"),
        ({"messages": [], "response_format": {}}, "no option messages.*no option response_format"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        AIAssistant(**{"llm": ScriptedLLM(), "tools": (), **options})


async def test_what_can_be_used() -> None:
    llm = ScriptedLLM("a")
    assistant = AIAssistant(
        llm, tools=(), max_tool_rounds=0, deadline=30, memory_timeout=float("inf"), system_prompt="", temperature=0
    )
    assert (await assistant.process_query("x"))["response"] == "a"
    assert [message["role"] for message in llm.requests[0]] == ["user"]
