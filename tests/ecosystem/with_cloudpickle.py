# /// script
# dependencies = ["cloudpickle"]
# ///
"""Functions of a script and `with_options` of one, in spawned processes of a `ProcessPoolExecutor`, and through its own pickle."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import cloudpickle
from pydantic import BaseModel
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


class Note(BaseModel):
    text: str


@llm_function(OpenAICompatible("m"))
def note(about: str) -> Note:
    """Take a note."""


@llm_function(OpenAICompatible("m"))
def shout(word: str) -> str:
    """Shout."""


if __name__ == "__main__":
    answers(*['{"text": "hi"}'] * 5)
    other = note.with_options(temperature=0)
    check("through its pickle", cloudpickle.loads(cloudpickle.dumps(other))("a"), Note(text="hi"))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        check("typed", [*pool.map(note, ["a", "b"])], [Note(text="hi")] * 2)
        check(
            "with_options",
            ["hi" in each for each in pool.map(shout.with_options(temperature=0), ["hi"] * 2)],
            [True] * 2,
        )
    seen("5 answers, typed ones of the type of the script")
