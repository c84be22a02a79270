"""What a Slot is given, and what it leaves."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from SimpleLLMFunc.calls.call_data import DataBase


class SlotInput(DataBase):
    """What is to be filled in; empty where nothing is missing."""

    remaining_schema: dict[str, Any] = Field(default={}, description="剩余需要填充的Schema")


class SlotOutput(DataBase):
    """What was filled in, every value valid, and the schema of what is still missing, keyed by JSON Pointer.

    A missing item in the middle of a list is null in the data.
    """

    slot_data: dict[str, Any] = Field(default={}, description="填充后的数据")
    remaining_schema: dict[str, Any] = Field(default={}, description="剩余需要填充的Schema，为空表示填充完成")
