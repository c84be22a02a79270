"""A function that is asked in another way than by calling it, and is the same in all else."""

from __future__ import annotations

from typing import Generic, TypeVar

from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.run import Mappable

R = TypeVar("R")


class Relayed(Generic[R]):
    """What `Mappable` tells of a function; a subclass asks."""

    def __init__(self, function: Mappable[R]) -> None:
        self._function = function
        self.name = function.name
        self.signature = function.signature
        self.type_hints = function.type_hints
        self.output = function.output
        self.repair: RepairLevel = function.repair
        self.has_tools = function.has_tools
        self.definition = function.definition
        self.bind = function.bind
        self.preview = function.preview
