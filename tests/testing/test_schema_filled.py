import asyncio
import datetime as dt
import random
from dataclasses import make_dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from SimpleLLMFunc import llm_function, use_llm
from SimpleLLMFunc.errors import SignatureError, UsageError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.testing import SchemaLLM

MODES = ["native", "tool", "prompt"]


class Color(Enum):
    RED = "red"
    DARK_BLUE = "dark blue"


class Tree(BaseModel):
    name: Annotated[str, Field(min_length=2, max_length=8)]
    sons: list["Tree"] = []


class Chain(BaseModel):
    next: "Chain | None"
    size: Annotated[int, Field(gt=3, le=9)]


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    """A dog, at least one."""

    kind: Literal["dog"] = "dog"
    tricks: list[str] = Field(description="What it can do: at least 3 characters each", max_length=4)
    born: dt.date | None = None


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Pair(NamedTuple):
    first: int
    second: str = "x"


class Row(TypedDict):
    number: Annotated[int, Field(multiple_of=5)]
    text: str


LEAVES: list[Any] = [
    int, float, bool, str, Decimal, UUID, dt.date, dt.datetime, dt.time, dt.timedelta, Color, Tree, Chain, Cat, Dog, Pet, Pair, Row, Any,
    Literal["a", "b, c", "d or e"], Literal[1, 2], Literal["x", 3, None],
    Annotated[int, Field(ge=-3, le=3)], Annotated[int, Field(multiple_of=7, gt=7)], Annotated[float, Field(gt=0, lt=0.01)],
    Annotated[str, Field(min_length=12)], Annotated[str, Field(max_length=2)], Annotated[str, Field(pattern=r"^[A-Z]{2,4}-\d+$", examples=["AB-1", "XYZ-23"])],
    Annotated[str, Field(pattern=r"^(yes|no), (maybe|\"never\")$", examples=["no, maybe"], description="An odd one: at most 3 items")],
    Annotated[Decimal, Field(ge=0, le=1)],
]  # fmt: skip
HASHABLE: list[Any] = [int, str, Color, dt.date, UUID, Literal["a", "b", "c"], Annotated[int, Field(ge=0, le=99)]]
KEYS: list[Any] = [str, int, Color, Annotated[str, Field(min_length=3)]]


def random_type(rng: random.Random, depth: int = 0) -> Any:
    """A type that has a schema, made of others."""

    def inner() -> Any:
        return random_type(rng, depth + 1)

    if depth > 2 or rng.random() < 0.25:
        return rng.choice(LEAVES)
    least = rng.choice([0, 0, 1, 3])
    bounds = Field(min_length=least, max_length=rng.choice([None, least + 2]))
    match rng.randrange(9):
        case 0:
            return Annotated[list[inner()], bounds]
        case 1:
            return rng.choice([set, frozenset])[rng.choice(HASHABLE)]
        case 2:
            return dict[rng.choice(KEYS), inner()]
        case 3:
            return tuple[inner(), inner()] if rng.random() < 0.5 else tuple[inner(), ...]
        case 4:
            return (
                inner() | None if rng.random() < 0.5 else (rng.choice([int, Color, Cat]) | rng.choice([Dog, str, None]))
            )
        case 5:
            return make_dataclass("Made", [("one", inner()), ("two", inner())])
        case _:
            fields = {}
            for number in range(rng.randint(1, 4)):
                options = {"description": rng.choice([None, "Some words, in short.", "A: b, c: at most 2"])}
                default = rng.choice([..., ..., None])
                kind = inner() if default is ... else inner() | None
                if rng.random() < 0.2:
                    options["alias"] = f"Field {number}"
                fields[f"field_{number}"] = (kind, Field(default, **options))
            return create_model("Model", **fields)


def asked(wanted, seed, mode):
    """Ask for a type: whether it has a schema. The first answer is taken."""
    llm = SchemaLLM(seed)
    try:

        @llm_function(llm_interface=llm, output_mode=mode)
        def ask(question: str) -> wanted:
            """Answer."""
    except SignatureError:
        return False
    result = ask.call("?")
    assert len(result.attempts) == len(llm.calls) == 1, f"{wanted} {seed} {mode}: {result.attempts}"
    # The text of a function that returns text is no JSON; of all else no part had to be put right.
    assert result.repairs == [] or wanted in (str, Any), f"{wanted} {seed} {mode}: {result.repairs} {result.text}"
    return True


def check(seeds):
    return sum(asked(random_type(random.Random(seed)), seed, mode) for seed in seeds for mode in MODES)


def test_random_types_are_accepted_at_once_in_every_mode():
    assert check(range(60)) > 150


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("start", range(1000, 1800, 100))
def test_hundreds_of_random_types(start):
    assert check(range(start, start + 100)) > 250


def test_every_leaf_is_accepted_at_once():
    assert all(asked(leaf, seed, mode) for leaf in LEAVES for mode in [*MODES, "auto"] for seed in range(3))


# --- the seed ------------------------------------------------------------------------------------------------


@llm_function
async def pets(question: str) -> list[Pet]:
    """Name some."""


async def test_the_seed_decides_and_not_the_order():
    questions = [f"question {number}" for number in range(8)]
    with use_llm(SchemaLLM(3)):
        in_order = [await pets(each) for each in questions]
    with use_llm(SchemaLLM(3)):
        assert list(await asyncio.gather(*map(pets, reversed(questions)))) == in_order[::-1]
    with use_llm(SchemaLLM(4)):
        assert [await pets(each) for each in questions] != in_order
    assert len({str(value) for value in in_order}) > 4


def test_a_negative_number_of_rounds():
    with pytest.raises(UsageError, match="tool_rounds"):
        SchemaLLM(tool_rounds=-1)


# --- whole programs ------------------------------------------------------------------------------------------


def weather(city: Annotated[str, Field(min_length=3)], days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
    """Tell the weather."""
    assert len(city) >= 3
    assert 1 <= days <= 7
    return "sunny"


def clock() -> str:
    """Tell the time."""
    return "noon"


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize(
    ("mode", "tools"), [*((mode, "native") for mode in [*MODES, "auto"]), ("auto", "json"), ("native", "json")]
)
def test_rounds_of_tools_with_valid_arguments(rounds, mode, tools):
    @llm_function(
        llm_interface=SchemaLLM(1, tool_rounds=rounds, profile=Profile(native=True, tools=tools)),
        toolkit=[weather, clock],
        output_mode=mode,
    )
    def plan(days: int) -> list[Cat]:
        """Plan."""

    result = plan.call(2)
    assert len(result.attempts) == 1
    assert len({message["role"] for message in result.messages} & {"tool"}) == (1 if rounds else 0)
    assert sum(message["role"] == "assistant" for message in result.messages) == rounds + 1
    results = [str(message["content"]) for message in result.messages if message["role"] == "tool"]
    assert not any("failed" in text or "not fit" in text for text in results)


def test_actions_that_are_only_described_get_an_answer():
    @llm_function(llm_interface=SchemaLLM(1, profile=Profile(native=False, tools="json")), toolkit=[clock])
    def plan(days: int) -> list[Cat]:
        """Plan."""

    assert len(plan.call(2).attempts) == 1


def test_a_tool_that_must_be_called():
    @llm_function(llm_interface=SchemaLLM(1), toolkit=[weather, clock], tool_choice="required", max_tool_calls=2)
    def plan(days: int) -> str:
        """Plan."""

    result = plan.call(2)
    assert len(result.tool_calls) >= 2
    named = plan.with_options(tool_choice={"type": "function", "function": {"name": "clock"}}, max_tool_calls=1)
    assert {call.function.name for call in named.call(1).tool_calls} == {"clock"}
