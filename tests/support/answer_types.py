"""Types that an answer may have, for tests of what is read, told and asked for."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field
from typing_extensions import NotRequired, TypedDict

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Total(TypedDict):
    a: int
    b: NotRequired[str]


class Pair(NamedTuple):
    x: int
    y: str = "d"


@dataclasses.dataclass
class Data:
    n: int
    tags: list[str] = dataclasses.field(default_factory=list)


class Box(BaseModel, Generic[T]):
    content: T


class Tree(BaseModel):
    label: str
    kids: list[Tree] = []


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    kind: Literal["square"]
    side: float
    inside: list[Shape] = []


Shape = Annotated[Circle | Square, Field(discriminator="kind")]
