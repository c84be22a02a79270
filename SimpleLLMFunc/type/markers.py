"""What a return type can ask for beyond its shape: `Confident`, `Quoted`; and how plain code passes a call on."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, Literal, Self, TypeVar, get_args, get_origin

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from SimpleLLMFunc.errors import SignatureError

T = TypeVar("T")
S = TypeVar("S", bound=str)
D = TypeVar("D")

QUOTED: Final = "SimpleLLMFunc.quoted"
"""Marks the core schema of a quote, in its metadata."""

_LOCATED: Final = "\ue0f1"
"""Begins a quote that was written down with its place: a private character, which no text has a meaning for."""


# --- Confident ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Confident(Generic[T]):
    """A value, and how sure it is: by the log-probabilities of one answer, or by the votes of several.

    A function annotated ``-> Confident[T]`` asks once where `T` is a choice (`bool`, `Literal`, Enum) and the model gives
    log-probabilities. Else it asks `votes` times and decides field by field.

    Attributes:
        value: the most probable label; of votes what most of the answers say, for an object field by field.
        agreement: the share of all answers that were asked for which say so, by field (``"lines[0].price"``; ``""``
            where the value has no fields), from 0 to 1. An answer that could not be used agrees with no other. Of one
            answer: the probability of `value`.
        abstained: some field has less agreement than `min_agreement`: do not rely on `value`.
        votes: the answers that could be used, in the order they were asked for.
        asked: how many answers were asked for.
        probabilities: of a choice: the probability of each value, together 1; of votes their shares. Else empty.
        escalated: the votes are those of the stronger model, `escalate_to`.
    """

    value: T
    agreement: dict[str, float] = field(default_factory=dict)
    abstained: bool = False
    votes: tuple[T, ...] = ()
    asked: int = 0
    escalated: bool = False
    probabilities: dict[Any, float] = field(default_factory=dict)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A pickle of 1.0 has no probabilities.
        self.__dict__.update({"probabilities": {}, **state})

    def value_or(self, default: D) -> T | D:
        """Return the value, or `default` where the answers did not agree."""
        return default if self.abstained else self.value


def confident_type(return_type: Any) -> tuple[Any] | None:
    """Return the `T` of ``Confident[T]`` in a tuple; None for any other type.

    Raises:
        SignatureError: `Confident` alone.
    """
    if return_type is Confident:
        raise SignatureError("Confident alone does not say of what. Write Confident[int], Confident[Grade] and so on.")
    return (get_args(return_type)[0],) if get_origin(return_type) is Confident else None


# --- Quoted ---------------------------------------------------------------------------------------------------


class Quoted(str, Generic[S]):  # noqa: SLOT000 - its place is set later, and Generic has a __dict__ anyway
    """A text copied from an argument, and where it stands there: ``Quoted[str]``.

    It is a `str`. In an answer of a decorated function the place is set: a quote that is in no argument is sent
    back to the model. White space, the width of characters and the kind of quote marks do not count; letters do.
    ``arguments[quote.argument][quote.start:quote.end]`` is how the argument itself has it, for an argument that is text.

    Attributes:
        argument: the parameter it was found in; empty before it was looked for.
        path: the text in that parameter: ``"report"``, ``"pages[2].body"``.
        start, end: its place in that text, in characters; the first place where there are several.
    """

    argument: str
    path: str
    start: int
    end: int

    def __new__(cls, text: str = "") -> Self:
        """Return a quote that was not looked for yet."""
        quote = super().__new__(cls, text)
        quote.argument = quote.path = ""
        quote.start = quote.end = -1
        return quote

    def locate(self, argument: str, path: str, start: int, end: int) -> None:
        """Set the place."""
        self.argument, self.path, self.start, self.end = argument, path, start, end

    @property
    def is_located(self) -> bool:
        """Whether its place is known."""
        return self.start >= 0

    def __repr__(self) -> str:
        text = super().__repr__()
        return f"Quoted({text}, {self.path}[{self.start}:{self.end}])" if self.is_located else f"Quoted({text})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read and write it as the text it is."""
        inner = handler.generate_schema((get_args(source) or (str,))[0])
        if inner["type"] != "str":
            raise SignatureError("Quoted takes str, or str with constraints: Quoted[str].")
        return core_schema.no_info_after_validator_function(
            _read,
            inner,
            metadata={QUOTED: True},
            serialization=core_schema.plain_serializer_function_ser_schema(
                _written, info_arg=True, return_schema=core_schema.str_schema()
            ),
        )


def _read(text: str) -> Quoted[Any]:
    if isinstance(text, Quoted):
        return text
    if text.startswith(_LOCATED):
        with suppress(ValueError, TypeError):
            own, argument, path, start, end = json.loads(text[1:])
            quote = Quoted[Any](own)
            quote.locate(str(argument), str(path), int(start), int(end))
            return quote
    return Quoted(text)


def _written(quote: Any, info: core_schema.SerializationInfo) -> str:
    # Round trips (a checkpoint) give the same value again, its place too.
    if info.round_trip and isinstance(quote, Quoted) and quote.is_located:
        return _LOCATED + json.dumps([str(quote), quote.argument, quote.path, quote.start, quote.end])
    return str(quote)


# --- plain code next to a model ----------------------------------------------------------------------------------


class Abstention(Enum):
    """The type of `ABSTAIN`."""

    ABSTAIN = "abstain"

    def __repr__(self) -> str:
        return self.name


ABSTAIN: Final[Literal[Abstention.ABSTAIN]] = Abstention.ABSTAIN
"""What the plain function given as `first=` returns to leave the call to the model."""


class Abstain(Exception):
    """Raised in the plain function given as `first=` to leave the call to the model, as `ABSTAIN` does."""
