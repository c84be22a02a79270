"""Everything that the assistant says to its model of its own accord, as files, in both languages."""

import json
from pathlib import Path
from typing import Any

import pytest

from SimpleLLMFunc.assistant.assistant import AIAssistant
from SimpleLLMFunc.assistant.memory.sqlite_memory import SqliteMemory, extract_memories
from SimpleLLMFunc.assistant.search.search import StaticSearch
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.golden import as_text, golden

SAID: dict[str, dict[str, Any]] = {
    "zh": {
        "memory": "用户住在杭州。", "before": "我住在杭州的西湖边",
        "question": "杭州的西湖边现在有什么展览？", "unsure": "我不知道现在有什么展览。",
        "found": {"title": "西湖展览", "url": "https://museum.example/zh", "content": "宋代山水画展，到五月底。"},
        "summary": "共有一个展览。",
    },
    "en": {
        "memory": "The user lives in Bern.", "before": "I live in Bern near the museum",
        "question": "Which exhibition is on in the museum in Bern?", "unsure": "I don't know which exhibition is on.",
        "found": {"title": "Museum", "url": "https://museum.example/en", "content": "Landscapes, until the end of May."},
        "summary": "There is one exhibition.",
    },
}  # fmt: skip


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_golden_prompts(language: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Instructions with an AI-ID, the block of memories, a file, the announcement of a search and its block."""
    numbers = iter(range(1, 100))
    monkeypatch.setattr(
        "SimpleLLMFunc.base.templates.outside_text.secrets.token_hex", lambda _: f"nonce-{next(numbers)}"
    )
    said = SAID[language]
    memory = SqliteMemory(":memory:", language=language)
    await memory.add_memory("u", said["memory"])
    await memory.remember("u", said["before"], "ok", "earlier")
    search = StaticSearch({"answer": said["summary"], "results": [said["found"]]})
    llm = ScriptedLLM(said["unsure"], "…")
    assistant = AIAssistant(llm, search, memory, (), language)
    await assistant.process_query(
        said["question"], user_id="u", ai_id="AI-7", file_data={"name": "notes.txt", "content": b"x"}
    )
    memory.close()
    assistant.close()
    golden(f"assistant_{language}.txt", as_text(llm.requests[-1]))


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_golden_extraction(language: Any) -> None:
    """What memories are drawn with; the instructions are the same for both languages."""
    said = SAID[language]
    preview = extract_memories.with_options(llm_interface=ScriptedLLM()).preview(
        f"user: {said['before']}\nassistant: ok", [said["memory"]]
    )
    golden(f"assistant_extraction_{language}.txt", as_text(preview.messages))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_golden_tools(language: Any) -> None:
    """What the model is told of the built-in tools."""
    definitions = AIAssistant(ScriptedLLM(), language=language).tool_invoker.get_tool_definitions()
    golden(f"assistant_tools_{language}.txt", json.dumps(definitions, ensure_ascii=False, indent=2))
