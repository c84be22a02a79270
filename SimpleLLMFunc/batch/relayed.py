"""Asking a function for one row; and a function that another object asks: a cluster, a batch, a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from SimpleLLMFunc.base.metadata import FunctionMetadata
from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.run import Abort, Answer, Mappable, Preview
from SimpleLLMFunc.errors import RunAborted
from SimpleLLMFunc.interface.llm_interface import LLM_Interface

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Decorated(Mappable[R_co], Protocol[R_co]):
    """A function that is asked elsewhere: its requests can be written into a file, and it can be pickled.

    Attributes:
        abort: what may end its runs.
        has_tools: a row may take more than one request by design.
    """

    abort: Abort | None
    has_tools: bool

    def preview(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Preview:
        """Return the exact request of a row, without sending it."""
        ...

    @property
    def llm(self) -> LLM_Interface:
        """The model that it asks.

        Raises:
            ConfigError: no model is set.
        """
        ...

    @property
    def metadata(self) -> FunctionMetadata:
        """Its metadata for sinks and traces."""
        ...

    @property
    def reducers(self) -> Mapping[type, Any]:
        """How what belongs to it is pickled, as in `copyreg`."""
        ...


async def asked(
    function: Mappable[R], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Answer[R] | None, Exception | None]:
    """Ask for one row, and return its answer or its error."""
    try:
        return await function.ask(args, kwargs), None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return None, RunAborted("a task inside it was cancelled")
    except Exception as error:  # noqa: BLE001 - one row's failure is its value
        return None, error


class Relayed(Generic[R]):
    """The attributes of `Mappable`, taken from a function; a subclass has `ask`."""

    def __init__(self, function: Decorated[R]) -> None:
        self._function = function
        self.name = function.name
        self.signature = function.signature
        self.type_hints = function.type_hints
        self.output = function.output
        self.repair: RepairLevel = function.repair
        self.definition = function.definition
        self.bind = function.bind
