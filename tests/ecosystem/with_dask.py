# /// script
# dependencies = ["distributed"]
# ///
"""A function of a script, its `with_options` and its types, sent to two worker processes by value."""

from dask.distributed import Client
from pydantic import BaseModel
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


class Note(BaseModel):
    text: str


@llm_function(OpenAICompatible("m"))
def note(about: str) -> Note:
    """Take a note."""


if __name__ == "__main__":
    answers(*['{"text": "hi"}'] * 4)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        found = client.gather(client.map(note, ["a", "b", "c"]))
        found.append(client.submit(note.with_options(temperature=0), "d").result())
    check("values", found, [Note(text="hi")] * 4)
    seen("4 answers, of the type of the script")
