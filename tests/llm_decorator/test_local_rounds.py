"""A real ReAct round of the model inside this process: it calls a tool by a JSON action, and answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import ChatPair, LocalModel, Message, llm_chat, llm_function, watching
from SimpleLLMFunc.base.events import ReActEvent, ReplyDelta, ToolCallFinished, ToolCallStarted

pytestmark = [pytest.mark.local_model, pytest.mark.heavy, pytest.mark.timeout(600)]

QUESTION = "What is the temperature in Rome?"


@pytest.fixture
def asked_for() -> list[object]:
    return []


@pytest.fixture
def temperature(asked_for: list[object]):
    def temperature(city: str) -> str:
        """Tell the temperature in a city right now."""
        asked_for.append(city)
        return f"It is 21 degrees in {city}."

    return temperature


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


def test_a_function_calls_a_tool_and_answers(temperature, asked_for) -> None:
    @llm_function(
        LocalModel(seed=1),
        toolkit=[temperature],
        temperature=0,
        max_tokens=200,
        tool_choice="required",
        max_tool_calls=1,
    )
    def ask(question: str) -> str:
        """Answer the question in one sentence. Use the tools."""

    seen: list[ReActEvent] = []
    with watching(lambda _, event: seen.append(event)):
        result = ask.call(QUESTION)
    assert asked_for
    assert all(isinstance(city, str) for city in asked_for)
    assert isinstance(result.value, str)
    assert result.value.strip()
    assert not result.value.lstrip().startswith('{"')  # the answer, not the action around it
    assert [call.function.name for call in result.tool_calls] == ["temperature"] * len(asked_for)
    finished = [event for event in seen if isinstance(event, ToolCallFinished)]
    assert [event.content for event in finished] == [f"It is 21 degrees in {city}." for city in asked_for]
    roles = [message["role"] for message in result.messages]
    assert roles == ["system", "user", "assistant", *["tool"] * len(asked_for), "assistant"]
    assert result.usage.output_tokens > 0


def test_a_streamed_chat_calls_a_tool_and_answers(temperature, asked_for) -> None:
    @llm_chat(
        LocalModel(seed=1),
        stream=True,
        toolkit=[temperature],
        temperature=0,
        max_tokens=200,
        tool_choice="required",
        max_tool_calls=1,
    )
    def chat(history: list[Message], message: str) -> Iterator[ChatPair]:
        """Answer the question in one sentence. Use the tools."""

    seen: list[ReActEvent] = []
    with watching(lambda _, event: seen.append(event)):
        pairs = list(chat([], QUESTION))
    text = "".join(piece for piece, _ in pairs)
    history = pairs[-1][1]
    assert asked_for
    assert text.strip()
    assert history[-1] == {"role": "assistant", "content": text}
    assert history[2]["tool_calls"][0]["function"]["name"] == "temperature"  # type: ignore[typeddict-item]
    # Nothing of the action was shown as text.
    before = seen[: next(n for n, event in enumerate(seen) if isinstance(event, ToolCallStarted))]
    assert "".join(event.text for event in before if isinstance(event, ReplyDelta)) == ""
