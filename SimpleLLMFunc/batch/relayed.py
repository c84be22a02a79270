"""A function that another object asks: a cluster, a batch, a file."""

from __future__ import annotations

from typing import Generic, TypeVar

from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.run import Mappable

R = TypeVar("R")


class Relayed(Generic[R]):
    """The attributes of `Mappable`, taken from a function; a subclass has `ask`."""

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
