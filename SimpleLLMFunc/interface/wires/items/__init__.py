"""The items of the wire ``/v1/responses``: what models of each family take, requests written in items, replies read from them; pure."""

from __future__ import annotations

from SimpleLLMFunc.interface.wires.items.families import OpenAIFamily, effort_of, leave_out_sampling, openai_family
from SimpleLLMFunc.interface.wires.items.reader import ItemReader
from SimpleLLMFunc.interface.wires.items.reply import completion_of, problem_of
from SimpleLLMFunc.interface.wires.items.request import build_request

__all__ = [
    "ItemReader",
    "OpenAIFamily",
    "build_request",
    "completion_of",
    "effort_of",
    "leave_out_sampling",
    "openai_family",
    "problem_of",
]
