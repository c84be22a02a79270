"""The corpus: what models really write, with the value it means, or the refusal it deserves.

Every file in `corpus/` holds one JSON object a line: `type` (a key of `TYPES`), `text`, and either `value` (as the
type writes itself as JSON) or `refused`. A new case is a new line; a new type is a new entry of `TYPES`.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import uuid
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from SimpleLLMFunc.base.post_process import parse_text
from SimpleLLMFunc.errors import ResponseParseError
from tests.support.answer_types import Shape


class Sentiment(enum.Enum):
    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"


class Status(enum.Enum):
    OPEN = "open"
    IN_PROGRESS = "in-progress"
    DONE = "done"


class Person(BaseModel):
    name: str
    age: int
    email: str | None = None


class Wrapper(BaseModel):
    person: Person


class Review(BaseModel):
    sentiment: Sentiment
    score: float = Field(ge=0, le=10)
    summary: str


class Event(BaseModel):
    title: str
    day: datetime.date
    start: datetime.datetime | None = None
    tags: list[str]


class Line(BaseModel):
    item: str
    quantity: int
    price: Decimal


class Invoice(BaseModel):
    number: str
    total: Decimal
    currency: Literal["EUR", "USD"]
    lines: list[Line]
    paid: bool


class Recipe(BaseModel):
    title: str
    ingredients: list[str]
    minutes: int
    vegan: bool


class Product(BaseModel):
    name: str = Field(alias="productName")
    price: float = Field(alias="unitPrice")


class Cat(BaseModel):
    name: str
    meows: bool


class Dog(BaseModel):
    name: str
    barks: bool


class Movie(TypedDict):
    title: str
    year: int


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Config:
    host: str
    port: int
    debug: bool = False


class Tree(BaseModel):
    label: str
    children: list[Tree] = []


NAMED = (
    int, float, bool, Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID, Sentiment,
    Status, Person, Wrapper, Review, Event, Invoice, Recipe, Product, Movie, Point, Config, Tree,
)  # fmt: skip
WRITTEN = (list[int], list[str], list[bool], set[int], int | None, str | None, str | float, int | list[int])
TYPES: dict[str, Any] = {
    **{wanted.__name__: wanted for wanted in NAMED}, **{str(wanted): wanted for wanted in WRITTEN}, "Any": Any,
    "Iterable[int]": Iterable[int], "dict[str,int]": dict[str, int], "dict[str,Any]": dict[str, Any],
    "list[Sentiment]": list[Sentiment], "Place": Literal["café", "restaurant", "high", "very high"],
    "Grade": Literal["A", "B", "C"], "Rating": Literal["A", "A+", "A-"], "Level": Literal[1, 2, 3],
    "情感": Literal["正面", "负面", "中性"], "Person | None": Person | None, "list[Person]": list[Person], "Shape": Shape,
    "Cat | Dog": Cat | Dog,
}  # fmt: skip

CORPUS = Path(__file__).parent / "corpus"


def cases(*, refused: bool) -> dict[str, Any]:
    """Each case by its place."""
    found = {}
    for file in sorted(CORPUS.glob("*.jsonl")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            case = json.loads(line)
            if bool(case.get("refused")) is refused:
                found[f"{file.stem}:{number}"] = case
    return found


def as_json(return_type: Any, value: Any) -> str:
    return json.dumps(TypeAdapter(return_type).dump_python(value, mode="json"), sort_keys=True, ensure_ascii=False)


def test_a_broken_answer_means_this_value() -> None:
    wrong, right = {}, cases(refused=False)
    assert len(right) >= 300, "the corpus is as large as promised"
    for place, case in right.items():
        wanted = TYPES[case["type"]]
        try:
            found = as_json(wanted, parse_text(case["text"], wanted).value)
        except ResponseParseError as error:
            found = str(error)
        if found != json.dumps(case["value"], sort_keys=True, ensure_ascii=False):
            wrong[place] = found
    assert wrong == {}


def test_an_answer_that_means_no_one_value_is_refused() -> None:
    refused = cases(refused=True)
    assert len(refused) >= 60
    for place, case in refused.items():
        with pytest.raises(ResponseParseError) as caught:
            pytest.fail(f"{place} gave {parse_text(case['text'], TYPES[case['type']]).value!r}")
        assert caught.value.violations, "a refusal tells the model what is wrong"
