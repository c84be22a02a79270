# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[ray]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Map on a Ray cluster: two workers on this machine ask, this process keeps the checkpoint.

Without Ray it says what to install. A cluster of your own: `ray.init("ray://…")` first, and all else as it stands.

Model: answers written down (`ScriptedLLM`). For a real one change the line `@llm_function(llm_interface=…`.
"""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.batch import RayEngine
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest


class Reading(BaseModel):
    words: int
    process: int


def answer(request: ScriptedRequest) -> str:
    """Play the model; yours is SimpleLLMFunc's `OpenAICompatible("gpt-5-mini")`, its key in the workers' environment."""
    text = request.text.split("text: ", 1)[1]
    return f'{{"words": {len(text.split())}, "process": {os.getpid()}}}'


@llm_function(llm_interface=ScriptedLLM(answer, repeat=True))
def read(text: str) -> Reading:
    """Count the words."""
    raise NotImplementedError


def main(checkpoint: Path) -> None:
    texts = ["word " * (1 + number % 7) + str(number) for number in range(200)]
    report = read.map(texts, engine=RayEngine(workers=2), concurrency=40, checkpoint=checkpoint, progress=False)
    workers = {row.value.process for row in report.rows}
    print(
        f"{report.counts.asked} rows, asked by {len(workers)} processes, none of them this one: {os.getpid() not in workers}"
    )
    print("words in the first three:", [row.value.words for row in report.rows[:3]])

    report = read.map(texts, checkpoint=checkpoint, progress=False)
    print(f"the same on this machine alone: {report.counts.restored} restored, {report.counts.asked} asked")


if __name__ == "__main__":
    if find_spec("ray") is None:
        print(f"Ray is not installed: {install_line('ray')}")
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder, "run.sqlite"))
