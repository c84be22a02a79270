"""What goes into the LLM Call, and what comes out."""

from __future__ import annotations

from pydantic import Field

from SimpleLLMFunc.calls.call_data import DataBase


class LLMInput(DataBase):
    """The messages that the model is shown: history, system, user, each ``{"role": …, "content": …}``."""

    message: list[dict[str, str]] = Field(description="输入给大模型的消息列表")


class LLMOutput(DataBase):
    """Nothing: what the model says comes as TEXT chunks."""
