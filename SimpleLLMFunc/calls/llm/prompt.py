"""The prompts of the LLM Call, in both languages, as Jinja2 templates."""

from __future__ import annotations

from typing import Final

from SimpleLLMFunc.calls.call_data import LanguageType, prompt_files

LLM_CONTEXT_PROMPT: Final = prompt_files("SimpleLLMFunc.calls.llm", "context")
"""What the AI has thought (`reasoning`) and what earlier steps have put out (`context_data`)."""

LLM_DEFAULT_PROMPT: Final = prompt_files("SimpleLLMFunc.calls.llm", "default")
"""The default of `user_prompt`: `time`, `question` and `context` (the rendered `LLM_CONTEXT_PROMPT`)."""

NO_CONTEXT: Final = {LanguageType.CHINESE: "无背景信息。", LanguageType.ENGLISH: "No background information."}
"""What stands for `context` where nothing was thought and no step has put out anything."""
