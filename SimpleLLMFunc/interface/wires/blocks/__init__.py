"""The blocks of the wire ``/v1/messages``: what models of each family take, requests written in blocks, replies read from them; pure."""

from __future__ import annotations

from SimpleLLMFunc.interface.wires.blocks.families import Family, family_of
from SimpleLLMFunc.interface.wires.blocks.reader import BlockReader
from SimpleLLMFunc.interface.wires.blocks.reply import completion_of
from SimpleLLMFunc.interface.wires.blocks.request import build_request

__all__ = ["BlockReader", "Family", "build_request", "completion_of", "family_of"]
__all__ += ["reply"]  # for other rooms
