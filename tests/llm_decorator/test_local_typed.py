"""Typed answers of the real model inside the process: the shape is always right."""

from __future__ import annotations

from enum import Enum

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import LocalModel, llm_function

pytestmark = [pytest.mark.local_model, pytest.mark.heavy, pytest.mark.timeout(120)]


class Mood(Enum):
    GLAD = "glad"
    SAD = "sad"


class Person(BaseModel):
    name: str
    age: int
    moods: list[Mood]


class Guest(BaseModel):
    """No list: inside a union this model repeats a list's item up to the bound, and the call says so."""

    name: str
    age: int
    mood: Mood


def reading(returns):
    def read(text: str):
        """Extract what the text says."""

    read.__annotations__["return"] = returns
    return llm_function(LocalModel(seed=1), temperature=0, max_tokens=300)(read)


@pytest.mark.parametrize("returns", [Person, int, bool, Mood, Guest | None])
def test_every_answer_has_its_type(returns):
    result = reading(returns).call("Ada is 36 years old and glad to live in London.")
    assert result.output_mode == ("choice" if returns in {bool, Mood} else "native")
    assert result.usage.output_tokens > 0
    if isinstance(returns, type):
        assert isinstance(result.value, returns)


def test_growing_values_end_as_the_call_returns_them():
    read = reading(Person)
    text = "Ada is 36 years old and glad to live in London."
    values = list(read.stream(text))
    assert len(values) > 1
    assert values[-1] == read(text)
