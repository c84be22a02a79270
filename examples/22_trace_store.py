# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Keep every run in one file: see why an answer took two turns, and what a better docstring saves.

Model: answers written down (`ScriptedLLM`). For a real one change the lines `@llm_function(llm_interface=…`.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from SimpleLLMFunc import llm_function, watching
from SimpleLLMFunc.observability.store import RunQuery, TraceStore, metrics
from SimpleLLMFunc.testing import ScriptedLLM

REVIEWS = ["Great kettle!", "Broke after a week.", "It is a kettle."]


def before() -> Callable[[str], dict[str, int]]:
    """Return the function as it was."""

    @llm_function(llm_interface=ScriptedLLM("I would say four.", '{"stars": 4}', repeat=True))
    def stars(review: str) -> dict[str, int]:
        """Grade."""
        raise NotImplementedError

    return stars


@llm_function(llm_interface=ScriptedLLM('{"stars": 4}', repeat=True))
def stars(review: str) -> dict[str, int]:
    """Grade the review with one to five stars. Answer as {"stars": 4}."""
    raise NotImplementedError


with tempfile.TemporaryDirectory() as folder, TraceStore(Path(folder) / "runs.sqlite") as store:
    with watching(store, session_id="kettles"):
        for review in REVIEWS:
            before()(review)
            stars(review)
    store.flush()
    reader = store.reader

    (latest, *_) = reader.runs(RunQuery(text="week", version=reader.versions("stars")[1].version)).runs
    detail = reader.run(latest.id)
    assert detail is not None
    print(f"run {latest.id}: {latest.question}")
    for turn, answer in zip(detail.turns, detail.reviews, strict=True):
        verdict = "accepted" if answer.accepted else f"sent back: {answer.violations[0][1]} expected"
        print(f"  turn {turn.turn}, {turn.input_tokens} tokens read: {answer.text!r} {verdict}")

    docstrings = {version.version: version.docstring for version in reader.versions("stars")}
    for row in metrics(reader, by=("version",)):
        tokens = (row.input_tokens + row.output_tokens) // row.runs
        print(f"{docstrings[row.version]!r}: {tokens} tokens a run, asked again in {row.reask_rate:.0%}")
