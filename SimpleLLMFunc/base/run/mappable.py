"""What a map over rows needs to know of a function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from SimpleLLMFunc.base.parsing import OutputMode, RepairLevel
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.type import Usage

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Answer(Generic[R_co]):
    """What the model made of one row.

    Attributes:
        value: of the function's return type.
        text: the accepted answer as the model wrote it; with `mode` it can be read again.
        mode: how it was asked for.
        usage: of all attempts.
        tries: HTTP requests of the accepted answer; more than one says that the service refused some.
        encoded: the value as a checkpoint keeps it, where another process has written it.
    """

    value: R_co
    text: str
    mode: OutputMode
    usage: Usage
    tries: int = 1
    encoded: bytes | None = None


class Mappable(Protocol[R_co]):
    """A function that is asked once for each row.

    Attributes:
        name: what it is called in messages and reports.
        signature: its parameters, without `self`.
        type_hints: the resolved annotations of its parameters, by name.
        repair: how far an answer that is not strict JSON may be read.
    """

    name: str
    signature: inspect.Signature
    type_hints: Mapping[str, Any]
    repair: RepairLevel

    @property
    def output(self) -> OutputSpec:
        """Its return type, and how an answer is read."""
        ...

    def definition(self) -> dict[str, Any]:
        """Return all that an answer depends on besides the arguments, by name, as plain data.

        The names are "model", "params", "prompt", "types" and "tools".

        Raises:
            ConfigError: there is no model to ask.
        """
        ...

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name, defaults applied.

        Raises:
            SignatureError: they do not fit.
        """
        ...

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R_co]:
        """Ask the model for one row.

        Raises:
            SimpleLLMFuncError: what the run raises, with the facts of the run.
        """
        ...
