"""The parts of the wire ``generateContent``: what models of each family take, requests written in parts, replies read from them; pure."""

from __future__ import annotations

from SimpleLLMFunc.interface.wires.parts.families import GeminiFamily, gemini_family
from SimpleLLMFunc.interface.wires.parts.reader import PartReader
from SimpleLLMFunc.interface.wires.parts.reply import completion_of
from SimpleLLMFunc.interface.wires.parts.request import build_request

__all__ = ["GeminiFamily", "PartReader", "build_request", "completion_of", "gemini_family"]
__all__ += ["reply"]  # for other rooms
