# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[local]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""A typed function and a streamed chat, answered by a small model inside this process.

No key is needed. The model's weights (93 MB) are fetched at the first run, once.

Model: the small `LocalModel`, inside this process. For another one change the line `llm = LocalModel(…`.
"""

import time
from collections.abc import Iterator

from pydantic import BaseModel

from SimpleLLMFunc import ChatPair, LocalModel, Message, llm_chat, llm_function

llm = LocalModel()


class Person(BaseModel):
    name: str
    age: int
    city: str


# The docstring is the prompt, the return type is the shape of the answer. The body is never run.
@llm_function(llm_interface=llm)
def read_person(text: str) -> Person:
    """Extract the person that the text is about."""
    raise NotImplementedError


@llm_chat(llm_interface=llm, stream=True, max_tokens=100)
def answer(history: list[Message], message: str) -> Iterator[ChatPair]:
    """You are a helpful assistant. Answer in one short sentence."""
    raise NotImplementedError


def main() -> None:
    text = "Anna Lindgren is 34 years old. She lives in Uppsala and teaches physics."

    # read_person(text) gives the person; .call(text) gives the person and what it took.
    result = read_person.call(text)
    person = result.value
    print(f"{llm.model_name} read: {person!r}")
    print(f"{result.usage.input_tokens} + {result.usage.output_tokens} tokens, {result.seconds:.1f} s")

    # A chat yields pieces of text, each with the history as it stands; the last one goes into the next question.
    begun = time.monotonic()
    question = "What is the capital of France?"
    print(f"\n> {question}")
    for piece, _history in answer([], question):
        print(piece, end="", flush=True)
    print(f"\n{time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main()
