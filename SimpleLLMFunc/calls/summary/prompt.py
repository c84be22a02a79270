"""The prompt of the Summary Call, in both languages, as Jinja2 templates."""

from __future__ import annotations

from typing import Final

from SimpleLLMFunc.calls.call_data import prompt_files

SUMMARY_PROMPT: Final = prompt_files("SimpleLLMFunc.calls.summary", "summary")
"""`conversation` is a list of messages with `role` and `content`, `facts` a list of texts."""
