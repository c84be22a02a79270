"""What comes out of the Summary Call."""

from __future__ import annotations

from pydantic import Field

from SimpleLLMFunc.calls.call_data import DataBase


class SummaryOutput(DataBase):
    """The background of a conversation, in at most three sentences."""

    summary: str = Field(description="对问答上下文的总结内容")
