"""What reading an answer gives, and how far it may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

R = TypeVar("R")

OutputMode: TypeAlias = Literal["auto", "native", "tool", "prompt", "text", "choice"]
"""How a typed answer is asked for; "text" is what "auto" chooses for a function that returns `str`, "choice" wants one label."""

RepairLevel: TypeAlias = Literal["off", "syntax", "coerce"]
"""How far an answer that is not strict JSON may be read."""

Repair: TypeAlias = tuple[str, str]
"""``(path, what was done)``, such as ``("items[2].price", "number taken from '3 EUR'")``."""


@dataclass(frozen=True, slots=True)
class Parsed(Generic[R]):
    """A value read from text.

    Attributes:
        value: of the wanted type.
        repairs: a line for every step beyond strict JSON, in the order they were taken; empty when strict JSON fitted.
        thinking: the reasons that stood before the value, where they were asked for.
    """

    value: R
    repairs: list[Repair] = field(default_factory=list)
    thinking: str = ""
