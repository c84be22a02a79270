# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Classify many rows, crash in the middle, and go on where it ended: what was finished is not paid again.

The first run is a separate process that dies at the sixth row, as after a power cut.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.batch import Checkpoint
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest

REVIEWS = [
    "Great kettle, boils fast.",
    "Broke after a week.",
    "It is a kettle.",
    "Great kettle, boils fast.",  # the same again: asked once
    "Never again!",
    "My best buy this year.",
    "The lid does not close.",
    "Does what it should.",
]


class Opinion(BaseModel):
    mood: Literal["good", "bad", "neutral"]
    about: str


crashes = "--crash" in sys.argv


def answer(request: ScriptedRequest) -> str:
    """Play the model; yours is `OpenAICompatible("gpt-5-mini")` or `LocalModel()`, from SimpleLLMFunc."""
    review = request.text.split("review: ", 1)[1]
    if crashes and "best buy" in review:
        os._exit(9)
    mood = "good" if "reat" in review or "best" in review else "neutral" if "kettle" in review else "bad"
    return f'{{"mood": "{mood}", "about": "{review.split()[-1]}"}}'


llm = ScriptedLLM(answer, repeat=True)


@llm_function(llm_interface=llm)
def classify(review: str) -> Opinion:
    """Say what the customer thinks, and about what."""
    raise NotImplementedError


def main(folder: Path) -> None:
    checkpoint = folder / "run.sqlite"
    died = subprocess.run([sys.executable, __file__, "--crash", str(checkpoint)], check=False)  # noqa: S603
    print(f"the first run died with exit code {died.returncode}")
    print(f"kept: {Checkpoint.status(checkpoint).values} answers")

    report = classify.map(REVIEWS, concurrency=2, checkpoint=checkpoint)
    print(f"restored {report.counts.restored} rows, asked {report.counts.asked}")
    for row in report.rows:
        print(f"{row.value.mood:8}{row.row}")

    report.write(folder / "opinions.jsonl")
    print((folder / "opinions.jsonl").read_text(encoding="utf-8").splitlines()[1])
    report.close()


if __name__ == "__main__":
    if crashes:
        classify.map(REVIEWS, concurrency=1, checkpoint=sys.argv[-1])
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
