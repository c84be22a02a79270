"""Functions that other processes import, such as the workers of a cluster; and a map that starts and ends a cluster.

python -m tests.batch.ray.ray_app BASE_URL CHECKPOINT
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from pydantic import BaseModel

from SimpleLLMFunc import OpenAICompatible, llm_function, tool
from SimpleLLMFunc.batch import RayEngine
from SimpleLLMFunc.testing import ScriptedLLM


class Word(BaseModel):
    number: int
    words: list[str]


def answer_to(text: str) -> str:
    """What the server says to a text, and so what the row must be in the end."""
    number = int(text.rsplit(" ", 1)[1])
    return json.dumps({"number": number, "words": [f"w{number % 7}", text[::-1]]})


@llm_function
async def read(text: str) -> Word:
    """Read the text."""


async def its_process(request: object) -> str:
    await asyncio.sleep(0.02)
    return str(os.getpid())


@llm_function(ScriptedLLM(its_process, repeat=True))
async def where(text: str) -> int:
    """Say in which process the text is read."""


@tool
def die(now: bool) -> str:
    """Die."""
    os._exit(1)


@llm_function(toolkit=[die])
async def dangerous(text: str) -> str:
    """Read the text."""


@llm_function(ScriptedLLM("asked by its own model", repeat=True))
async def inner(text: str) -> str:
    """Read the text."""


@tool
async def look(text: str) -> str:
    """Look it up."""
    return await inner(text)


def main(base_url: str, checkpoint: str) -> None:
    model = OpenAICompatible("m", base_url=base_url)

    @llm_function(llm_interface=model)
    def local(text: str) -> Word:
        """Read the text."""

    rows = [f"row number {number}" for number in range(40)]
    report = local.map(rows, engine=RayEngine(workers=1), checkpoint=checkpoint, progress=False)
    print(json.dumps([row.value.number for row in report.rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
