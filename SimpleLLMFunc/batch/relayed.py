"""A function that is asked in another way than by calling it, and is the same in all else."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.run import Mappable, Preview
from SimpleLLMFunc.base.schemas import OutputSpec

R = TypeVar("R")


class Relayed(Mappable[R], Generic[R]):
    """What `Mappable` tells of a function; a subclass asks."""

    def __init__(self, function: Mappable[R]) -> None:
        self._function = function

    @property
    def name(self) -> str:
        """What it is called in messages and reports."""
        return self._function.name

    @property
    def signature(self) -> inspect.Signature:
        """Its parameters, without `self`."""
        return self._function.signature

    @property
    def type_hints(self) -> Mapping[str, Any]:
        """The resolved annotations of its parameters, by name."""
        return self._function.type_hints

    @property
    def output(self) -> OutputSpec:
        """Its return type, and how an answer is read."""
        return self._function.output

    @property
    def repair(self) -> RepairLevel:
        """How far an answer that is not strict JSON may be read."""
        return self._function.repair

    @property
    def has_tools(self) -> bool:
        """Whether a row may take more than one request by design."""
        return self._function.has_tools

    def definition(self) -> dict[str, Any]:
        """Return all that an answer depends on beside the arguments."""
        return self._function.definition()

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name, defaults applied."""
        return self._function.bind(args, kwargs)

    def preview(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Preview:
        """Return the exact request of a row, without sending it."""
        return self._function.preview(args, kwargs)
