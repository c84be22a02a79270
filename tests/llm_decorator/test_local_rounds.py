"""The first example of the README, with the model inside this process."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import LocalModel, llm_function

pytestmark = [pytest.mark.local_model, pytest.mark.heavy, pytest.mark.timeout(600)]


class Person(BaseModel):
    name: str
    age: int


READ = {
    "Anna Lindgren is 34 years old. She lives in Uppsala and teaches physics.": Person(name="Anna Lindgren", age=34),
    "Tom Baker, who drives a bus in Leeds, is 51 years old.": Person(name="Tom Baker", age=51),
    "Maria Rossi is 70. She lives in Rome.": Person(name="Maria Rossi", age=70),
    "John Miller is 19 years old and studies law.": Person(name="John Miller", age=19),
    "Emma Clark, 42, runs a bakery in York.": Person(name="Emma Clark", age=42),
}


@pytest.mark.parametrize("text", READ)
def test_the_first_example_of_the_readme_is_right_each_time(text: str) -> None:
    @llm_function(llm_interface=LocalModel())
    def read_person(text: str) -> Person:
        """Extract the person's name and age from the text."""

    assert [read_person(text) for _ in range(3)] == [READ[text]] * 3
