"""The answer of a typed call: a nested model with six fields; and its schema, for those who send it by hand."""

from __future__ import annotations

import enum
from typing import Any

from pydantic import BaseModel, ConfigDict


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    model_config = ConfigDict(extra="forbid")

    street: str
    city: str


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int
    customer: str
    color: Color
    total: float
    address: Address
    tags: list[str]


RESPONSE_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "Order", "strict": True, "schema": Order.model_json_schema()},
}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "description": "Look up a ticket.",
            "parameters": {
                "type": "object",
                "properties": {"token": {"type": "string", "description": "the name of the ticket."}},
                "required": ["token"],
                "additionalProperties": False,
            },
        },
    }
]
